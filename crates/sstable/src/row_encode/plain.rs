//! Rows as most are: of simple columns with short values. They are looked at first, and then written where they belong in
//! one go, with room left for their size. Others are encoded beside the buffer and copied.

use std::ops::Range;

use ilion_codec::{Append as _, Filling, Slab};
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
    pub(super) bytes_max: usize,
    /// Bytes that the size of the row before took: rows of a table are much alike.
    pub(super) size_len: usize,
}

/// What is the same for all rows of a table.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) clustering_lens: Vec<FixedLen>,
    pub(super) layout: ColumnLayout,
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
        form: &Form,
        previous_size: u64,
        stats: &mut MetadataCollector,
        out: &mut Slab,
    ) -> Result<Option<Range<usize>>, Unstorable> {
        let Some(missing) = missing_of(row, &form.layout) else {
            return Ok(None);
        };
        let values = match missing {
            0 => values_of(row, form.layout.all()),
            _ => values_of(row, form.layout.without(missing)),
        };
        let Some(values) = values.filter(|values| values.bytes < self.bytes_max) else {
            return Ok(None);
        };
        let start = out.len();
        out.u8(flags_of(&row.liveness, missing));
        encode_values(&form.clustering_lens, row.clustering.values(), out)?;
        let sized = self.begin_sized(&row.liveness, missing, form.times, previous_size, out);
        let with_own_times = match (values.are_as_row, missing) {
            (true, 0) => append_values(row, values, form.layout.all(), out),
            (true, _) => append_values(row, values, form.layout.without(missing), out),
            (false, 0) => append_cells(row, form.layout.all(), form.times, out),
            (false, _) => append_cells(row, form.layout.without(missing), form.times, out),
        };
        if !self.end_sized(sized, out) {
            out.truncate(start);
            return Ok(None);
        }
        tell(row, with_own_times, stats);
        Ok(Some(start + 1..sized.at))
    }

    /// Appends a row that was shown where it lies, all of it written at `timestamp_micros`. Gives the place of its clustering values in
    /// `out`; nothing if it is not to be written like this: nothing was appended then.
    #[inline(never)]
    pub(super) fn append_shown(
        &mut self,
        row: &PlainRow<'_>,
        timestamp_micros: i64,
        form: &Form,
        previous_size: u64,
        stats: &mut MetadataCollector,
        out: &mut Slab,
    ) -> Option<Range<usize>> {
        let missing = missing_of_shown(row, &form.layout)
            .filter(|_| row.clustering.len() == form.clustering_lens.len())?;
        let bytes = match row.stored {
            Some(stored) => Some(stored.len()),
            None => bytes_of_shown(row, form.layout.without(missing)),
        };
        let bytes = bytes.filter(|bytes| *bytes < self.bytes_max)?;
        let liveness = Liveness::live(timestamp_micros);
        let start = out.len();
        out.u8(flags_of(&liveness, missing));
        if encode_values(&form.clustering_lens, row.clustering, out).is_err() {
            out.truncate(start);
            return None;
        }
        let sized = self.begin_sized(&liveness, missing, form.times, previous_size, out);
        match row.stored {
            Some(stored) => out.bytes(stored),
            None => append_shown_values(row, bytes, form.layout.without(missing), out),
        }
        if !self.end_sized(sized, out) {
            out.truncate(start);
            return None;
        }
        stats.liveness(&liveness);
        stats.row(row.cells.len() as u64);
        #[expect(clippy::cast_possible_truncation, reason = "there are fewer than 64")]
        stats.cells_as_row(row.cells.len() as u32, &liveness);
        Some(start + 1..sized.at)
    }

    /// Appends what stands between the clustering and the cells, with room for the size.
    #[inline(always)]
    fn begin_sized(
        &self,
        liveness: &Liveness,
        missing: u64,
        times: Times,
        previous_size: u64,
        out: &mut Slab,
    ) -> Sized {
        let at = out.len();
        out.room(self.size_len);
        let from = out.len();
        out.uvint(previous_size);
        let body = out.len();
        if !liveness.is_none() {
            times.liveness(liveness, out);
        }
        if missing != 0 {
            out.uvint(missing);
        }
        Sized { at, from, body }
    }

    /// Puts the size where room was left for it. False if the row is too long.
    #[inline(always)]
    fn end_sized(&mut self, sized: Sized, out: &mut Slab) -> bool {
        let body_len = out.len() - sized.body;
        let size = (out.len() - sized.from) as u64;
        self.put_size(sized.at, size, out);
        body_len < self.bytes_max
    }

    /// Puts the size where room was left for it, and has the next row leave as much.
    #[inline(always)]
    pub(super) fn put_size(&mut self, at: usize, size: u64, out: &mut Slab) {
        self.size_len = out.uvint_at(at, self.size_len, size);
    }
}

