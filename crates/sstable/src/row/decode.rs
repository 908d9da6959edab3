//! Decodes rows and markers, as [`super::format`] describes them.
//!
//! Columns are matched by name. Columns that the table no longer has are skipped; cells that were written before their column
//! was dropped are left out. Invariant: the body of a row ends where its size says.

mod at_hand;
mod body;
pub(in crate::row) mod columns;
mod common_cell;
mod mapped;
mod prefix;
mod wanted;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use ilion_rows::{Clustering, ClusteringComparator, DeletionTime, Marker, Row};
use ilion_schema::{ColumnKind, TableSchema};

use self::body::BodyDecoder;
use self::columns::FileColumns;
use crate::error::Step;
use crate::row::format::state::RowFlags;
use crate::row::format::times::Times;
use crate::row::format::unfiltered_flag::{END_OF_PARTITION, IS_MARKER};
use crate::row::source::{ByteSource, Stretch, Within};
use crate::{DataStream, Error, Result, SerializationHeader, Version};

pub(crate) use self::prefix::{ClusteringFormat, ClusteringPrefix};
pub use self::wanted::Unwanted;
pub(crate) use self::wanted::Wanted;

/// Decodes the rows of one file as rows of one table.
#[derive(Debug)]
pub(crate) struct RowFormat {
    pub(crate) table: Arc<TableSchema>,
    pub(crate) comparator: ClusteringComparator,
    pub(crate) clustering: ClusteringFormat,
    pub(crate) times: Times,
    statics: FileColumns,
    pub(in crate::row) regulars: FileColumns,
}

/// An unfiltered; for a row, only the part that decides whether the row is selected.
#[derive(Debug)]
pub(crate) enum Head {
    Row(RowHead),
    Marker(Marker),
}

/// The start of a row, before its body.
#[derive(Debug)]
pub(crate) struct RowHead {
    pub(crate) clustering: Clustering,
    pub(crate) body_size: u64,
    flags: RowFlags,
    /// The parts of the row's columns, from the cell map.
    pub(crate) parts: Option<Bytes>,
}

impl RowFormat {
    /// The format of a file with this header.
    ///
    /// # Errors
    /// Refused: the file does not fit the table.
    pub(crate) fn of(
        header: &SerializationHeader,
        version: Version,
        table: &Arc<TableSchema>,
    ) -> Result<Self> {
        let comparator = ClusteringComparator::of(table);
        if comparator.len() != header.clustering_types.len() {
            return Err(Error::Refused(format!(
                "table {}.{} has {} clustering columns, the file {}",
                table.keyspace,
                table.name,
                comparator.len(),
                header.clustering_types.len()
            )));
        }
        let fixed_lens = header.clustering_types.iter().map(|class| class.ty.fixed_len());
        Ok(Self {
            table: table.clone(),
            comparator,
            clustering: ClusteringFormat::new(fixed_lens.collect()),
            times: Times::new(header.stats, version),
            statics: FileColumns::of(&header.statics, ColumnKind::Static, table)?,
            regulars: FileColumns::of(&header.regulars, ColumnKind::Regular, table)?,
        })
    }

    /// Decodes the deletion and static row that follow a partition's key.
    pub(crate) fn partition_head(&self, input: &mut DataStream) -> Step<(DeletionTime, Option<Row>)> {
        let deletion = self.times.partition_deletion(input)?;
        let static_row = self.static_row(input, Wanted::ALL, None)?;
        Ok((deletion, static_row))
    }

    /// True if the file can have plain partitions.
    pub(crate) fn may_be_plain(&self) -> bool {
        !self.has_statics() && self.comparator.is_empty()
    }

    /// True if the table has clustering columns and the file can have plain rows.
    pub(crate) fn rows_may_be_plain(&self) -> bool {
        !self.comparator.is_empty() && !self.table.is_counter()
    }

    /// True if partitions of the file have a static row.
    #[inline]
    pub(crate) fn has_statics(&self) -> bool {
        !self.statics.columns.is_empty()
    }

    /// Decodes the static row that follows a partition's deletion, if the file has static columns; `None` if it is empty.
    pub(crate) fn static_row(
        &self,
        input: &mut DataStream,
        wanted: Wanted<'_>,
        parts: Option<Bytes>,
    ) -> Step<Option<Row>> {
        if !self.has_statics() {
            return Ok(None);
        }
        let flags = RowFlags::decode_static(input)?;
        let head = RowHead {
            clustering: Clustering::empty(),
            body_size: input.uvint()?,
            flags,
            parts,
        };
        let row = self.body(input, head, &self.statics, wanted)?;
        Ok((!row.is_empty()).then_some(row))
    }

