//! Encodes mutations. Allocates only when the output grows.

use ilion_codec::Writer;
use ilion_schema::{ColumnId, TableSchema};
use ilion_types::Token;
use smallvec::SmallVec;

use super::{Base, VERSION, cell, head, row};
use crate::clustering_codec::{encode_bound, encode_value};
use crate::{
    Cell, Data, DeletionTime, Liveness, Mutation, NO_DELETION_TIME, NO_TIMESTAMP, NO_TTL, PartitionUpdate,
    RangeTombstone, Row,
};

/// Appends `mutation` to `out`.
///
/// Requires: the encoded mutation is below 4 GiB (the engine refuses mutations that do not fit a commit log segment).
///
/// # Panics
/// If a column of the update is not one of `mutation.table`.
pub fn encode_mutation(mutation: &Mutation, out: &mut Vec<u8>) {
    let mut writer = Writer::from_vec(std::mem::take(out));
    let size_at = writer.len();
    writer.u32(0);
    encode_body(mutation, &mut writer);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the caller's duty: segments are far below 4 GiB"
    )]
    let size = (writer.len() - size_at - 4) as u32;
    writer.as_mut_slice()[size_at..size_at + 4].copy_from_slice(&size.to_be_bytes());
    *out = writer.into_vec();
}

fn encode_body(mutation: &Mutation, out: &mut Writer) {
    let update = &mutation.update;
    let encoder = Encoder {
        table: &mutation.table,
        base: Base {
            micros: first_timestamp(update),
        },
        statics: ColumnSet::of(&mutation.table, update.static_row.as_slice()),
        regulars: ColumnSet::of(&mutation.table, &update.rows),
    };
    out.u8(VERSION);
    out.bytes(mutation.table.id.0.as_bytes());
    out.u8(head_of(mutation));
    out.i64(encoder.base.micros);
    out.bytes_vint(&mutation.key.key);
    out.uvint(mutation.table.clustering().len() as u64);
    if update.static_row.is_some() {
        encoder.names(&encoder.statics, out);
    }
    encoder.names(&encoder.regulars, out);
    if let Some(deletion) = &update.deletion {
        encoder.deletion(deletion, out);
    }
    if let Some(static_row) = &update.static_row {
        encoder.row(static_row, &encoder.statics, out);
    }
    out.uvint(update.rows.len() as u64);
    for row in &update.rows {
        encoder.row(row, &encoder.regulars, out);
    }
    if !update.ranges.is_empty() {
        out.uvint(update.ranges.len() as u64);
        for range in &update.ranges {
            encoder.range(range, out);
        }
    }
}

fn head_of(mutation: &Mutation) -> u8 {
    let mut head = match mutation.key.token {
        Token::Murmur3(_) => 0,
        Token::Bytes(_) => 1,
        Token::Random(_) => 2,
        // Such mutations are never logged; a reader would refuse this value.
        Token::Comparable(_) => 3,
    };
    if mutation.update.deletion.is_some() {
        head |= head::DELETION;
    }
    if mutation.update.static_row.is_some() {
        head |= head::STATIC_ROW;
    }
    if !mutation.update.ranges.is_empty() {
        head |= head::RANGES;
    }
    head
}

fn first_timestamp(update: &PartitionUpdate) -> i64 {
    let of_row = |row: &Row| {
        let of_columns = row.columns.iter().find_map(|entry| match &entry.data {
            Data::Simple(cell) => Some(cell.timestamp_micros),
            Data::Complex(complex) => complex.cells.first().map(|(_, cell)| cell.timestamp_micros),
        });
        [row.liveness.timestamp_micros, row.deletion.marked_at_micros]
            .into_iter()
            .find(|time| *time != NO_TIMESTAMP)
            .or(of_columns)
    };
    let deletions = update.deletion.iter().map(|deletion| deletion.marked_at_micros);
    let ranges = update.ranges.iter().map(|range| range.deletion.marked_at_micros);
    deletions
        .chain(update.static_row.iter().chain(&update.rows).find_map(of_row))
        .chain(ranges)
        .next()
        .unwrap_or(0)
}

/// The columns of some rows, as bits by column id. The index of a column in the list of names is its rank here.
struct ColumnSet {
    bits: SmallVec<[u64; 2]>,
    len: usize,
}

impl ColumnSet {
    fn of(table: &TableSchema, rows: &[Row]) -> Self {
        let mut bits = SmallVec::from_elem(0, usize::from(table.column_id_end()).div_ceil(64));
        for entry in rows.iter().flat_map(|row| &row.columns) {
            assert!(
                table.column(entry.column).is_some(),
                "an update uses columns of its own table, else the log would lose them"
            );
            bits[usize::from(entry.column.0) / 64] |= 1 << (entry.column.0 % 64);
        }
        let len = bits.iter().map(|word: &u64| word.count_ones() as usize).sum();
        Self { bits, len }
    }

