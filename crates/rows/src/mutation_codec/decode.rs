//! Decodes one mutation. Values are slices of the record, and keep it alive ([`Row::detached`] copies them).

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use ilion_codec::{Error, Reader};
use ilion_schema::{Column, ColumnId, ColumnKind, TableSchema};
use ilion_types::Partitioner;

use super::{Base, cell, head, row};
use crate::clustering_codec::{decode_bound, decode_bytes, decode_counted};
use crate::{
    Bound, BoundKind, Cell, Clustering, ClusteringComparator, ColumnData, ComplexColumn, Data, DecoratedKey,
    DeletionTime, Liveness, NO_DELETION_TIME, NO_TIMESTAMP, NO_TTL, PartitionUpdate, RangeTombstone, Row,
    paths,
};

/// A name of the mutation's list, resolved in the current table.
#[derive(Clone, Debug)]
struct Name {
    is_complex: bool,
    /// The column, and the timestamp up to which cells of this name were dropped; `None` if its cells are skipped.
    column: Option<(ColumnId, i64)>,
}

/// A list of names.
#[derive(Clone, Debug, Default)]
struct NameList {
    /// As it is stored; empty if nothing was read yet. No list begins with another one.
    bytes: Vec<u8>,
    names: Vec<Name>,
}

/// The lists of names that were read last. Most mutations have the columns of the one before, and to resolve them took a quarter of the
/// instructions of a replay.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownNames {
    /// The schema in which the names were resolved.
    table: Option<Arc<TableSchema>>,
    statics: NameList,
    regulars: NameList,
}

impl KnownNames {
    /// Forgets names of another schema.
    fn keep_of(&mut self, table: &Arc<TableSchema>) {
        if !self.table.as_ref().is_some_and(|known| Arc::ptr_eq(known, table)) {
            *self = Self {
                table: Some(table.clone()),
                ..Self::default()
            };
        }
    }
}

/// What stands before the key.
pub(super) struct Head {
    pub partitioner: Partitioner,
    /// See [`head`].
    bits: u8,
    base: Base,
}

impl Head {
    pub fn decode(input: &mut Reader<'_>) -> Result<Self, Error> {
        let bits = input.u8()?;
        let partitioner = match bits & head::PARTITIONER {
            0 => Partitioner::Murmur3,
            1 => Partitioner::ByteOrdered,
            2 => Partitioner::Random,
            _ => return Err(input.error("a known partitioner before this")),
        };
        if bits & !head::KNOWN != 0 {
            return Err(input.error("known head bits before this"));
        }
        let base = Base { micros: input.i64()? };
        Ok(Self {
            partitioner,
            bits,
            base,
        })
    }
}

pub(super) struct Decoder<'m> {
    record: &'m Bytes,
    table: &'m TableSchema,
    base: Base,
    comparator: ClusteringComparator,
}

impl<'m> Decoder<'m> {
    /// Decodes the rest of `input`, which starts behind the table's id.
    pub(super) fn run(
        record: &'m Bytes,
        table: &'m Arc<TableSchema>,
        known: &mut KnownNames,
        input: &mut Reader<'_>,
    ) -> Result<(DecoratedKey, PartitionUpdate), Error> {
        known.keep_of(table);
        let head = Head::decode(input)?;
        let decoder = Self {
            record,
            table,
            base: head.base,
            comparator: ClusteringComparator::of(table),
        };
        let key = DecoratedKey::new(head.partitioner, decode_bytes(record, input)?);
        if input.uvint()? != decoder.comparator.len() as u64 {
            return Err(input.error("as many clustering columns as the table has, before this"));
        }
        let update = decoder.update(head.bits, known, input)?;
        Ok((key, update))
    }

    fn update(
        &self,
        head: u8,
        known: &mut KnownNames,
        input: &mut Reader<'_>,
    ) -> Result<PartitionUpdate, Error> {
        let has = |bit| head & bit != 0;
        let statics = match has(head::STATIC_ROW) {
            true => self.names(ColumnKind::Static, &mut known.statics, input)?,
            false => &[],
        };
        let regulars = self.names(ColumnKind::Regular, &mut known.regulars, input)?;
        let mut update = PartitionUpdate::default();
        if has(head::DELETION) {
            update.deletion = Some(self.deletion(input)?);
        }
        if has(head::STATIC_ROW) {
            let static_row = self.row(statics, 0, input)?;
            update.static_row = (!static_row.is_empty()).then_some(static_row);
        }
        update.rows = self.rows(regulars, input)?;
        if has(head::RANGES) {
            for _ in 0..input.uvint()? {
                update.ranges.push(self.range(input)?);
            }
        }
        if !input.is_empty() {
            return Err(input.error("the end of the mutation"));
        }
        Ok(update)
    }

