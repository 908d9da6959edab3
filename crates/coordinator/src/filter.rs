//! [`NamedFilter`]: what a read selects of each partition, with columns by name, since their ids hold only inside one process.
//!
//! ```text
//! filter   := list<slice>, is_reversed: u8, option<list<name>>, option<list<elements>>
//! slice    := start: bound, end: bound
//! elements := column: name, list<path: bytes>
//! option   := 0 | 1, value
//! ```

use std::sync::Arc;

use bytes::Bytes;
use ilion_codec::{Error, Reader, Writer};
use ilion_rows::clustering_codec::{decode_bound, encode_bound};
use ilion_rows::{Bound, ClusteringComparator, ClusteringFilter, Slice, WantedElements};
use ilion_schema::{ColumnId, TableSchema};

use crate::fields::{Input, encode_list, encode_option};

/// A [`ClusteringFilter`] for another process, without `liveness`, which only materialized views and the row cache need, inside a node, and
/// without `now_secs`: replicas assume that the clock of the coordinator is ahead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFilter {
    slices: Vec<Slice>,
    is_reversed: bool,
    columns: Option<Vec<String>>,
    elements: Option<Vec<(String, Vec<Bytes>)>>,
}

impl NamedFilter {
    /// The filter of a read of `table`.
    pub fn of(filter: &ClusteringFilter, table: &TableSchema) -> Self {
        let name = |id: ColumnId| table.column(id).map(|column| column.name.clone());
        let columns = filter.columns.as_deref();
        let elements = filter.elements.as_deref();
        Self {
            slices: filter.slices.clone(),
            is_reversed: filter.reversed,
            columns: columns.map(|columns| columns.iter().filter_map(|id| name(*id)).collect()),
            elements: elements.map(|elements| {
                let named = |wanted: &WantedElements| Some((name(wanted.column)?, wanted.paths.clone()));
                elements.iter().filter_map(named).collect()
            }),
        }
    }

    /// The filter for this process's table. Columns that the table does not have any more are left out: they have no data.
    ///
    /// # Errors
    /// The slices are not ascending ranges of the table's clusterings.
    pub fn resolve(&self, table: &TableSchema) -> Result<ClusteringFilter, &'static str> {
        let comparator = ClusteringComparator::of(table);
        let is_slice = |slice: &Slice| {
            let fits = |bound: &Bound| bound.values.len() <= comparator.len();
            let faces = slice.start.kind.is_start() && slice.end.kind.is_end();
            fits(&slice.start) && fits(&slice.end) && faces && !slice.is_empty(&comparator)
        };
        if !self.slices.iter().all(is_slice) {
            return Err("slices are ranges of the table's clusterings");
        }
        let ascends =
            |before: &Slice, after: &Slice| comparator.compare_bounds(&before.end, &after.start).is_le();
        if !self.slices.is_sorted_by(ascends) {
            return Err("slices ascend");
        }
        let id = |name: &String| table.column_named(name).map(|column| column.id);
        let columns = self.columns.as_ref();
        let elements = self.elements.as_ref();
        Ok(ClusteringFilter {
            slices: self.slices.clone(),
            reversed: self.is_reversed,
            columns: columns.map(|names| Arc::from_iter(names.iter().filter_map(id))),
            elements: elements.map(|elements| {
                let wanted = |(name, paths): &(String, Vec<Bytes>)| {
                    let (column, paths) = (id(name)?, paths.clone());
                    Some(WantedElements { column, paths })
                };
                Arc::from_iter(elements.iter().filter_map(wanted))
            }),
            liveness: false,
            now_secs: None,
        })
    }

    pub(crate) fn encode(&self, out: &mut Writer) {
        encode_list(&self.slices, out, |slice, out| {
            encode_bound(&slice.start, out);
            encode_bound(&slice.end, out);
        });
        out.bool(self.is_reversed);
        encode_option(self.columns.as_ref(), out, |columns, out| {
            encode_list(columns, out, |name, out| out.bytes_vint(name.as_bytes()));
        });
        encode_option(self.elements.as_ref(), out, |elements, out| {
            encode_list(elements, out, |(name, paths), out| {
                out.bytes_vint(name.as_bytes());
                encode_list(paths, out, |path, out| out.bytes_vint(path));
            });
        });
    }

    pub(crate) fn decode(input: &mut Input<'_>) -> Result<Self, Error> {
        let bound = |whole: &Bytes, reader: &mut Reader<'_>| decode_bound(whole, usize::MAX, reader);
        let slices = input.list(|input| {
            let start = bound(input.whole, &mut input.reader)?;
            let end = bound(input.whole, &mut input.reader)?;
            Ok(Slice { start, end })
        })?;
        let is_reversed = input.reader.bool()?;
        let columns = input.option(|input| input.list(Input::name))?;
        let elements = input.option(|input| {
            input.list(|input| {
                let name = input.name()?;
                let paths = input.list(Input::bytes)?;
                Ok((name, paths))
            })
        })?;
        Ok(Self {
            slices,
            is_reversed,
            columns,
            elements,
        })
    }
}