/// A row whose size is not known yet.
#[derive(Clone, Copy, Debug)]
struct Sized {
    /// Where its size stands.
    at: usize,
    /// From where on it is counted.
    from: usize,
    /// Where its body begins.
    body: usize,
}

/// What a cell that is as its row takes beside its value, at most: flags and a length.
const CELL_HEAD_BYTES_MAX: usize = 1 + 9;

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

/// The same of a row that is shown. Nothing if its columns do not stand in the order of the table; if it has all of them, that shows
/// when they are looked at.
#[inline]
fn missing_of_shown(row: &PlainRow<'_>, layout: &ColumnLayout) -> Option<u64> {
    let mut missing = layout.bits_of_plain()?;
    if row.cells.len() == layout.len() && row.stored.is_none() {
        return Some(0);
    }
    let mut place_min = 0;
    for (id, _) in row.cells {
        let place = layout.place_of(*id).filter(|place| *place >= place_min)?;
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

/// The values of a row.
#[derive(Clone, Copy, Debug)]
struct RowValues {
    bytes: usize,
    /// No cell has times of its own.
    are_as_row: bool,
}

// What is in a loop over cells is a function of its own, so that the loop has all registers.

/// Looks at its values. Nothing if the row has other columns than these, in another order, or values that do not belong there.
#[inline(never)]
fn values_of<'c>(row: &Row, mut stored: impl Iterator<Item = &'c StoredColumn>) -> Option<RowValues> {
    let (mut bytes, mut are_as_row) = (0, true);
    for entry in &row.columns {
        let column = stored.next().filter(|column| column.id == entry.column)?;
        match &entry.data {
            Data::Simple(cell) if column.holds(&cell.value) => {
                bytes += cell.value.len();
                are_as_row &= is_as_row(cell, &row.liveness);
            }
            _ => return None,
        }
    }
    Some(RowValues { bytes, are_as_row })
}

/// Bytes of the values of a row that is shown, as [`values_of`].
fn bytes_of_shown<'c>(
    row: &PlainRow<'_>,
    mut stored: impl Iterator<Item = &'c StoredColumn>,
) -> Option<usize> {
    let mut bytes = 0;
    for (id, value) in row.cells {
        stored
            .next()
            .filter(|column| column.id == *id && column.holds(value))?;
        bytes += value.len();
    }
    Some(bytes)
}

/// Appends cells that are as their row, and belong to these columns. None has times of its own.
#[inline(never)]
fn append_values<'c>(
    row: &Row,
    values: RowValues,
    mut stored: impl Iterator<Item = &'c StoredColumn>,
    out: &mut Slab,
) -> u64 {
    let flags = flags_as_row(&row.liveness);
    let most = values.bytes + row.columns.len() * CELL_HEAD_BYTES_MAX;
    out.fill(most, |out| {
        for entry in &row.columns {
            if let (Data::Simple(cell), Some(column)) = (&entry.data, stored.next()) {
                append_as_row(&cell.value, column, flags, out);
            }
        }
    });
    0
}

/// The same of a row that is shown.
fn append_shown_values<'c>(
    row: &PlainRow<'_>,
    bytes: usize,
    mut stored: impl Iterator<Item = &'c StoredColumn>,
    out: &mut Slab,
) {
    let most = bytes + row.cells.len() * CELL_HEAD_BYTES_MAX;
    out.fill(most, |out| {
        for (_, value) in row.cells {
            if let Some(column) = stored.next() {
                append_as_row(value, column, cell_flag::USE_ROW_TIMESTAMP, out);
            }
        }
    });
}