    fn names<'n>(
        &self,
        kind: ColumnKind,
        known: &'n mut NameList,
        input: &mut Reader<'_>,
    ) -> Result<&'n [Name], Error> {
        let stored = input.rest();
        if !known.bytes.is_empty() && stored.starts_with(&known.bytes) {
            input.skip(known.bytes.len())?;
            return Ok(&known.names);
        }
        // Also after an error, the list must not be taken for another one.
        known.bytes.clear();
        known.names.clear();
        let count = input.uvint_len()?;
        known.names.reserve(input.capacity_for(count, 2));
        for _ in 0..count {
            let is_complex = input.bool()?;
            let name = input.string_vint()?;
            known.names.push(Name {
                is_complex,
                column: self.resolve_name(name, kind, is_complex),
            });
        }
        let length = stored.len() - input.remaining();
        known.bytes.extend_from_slice(&stored[..length]);
        Ok(&known.names)
    }

    fn resolve_name(&self, name: &str, kind: ColumnKind, is_complex: bool) -> Option<(ColumnId, i64)> {
        let column = self.table.column_named(name)?;
        if column.kind != kind || column.is_complex() != is_complex {
            return None;
        }
        let dropped = self.table.dropped.get(name);
        Some((
            column.id,
            dropped.map_or(NO_TIMESTAMP, |known| known.dropped_micros),
        ))
    }

    fn rows(&self, names: &[Name], input: &mut Reader<'_>) -> Result<Vec<Row>, Error> {
        let count = input.uvint_len()?;
        let mut rows: Vec<Row> = Vec::new();
        for _ in 0..count {
            let row = self.row(names, self.comparator.len(), input)?;
            if let Some(last) = rows.last()
                && self.comparator.compare(&last.clustering, &row.clustering) != Ordering::Less
            {
                return Err(input.error("rows in clustering order before this"));
            }
            // If all columns of a row are gone, the row is empty.
            if !row.is_empty() {
                rows.push(row);
            }
        }
        Ok(rows)
    }

    fn row(&self, names: &[Name], clusterings: usize, input: &mut Reader<'_>) -> Result<Row, Error> {
        let flags = input.u8()?;
        if flags & !row::KNOWN != 0 {
            return Err(input.error("known row flags before this"));
        }
        let mut row = Row::empty(Clustering::new(decode_counted(self.record, clusterings, input)?));
        if flags & row::LIVENESS != 0 {
            row.liveness = self.liveness(input)?;
        }
        if flags & row::DELETION != 0 {
            row.deletion = self.deletion(input)?;
        }
        if flags & row::EVERY_COLUMN != 0 {
            row.columns.reserve_exact(input.capacity_for(names.len(), 1));
            for name in names {
                self.column(name, &mut row.columns, input)?;
            }
        } else {
            let count = input.uvint_len()?;
            row.columns.reserve_exact(input.capacity_for(count, 2));
            for _ in 0..count {
                let name = usize::try_from(input.uvint()?).ok();
                let name = name.and_then(|index| names.get(index));
                let name = name.ok_or_else(|| input.error("an index of the column list before this"))?;
                self.column(name, &mut row.columns, input)?;
            }
        }
        // The process that wrote the record may have had other column ids, and so another order of columns.
        row.columns.sort_unstable_by_key(|entry| entry.column);
        if !row.columns.is_sorted_by(|a, b| a.column < b.column) {
            return Err(input.error("each column once before this"));
        }
        Ok(row)
    }

    #[inline]
    fn column(&self, name: &Name, into: &mut Vec<ColumnData>, input: &mut Reader<'_>) -> Result<(), Error> {
        let data = if name.is_complex {
            self.complex(name, input)?
        } else {
            let cell = self.cell(input)?;
            name.keeps(cell.timestamp_micros).then_some(Data::Simple(cell))
        };
        if let (Some((column, _)), Some(data)) = (name.column, data) {
            into.push(ColumnData { column, data });
        }
        Ok(())
    }

    fn complex(&self, name: &Name, input: &mut Reader<'_>) -> Result<Option<Data>, Error> {
        let mut deletion = match input.bool()? {
            true => self.deletion(input)?,
            false => DeletionTime::LIVE,
        };
        if !name.keeps(deletion.marked_at_micros) {
            deletion = DeletionTime::LIVE;
        }
        let column = name.column.and_then(|(id, _)| self.table.column(id));
        let count = input.uvint_len()?;
        let mut cells: Vec<(Bytes, Cell)> = Vec::with_capacity(input.capacity_for(count, 2));
        for _ in 0..count {
            let path = decode_bytes(self.record, input)?;
            let cell = self.cell(input)?;
            if let (Some((last, _)), Some(column)) = (cells.last(), column)
                && !is_ascending(column, last, &path)
            {
                return Err(input.error("cells in the order of their paths before this"));
            }
            if name.keeps(cell.timestamp_micros) {
                cells.push((path, cell));
            }
        }
        let says_something = !deletion.is_live() || !cells.is_empty();
        Ok(says_something.then(|| Data::Complex(Box::new(ComplexColumn { deletion, cells }))))
    }

    #[inline]
    fn cell(&self, input: &mut Reader<'_>) -> Result<Cell, Error> {
        let flags = input.u8()?;
        let (timestamp_micros, ttl_secs, local_deletion_secs) = self.times(flags, input)?;
        let value = match flags & cell::VALUE {
            0 => Bytes::new(),
            _ => decode_bytes(self.record, input)?,
        };
        Ok(Cell {
            timestamp_micros,
            ttl_secs,
            local_deletion_secs,
            value,
        })
    }

    fn liveness(&self, input: &mut Reader<'_>) -> Result<Liveness, Error> {
        let flags = input.u8()?;
        if flags & cell::VALUE != 0 {
            return Err(input.error("known liveness flags before this"));
        }
        let (timestamp_micros, ttl_secs, expires_secs) = self.times(flags, input)?;
        Ok(Liveness {
            timestamp_micros,
            ttl_secs,
            expires_secs,
        })
    }

    #[inline]
    fn times(&self, flags: u8, input: &mut Reader<'_>) -> Result<(i64, u32, u32), Error> {
        if flags & !cell::KNOWN != 0 {
            return Err(input.error("known cell flags before this"));
        }
        let micros = match flags & cell::TIME {
            0 => self.base.micros,
            _ => self.time(input)?,
        };
        let ttl_secs = match flags & cell::TTL {
            0 => NO_TTL,
            _ => u32::try_from(input.uvint()?).map_err(|_| input.error("a TTL before this"))?,
        };
        let end_secs = match flags & cell::END {
            0 => NO_DELETION_TIME,
            _ => self.end(ttl_secs, input)?,
        };
        Ok((micros, ttl_secs, end_secs))
    }

    fn deletion(&self, input: &mut Reader<'_>) -> Result<DeletionTime, Error> {
        let marked_at_micros = self.time(input)?;
        let local_secs = self.end(NO_TTL, input)?;
        Ok(DeletionTime {
            marked_at_micros,
            local_secs,
        })
    }

    fn time(&self, input: &mut Reader<'_>) -> Result<i64, Error> {
        Ok(self.base.micros.wrapping_add(input.svint()?))
    }

    fn end(&self, ttl_secs: u32, input: &mut Reader<'_>) -> Result<u32, Error> {
        let after = self.base.secs() + i64::from(ttl_secs);
        input
            .svint()?
            .checked_add(after)
            .and_then(|secs| u32::try_from(secs).ok())
            .ok_or_else(|| input.error("a local time of 32 bits before this"))
    }

    fn range(&self, input: &mut Reader<'_>) -> Result<RangeTombstone, Error> {
        let start = self.bound(BoundKind::is_start, input)?;
        let end = self.bound(BoundKind::is_end, input)?;
        let deletion = self.deletion(input)?;
        Ok(RangeTombstone { start, end, deletion })
    }

    fn bound(&self, fits: fn(BoundKind) -> bool, input: &mut Reader<'_>) -> Result<Bound, Error> {
        let bound = decode_bound(self.record, self.comparator.len(), input)?;
        match fits(bound.kind) {
            true => Ok(bound),
            false => Err(input.error("the kind of an end of a range before this")),
        }
    }
}

impl Name {
    #[inline]
    fn keeps(&self, micros: i64) -> bool {
        self.column
            .is_some_and(|(_, dropped_micros)| dropped_micros == NO_TIMESTAMP || micros > dropped_micros)
    }
}

fn is_ascending(column: &Column, a: &[u8], b: &[u8]) -> bool {
    paths::compare_paths(&column.ty, a, b) == Ordering::Less
}
