//! Rows as most are: of simple columns with short values. They are written where they belong in one go, with room left for their size;
//! when it turns out that a row is not like that, what was written is taken back, and it is encoded beside the buffer and copied.

use std::ops::Range;

use ilion_codec::{Writer, unsigned_vint_len};
use ilion_rows::{Cell, Data, Liveness, NO_TTL, PlainRow, Row};
use ilion_schema::ColumnId;

use super::cell::{cell_flag, encode_cell_head};
use super::columns::{ColumnLayout, StoredColumn};
use super::times::Times;
use super::unfiltered_flag;
use crate::metadata_collector::MetadataCollector;
use crate::values::{FixedLen, Unstorable, append_fixed, encode_values};

/// Writes plain rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlainRows {
    /// Bodies that are shorter are written.
    bytes_max: usize,
    /// Bytes that the size of the row before took: rows of a table are much alike.
    size_len: usize,
}

/// What is the same for all rows of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form<'t> {
    pub(super) clustering_lens: &'t [FixedLen],
    pub(super) layout: &'t ColumnLayout,
    pub(super) times: Times,
}

impl PlainRows {
    pub(super) fn shorter_than(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            size_len: 1,
        }
    }

    /// Has only those written that are also shorter than this.
    #[must_use]
    pub(super) fn and_shorter_than(self, bytes_max: usize) -> Self {
        Self::shorter_than(self.bytes_max.min(bytes_max))
    }

    /// Appends the row. Gives the place of its clustering values in `out`; nothing if it is not plain or has nothing to store.
    #[inline]
    pub(super) fn append(
        &mut self,
        row: &Row,
        form: Form<'_>,
        previous_size: u64,
        stats: &mut MetadataCollector,
        out: &mut Writer,
    ) -> Result<Option<Range<usize>>, Unstorable> {
        let Some(missing) = missing_of(row, form.layout) else {
            return Ok(None);
        };
        let start = out.len();
        out.u8(flags_of(&row.liveness, missing));
        encode_values(form.clustering_lens, row.clustering.values(), out)?;
        let sized = self.begin_sized(&row.liveness, missing, form.times, previous_size, out);
        let bytes_end = sized.bytes_end;
        let with_own_times = match missing {
            0 => append_cells(row, form.layout.all(), form.times, bytes_end, out),
            _ => append_cells(row, form.layout.without(missing), form.times, bytes_end, out),
        };
        let Some(with_own_times) = with_own_times.filter(|_| out.len() < bytes_end) else {
            out.truncate(start);
            return Ok(None);
        };
        self.end_sized(sized, out);
        tell(row, with_own_times, stats);
        Ok(Some(start + 1..sized.at))
    }

    /// Appends a row that was shown where it lies, all of it written at `timestamp_micros`. False if it is not to be written like this:
    /// nothing was appended then.
    #[inline]
    pub(super) fn append_shown(
        &mut self,
        row: &PlainRow<'_>,
        timestamp_micros: i64,
        form: Form<'_>,
        previous_size: u64,
        stats: &mut MetadataCollector,
        out: &mut Writer,
    ) -> bool {
        let ids = row.cells.iter().map(|(id, _)| *id);
        let missing = missing_of_sorted(ids, form.layout);
        let Some(missing) = missing.filter(|_| form.clustering_lens.is_empty()) else {
            return false;
        };
        let liveness = Liveness::live(timestamp_micros);
        let start = out.len();
        out.u8(flags_of(&liveness, missing));
        let sized = self.begin_sized(&liveness, missing, form.times, previous_size, out);
        let bytes_end = sized.bytes_end;
        let is_plain = match (row.stored, missing) {
            (Some(stored), _) if out.len() + stored.len() < bytes_end => {
                out.bytes(stored);
                true
            }
            (Some(_), _) => false,
            (None, 0) => append_shown_cells(row, form.layout.all(), bytes_end, out),
            (None, _) => append_shown_cells(row, form.layout.without(missing), bytes_end, out),
        };
        if !is_plain || out.len() >= bytes_end {
            out.truncate(start);
            return false;
        }
        self.end_sized(sized, out);
        stats.liveness(&liveness);
        stats.row(row.cells.len() as u64);
        #[expect(clippy::cast_possible_truncation, reason = "there are fewer than 64")]
        stats.cells_as_row(row.cells.len() as u32, &liveness);
        true
    }

    /// Appends what stands between the clustering and the cells, with room for the size.
    #[inline(always)]
    fn begin_sized(
        &self,
        liveness: &Liveness,
        missing: u64,
        times: Times,
        previous_size: u64,
        out: &mut Writer,
    ) -> Sized {
        let at = out.len();
        out.bytes(&[0; 9][..self.size_len]);
        let from = out.len();
        out.uvint(previous_size);
        let bytes_end = out.len() + self.bytes_max;
        if !liveness.is_none() {
            times.liveness(liveness, out);
        }
        if missing != 0 {
            out.uvint(missing);
        }
        Sized { at, from, bytes_end }
    }

    /// Puts the size where room was left for it.
    #[inline(always)]
    fn end_sized(&mut self, sized: Sized, out: &mut Writer) {
        let size = (out.len() - sized.from) as u64;
        out.uvint_at(sized.at, self.size_len, size);
        self.size_len = unsigned_vint_len(size);
    }
}