/// Appends cells that belong to these columns. Gives a bit for each that has times of its own, the first one lowest.
fn append_cells<'c>(
    row: &Row,
    stored: impl Iterator<Item = &'c StoredColumn>,
    times: Times,
    out: &mut Slab,
) -> u64 {
    let liveness = &row.liveness;
    let mut with_own_times = 0;
    for (bit, (entry, column)) in row.columns.iter().zip(stored).enumerate() {
        let Data::Simple(cell) = &entry.data else {
            continue;
        };
        if !is_as_row(cell, liveness) {
            with_own_times |= 1 << bit;
        }
        let encoded = encode_cell_head(cell, column, None, liveness, times, out);
        debug_assert!(encoded.is_ok(), "the column holds the value");
        out.bytes(&cell.value);
    }
    with_own_times
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

#[inline(always)]
fn append_as_row(value: &[u8], column: &StoredColumn, flags: u8, out: &mut Filling<'_>) {
    match (value.len(), column.value_len) {
        (0, _) => out.u8(flags | cell_flag::HAS_EMPTY_VALUE),
        (_, Some(_)) => {
            out.u8(flags);
            append_fixed(value, out);
        }
        #[expect(clippy::cast_possible_truncation, reason = "it is in the range")]
        (len @ ..0x80, None) => {
            out.array([flags, len as u8]);
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
    use ilion_codec::Writer;
    use ilion_rows::notation::parse_table;
    use ilion_rows::{Clustering, ClusteringComparator, ColumnData, DeletionTime};
    use ilion_schema::TableSchema;

    use super::super::{EncodedBody, encode_body};
    use super::*;
    use crate::{EncodingStats, Version};

    fn told(mut stats: MetadataCollector) -> String {
        stats.end_partition(b"k", 1);
        format!("{:?}", stats.finish((Bytes::new(), Bytes::new())))
    }

    /// The body and the statistics as the long way has them.
    fn the_long_way(row: &Row, form: &mut Form) -> (u8, Vec<u8>, String) {
        let mut stats = MetadataCollector::new(ClusteringComparator::new([]));
        let mut body = EncodedBody::default();
        form.layout.choose(row).unwrap();
        let flags = encode_body(row, &form.layout, form.times, &mut stats, &mut body).unwrap();
        let bytes = body.as_slice().unwrap().to_vec();
        (flags, bytes, told(stats))
    }

    const PREVIOUS_SIZE: u64 = 300;

    fn form_of(table: &TableSchema) -> Form {
        Form {
            clustering_lens: Vec::new(),
            layout: ColumnLayout::of(table, table.regulars()),
            times: Times::new(EncodingStats::NONE, Version::NB),
        }
    }

    /// What is appended for a row, if it is plain.
    fn written(
        rows: &mut PlainRows,
        row: &Row,
        form: &Form,
        stats: &mut MetadataCollector,
    ) -> Option<Vec<u8>> {
        let mut out = Slab::default();
        out.bytes(b"before");
        let clustering = rows.append(row, form, PREVIOUS_SIZE, stats, &mut out).unwrap();
        let written = out.as_slice().strip_prefix(b"before").unwrap();
        assert_eq!(clustering.is_none(), written.is_empty());
        clustering.map(|_| written.to_vec())
    }

    /// How a row comes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Way {
        Row,
        Shown,
        Stored,
    }

    fn shown<'c>(cells: &'c [(ColumnId, &'c [u8])], stored: Option<&'c [u8]>) -> PlainRow<'c> {
        PlainRow {
            key: &[],
            token: None,
            clustering: &[],
            timestamp_micros: None,
            cells,
            stored,
        }
    }

    /// The cells of a row that was written at once.
    fn cells_as_row(row: &Row) -> Option<Vec<(ColumnId, &[u8])>> {
        let cells = row.columns.iter().map(|entry| match &entry.data {
            Data::Simple(cell) if is_as_row(cell, &row.liveness) => Some((entry.column, &cell.value[..])),
            _ => None,
        });
        cells
            .collect::<Option<_>>()
            .filter(|_| row.liveness.ttl_secs == NO_TTL)
    }

    /// The same, if it is as most are and there is room for it.
    fn usually_written(
        rows: &mut PlainRows,
        row: &Row,
        way: Way,
        form: &Form,
        room: usize,
    ) -> Option<(Vec<u8>, String)> {
        let mut stats = MetadataCollector::new(ClusteringComparator::new([]));
        let before = format!("{stats:?}");
        let mut out = Slab::with_capacity(room);
        let clustering = match way {
            Way::Row => rows.append_usual(row, form, PREVIOUS_SIZE, &mut stats, &mut out),
            Way::Shown | Way::Stored => {
                let cells = cells_as_row(row)?;
                let micros = row.liveness.timestamp_micros;
                let mut stored = Slab::with_capacity(1 << 13);
                if way == Way::Stored {
                    let shown = shown(&cells, None);
                    let bytes = bytes_of_shown(&shown, form.layout.all())?;
                    append_shown_values(&shown, bytes, form.layout.all(), &mut stored);
                }
                let stored = (way == Way::Stored).then_some(stored.as_slice());
                let row = shown(&cells, stored);
                rows.append_usual_shown(&row, micros, form, PREVIOUS_SIZE, &mut stats, &mut out)
            }
        };
        if clustering.is_none() {
            assert!(
                out.is_empty() && format!("{stats:?}") == before,
                "nothing is told"
            );
        }
        clustering.map(|_| (out.as_slice().to_vec(), told(stats)))
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
        let mut form = form_of(&table);
        let livenesses = [
            Liveness::NONE,
            Liveness::live(1_000),
            Liveness::expiring(1_000, 60, 5_000),
        ];
        let ids: Vec<_> = table.regulars().map(|column| column.id).collect();
        let cells = cells();
        let mut rows = PlainRows::shorter_than(1 << 12);
        let (mut plain_rows, mut usual_rows) = (0, 0);
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
            let Some(written) = written(&mut rows, &row, &form, &mut stats) else {
                assert!(row.is_empty());
                continue;
            };
            let (flags, body, expected_told) = the_long_way(&row, &mut form);
            let mut expected = Writer::new();
            expected.u8(flags);
            expected.uvint(2 + body.len() as u64);
            expected.uvint(PREVIOUS_SIZE);
            expected.bytes(&body);
            let expected = (expected.into_vec(), expected_told);
            assert_eq!((written, told(stats)), expected);
            plain_rows += 1;
            // With too little room it is left alone.
            for room in [0, 1, 7, 30, expected.0.len() - 1, expected.0.len() + 9, 4096] {
                for way in [Way::Row, Way::Shown, Way::Stored] {
                    if let Some(usual) = usually_written(&mut rows, &row, way, &form, room) {
                        assert_eq!(usual, expected, "{way:?}");
                        usual_rows += 1;
                    }
                }
            }
        }
        assert_eq!((plain_rows, usual_rows), (3 * 343 - 1, 2 + 2 + 17));
    }

    #[test]
    fn rows_that_are_not_plain_go_the_long_way() {
        let table = parse_table("k int pk, a int, s set<int>").unwrap();
        let form = form_of(&table);
        let is_plain = |row: &Row, form: &Form| {
            let mut stats = MetadataCollector::new(ClusteringComparator::new([]));
            let before = format!("{stats:?}");
            let written = written(&mut PlainRows::shorter_than(1 << 12), row, form, &mut stats);
            assert!(
                written.is_some() || format!("{stats:?}") == before,
                "nothing is told"
            );
            written.is_some()
        };
        let mut row = Row::empty(Clustering::empty());
        row.liveness = Liveness::live(1);
        assert!(!is_plain(&row, &form));
        let table = parse_table("k int pk, a int").unwrap();
        let form = form_of(&table);
        assert!(is_plain(&row, &form));
        let column = table.column_named("a").unwrap().id;
        let of_length = |len: usize| ColumnData {
            column,
            data: Data::Simple(Cell::live(1, Bytes::from(vec![0; len]))),
        };
        row.columns = vec![of_length(4)];
        assert!(is_plain(&row, &form));
        row.columns = vec![of_length(5)];
        assert!(!is_plain(&row, &form));
        row.columns.clear();
        row.deletion = DeletionTime::new(1, 1);
        assert!(!is_plain(&row, &form));
        let table = parse_table("k int pk, a blob, b blob").unwrap();
        let form = form_of(&table);
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
            assert_eq!(is_plain(&row, &form), expected);
            let usual = usually_written(
                &mut PlainRows::shorter_than(1 << 12),
                &row,
                Way::Row,
                &form,
                1 << 13,
            );
            assert_eq!(usual.is_some(), expected && row.columns.len() == 2);
        }
    }
}
