//! Rows as most are: of simple columns with short values. One look tells what such a row will take, so that it is written where it
//! belongs, its size first; all others are encoded beside the buffer and copied.

use ilion_codec::{Writer, unsigned_vint_len};
use ilion_rows::{Cell, Data, Liveness, NO_TTL, Row};

use super::cell::{cell_flag, encode_cell_head, times_len, value_length};
use super::columns::{ColumnLayout, StoredColumn};
use super::times::Times;
use super::unfiltered_flag;
use crate::metadata_collector::MetadataCollector;
use crate::values::Unstorable;

/// A row that is plain, and what its body takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plain<'r> {
    row: &'r Row,
    pub(super) flags: u8,
    /// A bit for each cell of the row that has nothing of its own but its value, the first one lowest.
    as_row: u64,
    /// A bit for each column that it does not have.
    missing: u64,
    pub(super) body_len: usize,
}

impl<'r> Plain<'r> {
    /// Nothing if the row is not plain, takes `bytes_max` or more, or cannot be stored: the long way says why.
    #[inline]
    pub(super) fn measure(
        row: &'r Row,
        layout: &ColumnLayout,
        times: Times,
        bytes_max: usize,
    ) -> Option<Self> {
        let missing = layout.bits_of_plain()?;
        if !row.deletion.is_live() || (row.columns.is_empty() && row.liveness.is_none()) {
            return None;
        }
        let (flags, body_len) = measure_liveness(&row.liveness, times);
        let mut plain = Self {
            row,
            flags,
            as_row: 0,
            missing,
            body_len,
        };
        let mut place_min = 0;
        for (bit, entry) in row.columns.iter().enumerate() {
            let (place, column) = layout.stored(entry.column)?;
            let Data::Simple(cell) = &entry.data else {
                return None;
            };
            // A column that comes twice is out of order: there are no more than there are bits.
            if place < place_min || !column.holds(&cell.value) {
                return None;
            }
            place_min = place + 1;
            plain.missing &= !(1 << place);
            plain.body_len += 1 + value_length(cell, column);
            if is_as_row(cell, &row.liveness) {
                plain.as_row |= 1 << bit;
            } else {
                plain.body_len += times_len(cell, &row.liveness, times);
            }
        }
        if plain.missing == 0 {
            plain.flags |= unfiltered_flag::HAS_ALL_COLUMNS;
        } else {
            plain.body_len += unsigned_vint_len(plain.missing);
        }
        (plain.body_len < bytes_max).then_some(plain)
    }

    /// Appends the body.
    #[inline]
    pub(super) fn encode(
        &self,
        layout: &ColumnLayout,
        times: Times,
        stats: &mut MetadataCollector,
        out: &mut Writer,
    ) -> Result<(), Unstorable> {
        let liveness = &self.row.liveness;
        if !liveness.is_none() {
            times.liveness(liveness, out);
            stats.liveness(liveness);
        }
        if self.missing != 0 {
            out.uvint(self.missing);
        }
        if self.missing == 0 {
            self.encode_cells(layout.all(), times, stats, out)?;
        } else {
            self.encode_cells(layout.without(self.missing), times, stats, out)?;
        }
        stats.cells_as_row(self.as_row.count_ones(), liveness);
        stats.row(self.row.columns.len() as u64);
        Ok(())
    }

    #[inline]
    fn encode_cells<'c>(
        &self,
        stored: impl Iterator<Item = &'c StoredColumn>,
        times: Times,
        stats: &mut MetadataCollector,
        out: &mut Writer,
    ) -> Result<(), Unstorable> {
        let liveness = &self.row.liveness;
        let flags = flags_as_row(liveness);
        let mut as_row = self.as_row;
        for (entry, column) in self.row.columns.iter().zip(stored) {
            let Data::Simple(cell) = &entry.data else {
                return Err(Unstorable::WrongShape);
            };
            if as_row & 1 == 1 {
                encode_as_row(cell, column, flags, out);
            } else {
                stats.cell(cell);
                encode_cell_head(cell, column, None, liveness, times, out)?;
            }
            out.bytes(&cell.value);
            as_row >>= 1;
        }
        Ok(())
    }
}

#[inline]
fn measure_liveness(liveness: &Liveness, times: Times) -> (u8, usize) {
    if liveness.is_none() {
        return (0, 0);
    }
    let mut flags = unfiltered_flag::HAS_TIMESTAMP;
    if liveness.ttl_secs != NO_TTL {
        flags |= unfiltered_flag::HAS_TTL;
    }
    (flags, times.liveness_len(liveness))
}

/// Whether a cell has nothing of its own but its value.
#[inline]
fn is_as_row(cell: &Cell, liveness: &Liveness) -> bool {
    cell.timestamp_micros == liveness.timestamp_micros
        && cell.ttl_secs == liveness.ttl_secs
        && cell.local_deletion_secs == liveness.expires_secs
        && !liveness.is_none()
}

/// The flags of cells that are as their row.
#[inline]
fn flags_as_row(liveness: &Liveness) -> u8 {
    match liveness.ttl_secs {
        NO_TTL => cell_flag::USE_ROW_TIMESTAMP,
        _ => cell_flag::USE_ROW_TIMESTAMP | cell_flag::USE_ROW_TTL | cell_flag::IS_EXPIRING,
    }
}