    #[inline]
    fn contains(&self, column: ColumnId) -> bool {
        self.bits[usize::from(column.0) / 64] & (1 << (column.0 % 64)) != 0
    }

    /// Number of columns of the set with a lower id.
    #[inline]
    fn rank(&self, column: ColumnId) -> u64 {
        let (words, [word, ..]) = self.bits.split_at(usize::from(column.0) / 64) else {
            return 0;
        };
        let below = word & ((1 << (column.0 % 64)) - 1);
        words
            .iter()
            .chain([&below])
            .map(|word| u64::from(word.count_ones()))
            .sum()
    }
}

struct Encoder<'m> {
    table: &'m TableSchema,
    base: Base,
    statics: ColumnSet,
    regulars: ColumnSet,
}

impl Encoder<'_> {
    fn names(&self, columns: &ColumnSet, out: &mut Writer) {
        out.uvint(columns.len as u64);
        for id in (0..self.table.column_id_end()).map(ColumnId) {
            if columns.contains(id)
                && let Some(column) = self.table.column(id)
            {
                out.bool(column.is_complex());
                out.bytes_vint(column.name.as_bytes());
            }
        }
    }

    fn row(&self, row: &Row, columns: &ColumnSet, out: &mut Writer) {
        let every = row.columns.len() == columns.len;
        let mut flags = 0;
        if !row.liveness.is_none() {
            flags |= row::LIVENESS;
        }
        if row.deletion != DeletionTime::LIVE {
            flags |= row::DELETION;
        }
        if every {
            flags |= row::EVERY_COLUMN;
        }
        out.u8(flags);
        row.clustering
            .values()
            .iter()
            .for_each(|value| encode_value(value, out));
        if flags & row::LIVENESS != 0 {
            self.liveness(&row.liveness, out);
        }
        if flags & row::DELETION != 0 {
            self.deletion(&row.deletion, out);
        }
        if !every {
            out.uvint(row.columns.len() as u64);
        }
        for entry in &row.columns {
            if !every {
                out.uvint(columns.rank(entry.column));
            }
            self.data(&entry.data, out);
        }
    }

    #[inline]
    fn data(&self, data: &Data, out: &mut Writer) {
        match data {
            Data::Simple(cell) => self.cell(cell, out),
            Data::Complex(complex) => {
                let deleted = complex.deletion != DeletionTime::LIVE;
                out.bool(deleted);
                if deleted {
                    self.deletion(&complex.deletion, out);
                }
                out.uvint(complex.cells.len() as u64);
                for (path, cell) in &complex.cells {
                    out.bytes_vint(path);
                    self.cell(cell, out);
                }
            }
        }
    }

    #[inline]
    fn cell(&self, cell: &Cell, out: &mut Writer) {
        let value_flag = if cell.value.is_empty() { 0 } else { cell::VALUE };
        self.times(
            cell.timestamp_micros,
            cell.ttl_secs,
            cell.local_deletion_secs,
            value_flag,
            out,
        );
        if !cell.value.is_empty() {
            out.bytes_vint(&cell.value);
        }
    }

    fn liveness(&self, liveness: &Liveness, out: &mut Writer) {
        let Liveness {
            timestamp_micros,
            ttl_secs,
            expires_secs,
        } = *liveness;
        self.times(timestamp_micros, ttl_secs, expires_secs, 0, out);
    }

    #[inline]
    fn times(&self, micros: i64, ttl_secs: u32, end_secs: u32, more_flags: u8, out: &mut Writer) {
        let mut flags = more_flags;
        if micros != self.base.micros {
            flags |= cell::TIME;
        }
        if ttl_secs != NO_TTL {
            flags |= cell::TTL;
        }
        if end_secs != NO_DELETION_TIME {
            flags |= cell::END;
        }
        out.u8(flags);
        if flags & cell::TIME != 0 {
            self.time(micros, out);
        }
        if flags & cell::TTL != 0 {
            out.uvint(u64::from(ttl_secs));
        }
        if flags & cell::END != 0 {
            self.end(end_secs, ttl_secs, out);
        }
    }

    fn deletion(&self, deletion: &DeletionTime, out: &mut Writer) {
        self.time(deletion.marked_at_micros, out);
        self.end(deletion.local_secs, NO_TTL, out);
    }

    fn time(&self, micros: i64, out: &mut Writer) {
        out.svint(micros.wrapping_sub(self.base.micros));
    }

    fn end(&self, end_secs: u32, ttl_secs: u32, out: &mut Writer) {
        out.svint(i64::from(end_secs) - i64::from(ttl_secs) - self.base.secs());
    }

    fn range(&self, range: &RangeTombstone, out: &mut Writer) {
        encode_bound(&range.start, out);
        encode_bound(&range.end, out);
        self.deletion(&range.deletion, out);
    }
}