    /// Decodes the next unfiltered up to its body; `None` at the end of the partition.
    #[inline(always)]
    pub(crate) fn head(&self, input: &mut DataStream) -> Step<Option<Head>> {
        let first = input.u8()?;
        if first == END_OF_PARTITION {
            return Ok(None);
        }
        if first == IS_MARKER {
            return self.marker(input).map(|marker| Some(Head::Marker(marker)));
        }
        if first & (END_OF_PARTITION | IS_MARKER) != 0 {
            return Err(ByteSource::corrupt(
                input,
                "flags of a row, a marker or the end of the partition before it",
            ));
        }
        let flags = RowFlags::decode(first, input)?;
        let clustering = self.clustering.clustering(input)?;
        let body_size = input.uvint()?;
        Ok(Some(Head::Row(RowHead {
            clustering,
            body_size,
            flags,
            parts: None,
        })))
    }

    /// Decodes the body of a row. The row may be empty, if all its columns were dropped.
    #[inline(always)]
    pub(crate) fn row(&self, input: &mut DataStream, head: RowHead, wanted: Wanted<'_>) -> Step<Row> {
        self.body(input, head, &self.regulars, wanted)
    }

    #[inline]
    fn body(
        &self,
        input: &mut DataStream,
        head: RowHead,
        columns: &FileColumns,
        wanted: Wanted<'_>,
    ) -> Step<Row> {
        let size = usize::try_from(head.body_size).unwrap_or(usize::MAX);
        let mut row = Row::empty(head.clustering);
        let mut decoder = BodyDecoder::new(head.flags, &self.times, columns, wanted);
        if !wanted.is_all() && (head.parts.is_some() || is_worth_skipping(input, size)) {
            walk_through(&mut decoder, input, head.body_size, head.parts, &mut row)?;
            return Ok(row);
        }
        if input.keeps_apart(size) {
            walk_apart(&mut decoder, input, head.body_size, &mut row)?;
            return Ok(row);
        }
        decoder.decode_at_hand(Stretch::ahead(input, size)?, &mut row)?;
        input.consume(size);
        Ok(row)
    }

    #[inline(never)]
    fn marker(&self, input: &mut DataStream) -> Step<Marker> {
        let kind = input.u8()?;
        let bound = self.clustering.bound_of(kind, input)?;
        let body_size = input.uvint()?;
        let end_of_body = input.position().saturating_add(body_size);
        input.uvint()?;
        let first = self.times.deletion(input)?;
        let (end, start) = if bound.kind.is_boundary() {
            (Some(first), Some(self.times.deletion(input)?))
        } else if bound.kind.is_start() {
            (None, Some(first))
        } else {
            (Some(first), None)
        };
        if input.position() != end_of_body {
            return Err(ByteSource::corrupt(input, "the end of the marker"));
        }
        Ok(Marker { bound, end, start })
    }
}

/// Decodes a body; chunks that have only values that are not selected are skipped.
#[inline(never)]
fn walk_through(
    decoder: &mut BodyDecoder<'_>,
    input: &mut DataStream,
    size: u64,
    parts: Option<Bytes>,
    row: &mut Row,
) -> Step<()> {
    let end = input.position().saturating_add(size);
    let subset = decoder.start(&mut Within::new(input, end), row)?;
    match parts {
        Some(parts) => decoder.decode_mapped(input, end, &subset, &parts, row),
        None => decoder.decode_columns(&mut Within::new(input, end), &subset, row),
    }
}

/// Decodes a body whose values are not kept in memory.
#[cold]
fn walk_apart(decoder: &mut BodyDecoder<'_>, input: &mut DataStream, size: u64, row: &mut Row) -> Step<()> {
    let end = input.position().saturating_add(size);
    let mut within = Within::apart(input, end);
    let subset = decoder.start(&mut within, row)?;
    decoder.decode_columns(&mut within, &subset, row)
}

/// True if the row has chunks that need not be read if values are skipped.
fn is_worth_skipping(input: &DataStream, size: usize) -> bool {
    size > input.rest().len() && size > input.chunks().chunk_length() as usize
}
