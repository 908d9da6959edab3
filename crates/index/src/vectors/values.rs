//! The vector of a row.

use bytes::Bytes;
use ilion_rows::{Clustering, Data, Row};
use ilion_schema::{ColumnId, ColumnKind};
use ilion_vector::Options;

use crate::{Definition, RowPart};

/// The indexed vectors of a table.
#[derive(Clone, Debug)]
pub(super) struct Values {
    column: ColumnId,
    /// The index of the clustering column with the vector; `None` if it is in a cell.
    clustering: Option<usize>,
    is_of_static: bool,
    has_clusterings: bool,
    pub(super) dimension: u32,
    pub(super) options: Options,
}

impl Values {
    pub(super) fn of(definition: &Definition, dimension: u32, options: Options) -> Self {
        let column = &definition.column;
        let is_clustering = column.kind == ColumnKind::Clustering;
        Self {
            column: column.id,
            clustering: is_clustering.then_some(usize::from(column.position)),
            is_of_static: definition.is_of_static(),
            has_clusterings: definition.table.clustering().len() > 0,
            dimension,
            options,
        }
    }

    /// A description of the definition. Files with another description are built again.
    pub(super) fn words(&self) -> String {
        let Self {
            column,
            clustering,
            dimension,
            options,
            ..
        } = self;
        format!("{column:?} {clustering:?} {dimension} {options:?}")
    }

    /// The bytes of a row's vector; `None` if the row has no vector or is not covered by the index.
    pub(super) fn bytes<'r>(&self, row: &'r Row) -> Option<&'r [u8]> {
        let is_static = row.clustering.is_empty() && self.has_clusterings;
        if is_static != self.is_of_static {
            return None;
        }
        if let Some(position) = self.clustering {
            let has_content = !row.liveness.is_none() || !row.columns.is_empty();
            let value = row.clustering.values().get(position).filter(|_| has_content)?;
            return value.as_deref();
        }
        let at = row
            .columns
            .binary_search_by_key(&self.column, |entry| entry.column);
        match &row.columns.get(at.ok()?)?.data {
            Data::Simple(cell) if !cell.is_tombstone() => Some(&cell.value),
            _ => None,
        }
    }

    /// A row's vector.
    pub(super) fn of_row(&self, row: &Row) -> Option<Vec<f32>> {
        self.decode(self.bytes(row)?)
    }

    /// Decodes a vector; `None` if it has another dimension.
    pub(super) fn decode(&self, bytes: &[u8]) -> Option<Vec<f32>> {
        let (parts, rest) = bytes.as_chunks::<4>();
        let is_whole = rest.is_empty() && parts.len() == self.dimension as usize;
        is_whole.then(|| parts.iter().copied().map(f32::from_be_bytes).collect())
    }

    /// The position of a row in its partition, as an owned value.
    pub(super) fn part(&self, row: &Row) -> RowPart {
        if self.is_of_static {
            RowPart::Static
        } else {
            let values = row.clustering.values().iter();
            let copies = values.map(|value| value.as_deref().map(Bytes::copy_from_slice));
            RowPart::Row(Clustering::new(copies.collect()))
        }
    }
}