#[inline]
fn encode_as_row(cell: &Cell, column: &StoredColumn, flags: u8, out: &mut Writer) {
    match (cell.value.len(), column.value_len) {
        (0, _) => out.u8(flags | cell_flag::HAS_EMPTY_VALUE),
        (_, Some(_)) => out.u8(flags),
        #[expect(clippy::cast_possible_truncation, reason = "it is in the range")]
        (len @ ..0x80, None) => out.bytes(&[flags, len as u8]),
        (len, None) => {
            out.u8(flags);
            out.uvint(len as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use ilion_rows::notation::parse_table;
    use ilion_rows::{Clustering, ClusteringComparator, ColumnData, DeletionTime};

    use super::super::{EncodedBody, encode_body};
    use super::*;
    use crate::{EncodingStats, Version};

    fn told(mut stats: MetadataCollector) -> String {
        stats.end_partition(b"k", 1);
        format!("{:?}", stats.finish((Bytes::new(), Bytes::new())))
    }

    /// The body and the statistics as the long way has them.
    fn the_long_way(row: &Row, layout: &mut ColumnLayout, times: Times) -> (u8, Vec<u8>, String) {
        let mut stats = MetadataCollector::new(ClusteringComparator::new([]));
        let mut body = EncodedBody::default();
        layout.choose(row).unwrap();
        let flags = encode_body(row, layout, times, &mut stats, &mut body).unwrap();
        let bytes = body.as_slice().unwrap().to_vec();
        (flags, bytes, told(stats))
    }

    fn cells() -> Vec<Option<Cell>> {
        let value = |len: usize| Bytes::from(vec![7; len]);
        vec![
            None,
            Some(Cell::live(1_000, value(34))),
            Some(Cell::live(1_000, value(0))),
            Some(Cell::live(2_000_000, value(200))),
            Some(Cell::expiring(1_000, 60, 5_000, value(3))),
            Some(Cell::expiring(1_000, 61, 5_000, value(3))),
            Some(Cell::tombstone(999, 77)),
        ]
    }

    #[test]
    fn plain_rows_are_encoded_as_the_long_way_encodes_them() {
        let table = parse_table("k int pk, a text, b blob, c text").unwrap();
        let mut layout = ColumnLayout::of(&table, table.regulars());
        let times = Times::new(EncodingStats::NONE, Version::NB);
        let livenesses = [
            Liveness::NONE,
            Liveness::live(1_000),
            Liveness::expiring(1_000, 60, 5_000),
        ];
        let ids: Vec<_> = table.regulars().map(|column| column.id).collect();
        let cells = cells();
        let mut plain_rows = 0;
        for number in 0..livenesses.len() * cells.len().pow(3) {
            let digit = |place: u32| &cells[number / cells.len().pow(place) % cells.len()];
            let columns = ids.iter().zip(0..).filter_map(|(id, place)| {
                let data = Data::Simple(digit(place).clone()?);
                Some(ColumnData { column: *id, data })
            });
            let row = Row {
                clustering: Clustering::empty(),
                liveness: livenesses[number / cells.len().pow(3)],
                deletion: DeletionTime::LIVE,
                columns: columns.collect(),
            };
            let Some(plain) = Plain::measure(&row, &layout, times, 1 << 12) else {
                assert!(row.is_empty());
                continue;
            };
            let mut stats = MetadataCollector::new(ClusteringComparator::new([]));
            let mut out = Writer::new();
            plain.encode(&layout, times, &mut stats, &mut out).unwrap();
            assert_eq!(out.len(), plain.body_len);
            let expected = the_long_way(&row, &mut layout, times);
            assert_eq!((plain.flags, out.into_vec(), told(stats)), expected);
            plain_rows += 1;
        }
        assert_eq!(plain_rows, 3 * 343 - 1);
    }

    #[test]
    fn rows_that_are_not_plain_go_the_long_way() {
        let table = parse_table("k int pk, a int, s set<int>").unwrap();
        let layout = ColumnLayout::of(&table, table.regulars());
        let times = Times::new(EncodingStats::NONE, Version::NB);
        let mut row = Row::empty(Clustering::empty());
        row.liveness = Liveness::live(1);
        assert!(Plain::measure(&row, &layout, times, 1 << 12).is_none());
        let table = parse_table("k int pk, a int").unwrap();
        let layout = ColumnLayout::of(&table, table.regulars());
        let is_plain = |row: &Row| Plain::measure(row, &layout, times, 1 << 12).is_some();
        assert!(is_plain(&row));
        let column = table.column_named("a").unwrap().id;
        let of_length = |len: usize| ColumnData {
            column,
            data: Data::Simple(Cell::live(1, Bytes::from(vec![0; len]))),
        };
        row.columns = vec![of_length(4)];
        assert!(is_plain(&row));
        row.columns = vec![of_length(5)];
        assert!(!is_plain(&row));
        row.columns.clear();
        row.deletion = DeletionTime::new(1, 1);
        assert!(!is_plain(&row));
    }
}