/// A row whose size is not known yet.
#[derive(Clone, Copy, Debug)]
struct Sized {
    /// Where its size stands.
    at: usize,
    /// From where on it is counted.
    from: usize,
    /// Where its body ends at the latest.
    bytes_end: usize,
}

/// A bit for each column that the row does not have. Nothing if the row is not plain.
#[inline]
fn missing_of(row: &Row, layout: &ColumnLayout) -> Option<u64> {
    if !row.deletion.is_live() || (row.columns.is_empty() && row.liveness.is_none()) {
        return None;
    }
    missing_among(row.columns.iter().map(|entry| entry.column), layout)
}

/// A bit for each column that is not among these. Nothing if rows of them are not plain.
#[inline]
fn missing_among(ids: impl ExactSizeIterator<Item = ColumnId>, layout: &ColumnLayout) -> Option<u64> {
    let mut missing = layout.bits_of_plain()?;
    if ids.len() == layout.len() {
        // That it has each of them once shows when they are written.
        return Some(0);
    }
    for id in ids {
        missing &= !(1 << layout.place_of(id)?);
    }
    Some(missing)
}

/// The same of columns that are to stand in this order: nothing if they do not.
#[inline]
fn missing_of_sorted(ids: impl Iterator<Item = ColumnId>, layout: &ColumnLayout) -> Option<u64> {
    let mut missing = layout.bits_of_plain()?;
    let mut place_min = 0;
    for id in ids {
        let place = layout.place_of(id).filter(|place| *place >= place_min)?;
        missing &= !(1 << place);
        place_min = place + 1;
    }
    Some(missing)
}

#[inline]
fn flags_of(liveness: &Liveness, missing: u64) -> u8 {
    let mut flags = 0;
    if !liveness.is_none() {
        flags |= unfiltered_flag::HAS_TIMESTAMP;
        if liveness.ttl_secs != NO_TTL {
            flags |= unfiltered_flag::HAS_TTL;
        }
    }
    if missing == 0 {
        flags |= unfiltered_flag::HAS_ALL_COLUMNS;
    }
    flags
}

/// Appends the cells of the columns that are expected. Gives a bit for each that has times of its own, the first one lowest; nothing if the
/// row has other columns, in another order, or values that do not belong here.
#[inline]
fn append_cells<'c>(
    row: &Row,
    mut stored: impl Iterator<Item = &'c StoredColumn>,
    times: Times,
    bytes_end: usize,
    out: &mut Writer,
) -> Option<u64> {
    let liveness = &row.liveness;
    let flags = flags_as_row(liveness);
    let mut with_own_times = 0;
    for (bit, entry) in row.columns.iter().enumerate() {
        let column = stored.next().filter(|column| column.id == entry.column)?;
        let Data::Simple(cell) = &entry.data else {
            return None;
        };
        let value = &cell.value[..];
        if out.len() + value.len() >= bytes_end || !column.holds(value) {
            return None;
        }
        if is_as_row(cell, liveness) {
            append_as_row(value, column, flags, out);
        } else {
            with_own_times |= 1 << bit;
            encode_cell_head(cell, column, None, liveness, times, out).ok()?;
            out.bytes(value);
        }
    }
    Some(with_own_times)
}

/// As [`append_cells`]. False if the row has other columns, in another order, or values that do not belong here.
#[inline]
fn append_shown_cells<'c>(
    row: &PlainRow<'_>,
    mut stored: impl Iterator<Item = &'c StoredColumn>,
    bytes_end: usize,
    out: &mut Writer,
) -> bool {
    row.cells.iter().all(|(id, value)| {
        let column = stored.next().filter(|column| column.id == *id);
        let fits = out.len() + value.len() < bytes_end;
        match column.filter(|column| fits && column.holds(value)) {
            Some(column) => append_as_row(value, column, cell_flag::USE_ROW_TIMESTAMP, out),
            None => return false,
        }
        true
    })
}

/// Tells what was stored.
#[inline]
fn tell(row: &Row, with_own_times: u64, stats: &mut MetadataCollector) {
    if !row.liveness.is_none() {
        stats.liveness(&row.liveness);
    }
    let cells = row.columns.len();
    stats.row(cells as u64);
    #[expect(clippy::cast_possible_truncation, reason = "there are fewer than 64")]
    stats.cells_as_row(cells as u32 - with_own_times.count_ones(), &row.liveness);
    if with_own_times == 0 {
        return;
    }
    for (bit, entry) in row.columns.iter().enumerate() {
        if let Data::Simple(cell) = &entry.data
            && with_own_times >> bit & 1 == 1
        {
            stats.cell(cell);
        }
    }
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
fn append_as_row(value: &[u8], column: &StoredColumn, flags: u8, out: &mut Writer) {
    match (value.len(), column.value_len) {
        (0, _) => out.u8(flags | cell_flag::HAS_EMPTY_VALUE),
        (_, Some(_)) => {
            out.u8(flags);
            append_fixed(value, out);
        }
        #[expect(clippy::cast_possible_truncation, reason = "it is in the range")]
        (len @ ..0x80, None) => {
            out.bytes(&[flags, len as u8]);
            out.bytes(value);
        }
        (len, None) => {
            out.u8(flags);
            out.uvint(len as u64);
            out.bytes(value);
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

    const PREVIOUS_SIZE: u64 = 300;

    fn times() -> Times {
        Times::new(EncodingStats::NONE, Version::NB)
    }

    /// What is appended for a row, if it is plain.
    fn written(
        rows: &mut PlainRows,
        row: &Row,
        layout: &ColumnLayout,
        stats: &mut MetadataCollector,
    ) -> Option<Vec<u8>> {
        let form = Form {
            clustering_lens: &[],
            layout,
            times: times(),
        };
        let mut out = Writer::from_vec(b"before".to_vec());
        let clustering = rows.append(row, form, PREVIOUS_SIZE, stats, &mut out).unwrap();
        let written = out.as_slice().strip_prefix(b"before").unwrap();
        assert_eq!(clustering.is_none(), written.is_empty());
        clustering.map(|_| written.to_vec())
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
        let times = times();
        let livenesses = [
            Liveness::NONE,
            Liveness::live(1_000),
            Liveness::expiring(1_000, 60, 5_000),
        ];
        let ids: Vec<_> = table.regulars().map(|column| column.id).collect();
        let cells = cells();
        let mut rows = PlainRows::shorter_than(1 << 12);
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
            let mut stats = MetadataCollector::new(ClusteringComparator::new([]));
            let Some(written) = written(&mut rows, &row, &layout, &mut stats) else {
                assert!(row.is_empty());
                continue;
            };
            let (flags, body, expected_told) = the_long_way(&row, &mut layout, times);
            let mut expected = Writer::new();
            expected.u8(flags);
            expected.uvint(2 + body.len() as u64);
            expected.uvint(PREVIOUS_SIZE);
            expected.bytes(&body);
            assert_eq!((written, told(stats)), (expected.into_vec(), expected_told));
            plain_rows += 1;
        }
        assert_eq!(plain_rows, 3 * 343 - 1);
    }

    #[test]
    fn rows_that_are_not_plain_go_the_long_way() {
        let table = parse_table("k int pk, a int, s set<int>").unwrap();
        let layout = ColumnLayout::of(&table, table.regulars());
        let is_plain = |row: &Row, layout: &ColumnLayout| {
            let mut stats = MetadataCollector::new(ClusteringComparator::new([]));
            let before = format!("{stats:?}");
            let written = written(&mut PlainRows::shorter_than(1 << 12), row, layout, &mut stats);
            assert!(
                written.is_some() || format!("{stats:?}") == before,
                "nothing is told"
            );
            written.is_some()
        };
        let mut row = Row::empty(Clustering::empty());
        row.liveness = Liveness::live(1);
        assert!(!is_plain(&row, &layout));
        let table = parse_table("k int pk, a int").unwrap();
        let layout = ColumnLayout::of(&table, table.regulars());
        assert!(is_plain(&row, &layout));
        let column = table.column_named("a").unwrap().id;
        let of_length = |len: usize| ColumnData {
            column,
            data: Data::Simple(Cell::live(1, Bytes::from(vec![0; len]))),
        };
        row.columns = vec![of_length(4)];
        assert!(is_plain(&row, &layout));
        row.columns = vec![of_length(5)];
        assert!(!is_plain(&row, &layout));
        row.columns.clear();
        row.deletion = DeletionTime::new(1, 1);
        assert!(!is_plain(&row, &layout));
        let table = parse_table("k int pk, a blob, b blob").unwrap();
        let layout = ColumnLayout::of(&table, table.regulars());
        let blob = |name: &str, len: usize| ColumnData {
            column: table.column_named(name).unwrap().id,
            data: Data::Simple(Cell::live(1, Bytes::from(vec![0; len]))),
        };
        row.deletion = DeletionTime::LIVE;
        for (columns, expected) in [
            (vec![blob("a", 1), blob("b", 1)], true),
            (vec![blob("b", 1), blob("a", 1)], false),
            (vec![blob("a", 1), blob("a", 1)], false),
            (vec![blob("b", 4000)], true),
            (vec![blob("a", 2048), blob("b", 2048)], false),
        ] {
            row.columns = columns;
            assert_eq!(is_plain(&row, &layout), expected);
        }
    }
}
