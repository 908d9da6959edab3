//! A row in one piece of memory. Most rows are short and have simple columns only; as structures they would need more memory than
//! their values.
//!
//! ```text
//! packed  := flags:u8  value_count:u8  column_count:u8  value *  [ts:i64 [ends]]  column *
//!          | flags:u8  value_count:u8  0  value *  ts:i64  local_secs:u32         a row deletion and nothing else
//! value   := len:u16  bytes                           of the clustering; FFFF: a null
//! column  := id:u16  flags:u8  len:u16  [ts:i64] [ends]  bytes
//! ends    := ttl_secs:u32  local_secs:u32
//! ```
//!
//! Little-endian; never written to a file. A cell without times of its own has those of the row.
//!
//! Invariant: the row is not empty. It has no row deletion, unless it has nothing else.

use bytes::{Buf, Bytes};
use ilion_rows::{
    Before, Cell, CellRef, Clustering, ColumnData, Data, DeletionTime, Liveness, NO_DELETION_TIME, NO_TTL,
    Row, Values,
};
use ilion_schema::ColumnId;
use smallvec::SmallVec;

use crate::arena::Arena;
use crate::observed::{Observed, Observer};

/// Larger rows are not packed, since a change of one column copies the whole row.
const BYTES_MAX: usize = 8 << 10;
const COLUMNS_MAX: usize = 64;
const HEADER_BYTES: usize = 3;
const LENGTH_BYTES: usize = 2;
const COLUMN_BYTES: usize = 5;
const DELETION_BYTES: usize = 12;
const NULL: u16 = u16::MAX;

/// Flag of the row: the row has a liveness.
const IS_LIVE: u8 = 1;
/// Flag of the row: it has a liveness, and no cell has times of its own.
const IS_UNIFORM: u8 = 2;
/// Flag of the row: it is a row deletion.
const IS_DELETION: u8 = 16;
/// Flag of the row: the bytes are in an arena. The contents do not depend on this flag.
const IS_IN_ARENA: u8 = 8;
/// Flag of a cell: it has a timestamp of its own.
const HAS_TIMESTAMP: u8 = 1;
/// Flag of a cell or of the row's liveness: TTL and local time follow.
const HAS_ENDS: u8 = 4;

/// Columns with their values.
pub(crate) type Cells<'p> = SmallVec<[(ColumnId, &'p [u8]); 8]>;

/// A packed row.
#[derive(Clone, Debug)]
pub(crate) struct Packed(Bytes);

impl Packed {
    /// Packs a row; `None` if the row cannot be packed or is too large.
    pub(crate) fn of(row: &Row) -> Option<Self> {
        let length = length_of(row)?;
        let mut out = Vec::with_capacity(length);
        encode(row, &mut out);
        debug_assert_eq!(out.len(), length);
        Some(Self(out.into()))
    }

    /// Moves the row into an arena; returns it unchanged if it is too long for an arena.
    pub(crate) fn moved_to(self, arena: &mut Arena) -> Self {
        let Some((flags, rest)) = self.0.split_first() else {
            return self;
        };
        match arena.copy(flags | IS_IN_ARENA, rest) {
            Some(bytes) => Self(bytes),
            None => self,
        }
    }

    #[inline]
    pub(crate) fn is_in_arena(&self) -> bool {
        self.0.first().is_some_and(|flags| flags & IS_IN_ARENA != 0)
    }

    /// True if the row is a deletion and has nothing else.
    #[inline]
    pub(crate) fn is_deletion(&self) -> bool {
        self.0.first().is_some_and(|flags| flags & IS_DELETION != 0)
    }

    /// Number of bytes of the packed row, without this structure.
    pub(crate) fn size_bytes(&self) -> usize {
        self.0.len()
    }

    /// The row; its values share this memory.
    pub(crate) fn row(&self) -> Row {
        let mut parts = self.0.clone();
        let mut reading = PackedReader::of(&self.0);
        let values = reading.values(&mut parts);
        if let Some(deletion) = reading.deletion() {
            return Row {
                deletion,
                ..Row::empty(Clustering::new(values))
            };
        }
        let liveness = reading.liveness();
        let columns = reading.columns(&liveness, &mut parts);
        Row::live(Clustering::new(values), liveness, columns)
    }

    /// The cells of the row in these columns.
    #[inline]
    pub(crate) fn cells<'p>(&'p self, columns: &[ColumnId]) -> impl Iterator<Item = (ColumnId, CellRef<'p>)> {
        let mut reading = PackedReader::of(&self.0);
        reading.pass_values();
        let liveness = reading.liveness();
        let cells = (0..reading.header[2]).map(move |_| reading.cell(&liveness));
        cells
            .filter(|(column, _)| columns.contains(column))
            .take(columns.len())
    }

    /// Shows an observer that this row becomes another one.
    pub(crate) fn show_change(&self, after: &Row, observer: &mut Observer<'_>) {
        match observer.observed {
            Observed::Rows => observer.show(Some(Before::Row(&self.row())), after),
            Observed::Columns(columns) => {
                let mut cells = self.cells(columns);
                match columns.len() {
                    1 => observer.show(Some(Before::Cells(cells.next().as_slice())), after),
                    _ => {
                        let cells: SmallVec<[_; 4]> = cells.collect();
                        observer.show(Some(Before::Cells(&cells)), after);
                    }
                }
            }
        }
    }

    /// Appends the row's cells, and returns their timestamp; `None` if timestamps differ, or the row has no liveness, expires, or has
    /// a clustering.
    #[inline]
    pub(crate) fn plain_cells<'p>(&'p self, cells: &mut Cells<'p>) -> Option<i64> {
        let mut reading = PackedReader::of(&self.0);
        let [flags, values, columns] = reading.header;
        if flags & (IS_UNIFORM | HAS_ENDS) != IS_UNIFORM || values != 0 {
            return None;
        }
        let liveness = reading.liveness();
        for _ in 0..columns {
            let (column, cell) = reading.cell(&liveness);
            cells.push((column, cell.value));
        }
        Some(liveness.timestamp_micros)
    }

    /// The values of the clustering.
    #[inline]
    pub(crate) fn clustering(&self) -> impl Iterator<Item = Option<&[u8]>> {
        let mut reading = PackedReader::of(&self.0);
        (0..reading.header[1]).map(move |_| reading.value())
    }

    /// True if the deletion covers no part of the row. May return false for rows whose cells have times of their own.
    pub(crate) fn is_newer_than(&self, deletion: DeletionTime) -> bool {
        let mut reading = PackedReader::of(&self.0);
        if reading.header[0] & IS_UNIFORM == 0 {
            return false;
        }
        reading.pass_values();
        reading.liveness().timestamp_micros > deletion.marked_at_micros
    }

    /// True if a merge with `known`, a row of the same clustering without counters, returns exactly this row: this row is newer, and
    /// has the same columns. May return false for rows whose cells have times of their own.
    pub(crate) fn replaces(&self, known: &Self) -> bool {
        let (mut new, mut old) = (PackedReader::of(&self.0), PackedReader::of(&known.0));
        if new.header != old.header || new.header[0] & IS_UNIFORM == 0 {
            return false;
        }
        new.pass_values();
        old.pass_values();
        new.liveness().timestamp_micros > old.liveness().timestamp_micros
            && (0..new.header[2]).all(|_| new.column_id() == old.column_id())
    }
}

/// Length of the packed row in bytes; `None` if the row cannot be packed or is too large.
fn length_of(row: &Row) -> Option<usize> {
    let values = row.clustering.values();
    let is_deletion = row.is_deletion();
    if (!is_deletion && !row.deletion.is_live())
        || row.is_empty()
        || row.columns.len() > COLUMNS_MAX
        || values.len() > usize::from(u8::MAX)
    {
        return None;
    }
    let mut length = HEADER_BYTES + LENGTH_BYTES * values.len();
    length += values.iter().flatten().map(Bytes::len).sum::<usize>();
    length += if is_deletion { DELETION_BYTES } else { 0 };
    if !row.liveness.is_none() {
        length += 8 + if is_ending(&row.liveness) { 8 } else { 0 };
    }
    for entry in &row.columns {
        let Data::Simple(cell) = &entry.data else {
            return None;
        };
        let flags = flags_of(cell, &row.liveness);
        length += COLUMN_BYTES + cell.value.len();
        length += if flags & HAS_TIMESTAMP != 0 { 8 } else { 0 };
        length += if flags & HAS_ENDS != 0 { 8 } else { 0 };
    }
    (length <= BYTES_MAX).then_some(length)
}

fn is_ending(liveness: &Liveness) -> bool {
    (liveness.ttl_secs, liveness.expires_secs) != (NO_TTL, NO_DELETION_TIME)
}

#[inline]
fn flags_of(cell: &Cell, liveness: &Liveness) -> u8 {
    let is_of_row = cell.timestamp_micros == liveness.timestamp_micros
        && cell.ttl_secs == liveness.ttl_secs
        && cell.local_deletion_secs == liveness.expires_secs
        && !liveness.is_none();
    if is_of_row {
        return 0;
    }
    match (cell.ttl_secs, cell.local_deletion_secs) {
        (NO_TTL, NO_DELETION_TIME) => HAS_TIMESTAMP,
        _ => HAS_TIMESTAMP | HAS_ENDS,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a packed row has few columns and few bytes"
)]
fn encode(row: &Row, out: &mut Vec<u8>) {
    let (values, liveness) = (row.clustering.values(), &row.liveness);
    out.extend_from_slice(&[0, values.len() as u8, row.columns.len() as u8]);
    for value in values {
        let len = value.as_ref().map_or(NULL, |value| value.len() as u16);
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(value.as_deref().unwrap_or_default());
    }
    if row.is_deletion() {
        out[0] = IS_DELETION;
        out.extend_from_slice(&row.deletion.marked_at_micros.to_le_bytes());
        out.extend_from_slice(&row.deletion.local_secs.to_le_bytes());
        return;
    }
    let mut flags = 0;
    if !liveness.is_none() {
        flags = IS_LIVE | IS_UNIFORM;
        out.extend_from_slice(&liveness.timestamp_micros.to_le_bytes());
        if is_ending(liveness) {
            flags |= HAS_ENDS;
            append_ends(liveness.ttl_secs, liveness.expires_secs, out);
        }
    }
    for entry in &row.columns {
        let Data::Simple(cell) = &entry.data else {
            continue;
        };
        let cell_flags = flags_of(cell, liveness);
        let ([id_low, id_high], [len_low, len_high]) = (
            entry.column.0.to_le_bytes(),
            (cell.value.len() as u16).to_le_bytes(),
        );
        out.extend_from_slice(&[id_low, id_high, cell_flags, len_low, len_high]);
        if cell_flags != 0 {
            flags &= !IS_UNIFORM;
            out.extend_from_slice(&cell.timestamp_micros.to_le_bytes());
            if cell_flags & HAS_ENDS != 0 {
                append_ends(cell.ttl_secs, cell.local_deletion_secs, out);
            }
        }
        out.extend_from_slice(&cell.value);
    }
    out[0] = flags;
}

fn append_ends(ttl_secs: u32, local_secs: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&ttl_secs.to_le_bytes());
    out.extend_from_slice(&local_secs.to_le_bytes());
}

/// Reads a packed row from its start. Only this module makes packed rows, so bytes are never missing; if they were, they would be
/// read as zeros.
struct PackedReader<'p> {
    header: [u8; HEADER_BYTES],
    rest: &'p [u8],
}

impl<'p> PackedReader<'p> {
    #[inline]
    fn of(all: &'p [u8]) -> Self {
        let mut reading = Self {
            header: [0; HEADER_BYTES],
            rest: all,
        };
        reading.header = reading.take();
        reading.header[0] &= !IS_IN_ARENA;
        reading
    }

    #[inline]
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let Some((taken, rest)) = self.rest.split_first_chunk() else {
            return [0; N];
        };
        self.rest = rest;
        *taken
    }

    #[inline]
    fn bytes(&mut self, len: u16) -> &'p [u8] {
        let (taken, rest) = self.rest.split_at(usize::from(len).min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// The next bytes, as a slice of `parts`, which ends where `rest` ends.
    #[inline]
    fn part(&mut self, len: u16, parts: &mut Bytes) -> Bytes {
        parts.advance(parts.len().saturating_sub(self.rest.len()));
        parts.split_to(self.bytes(len).len())
    }

    /// The next value of the clustering.
    #[inline]
    fn value(&mut self) -> Option<&'p [u8]> {
        match u16::from_le_bytes(self.take()) {
            NULL => None,
            len => Some(self.bytes(len)),
        }
    }

    #[inline]
    fn pass_values(&mut self) {
        for _ in 0..self.header[1] {
            self.value();
        }
    }

    #[inline]
    fn values(&mut self, parts: &mut Bytes) -> Values {
        let mut values = Values::new();
        for _ in 0..self.header[1] {
            values.push(match u16::from_le_bytes(self.take()) {
                NULL => None,
                len => Some(self.part(len, parts)),
            });
        }
        values
    }

    #[inline]
    fn liveness(&mut self) -> Liveness {
        if self.header[0] & IS_LIVE == 0 {
            return Liveness::NONE;
        }
        let mut liveness = Liveness::live(i64::from_le_bytes(self.take()));
        if self.header[0] & HAS_ENDS != 0 {
            (liveness.ttl_secs, liveness.expires_secs) = self.ends();
        }
        liveness
    }

    /// The deletion; `None` if the row is none.
    #[inline]
    fn deletion(&mut self) -> Option<DeletionTime> {
        (self.header[0] & IS_DELETION != 0).then(|| {
            let marked_at_micros = i64::from_le_bytes(self.take());
            DeletionTime::new(marked_at_micros, u32::from_le_bytes(self.take()))
        })
    }

    fn ends(&mut self) -> (u32, u32) {
        (u32::from_le_bytes(self.take()), u32::from_le_bytes(self.take()))
    }

    #[inline]
    fn columns(&mut self, liveness: &Liveness, parts: &mut Bytes) -> Vec<ColumnData> {
        let mut columns = Vec::with_capacity(usize::from(self.header[2]));
        for _ in 0..self.header[2] {
            let (column, cell) = self.cell(liveness);
            let behind = self.rest.len();
            parts.advance(parts.len().saturating_sub(behind + cell.value.len()));
            let data = Data::Simple(Cell {
                timestamp_micros: cell.timestamp_micros,
                ttl_secs: cell.ttl_secs,
                local_deletion_secs: cell.local_deletion_secs,
                value: parts.split_to(cell.value.len()),
            });
            columns.push(ColumnData { column, data });
        }
        columns
    }

    /// The next cell.
    #[inline]
    fn cell(&mut self, liveness: &Liveness) -> (ColumnId, CellRef<'p>) {
        let [id_low, id_high, flags, len_low, len_high] = self.take();
        let (mut timestamp_micros, mut ends) = (
            liveness.timestamp_micros,
            (liveness.ttl_secs, liveness.expires_secs),
        );
        if flags & HAS_TIMESTAMP != 0 {
            timestamp_micros = i64::from_le_bytes(self.take());
            ends = match flags & HAS_ENDS {
                0 => (NO_TTL, NO_DELETION_TIME),
                _ => self.ends(),
            };
        }
        let cell = CellRef {
            timestamp_micros,
            ttl_secs: ends.0,
            local_deletion_secs: ends.1,
            value: self.bytes(u16::from_le_bytes([len_low, len_high])),
        };
        (ColumnId(u16::from_le_bytes([id_low, id_high])), cell)
    }

    /// The id of the next column. Requires: the cell has no times of its own.
    #[inline]
    fn column_id(&mut self) -> [u8; 2] {
        let [id_low, id_high, _, len_low, len_high] = self.take();
        self.bytes(u16::from_le_bytes([len_low, len_high]));
        [id_low, id_high]
    }
}

#[cfg(test)]
mod tests {
    use ilion_rows::Clustering;

    use super::*;

    fn value(len: usize) -> Bytes {
        (0..len).map(|index| index as u8).collect()
    }

    fn row(liveness: Liveness, cells: impl IntoIterator<Item = (u16, Cell)>) -> Row {
        let columns = cells.into_iter().map(|(id, cell)| ColumnData {
            column: ColumnId(id),
            data: Data::Simple(cell),
        });
        Row {
            liveness,
            columns: columns.collect(),
            ..Row::empty(Clustering::new(
                [Some(value(4)), None, Some(value(0))].into_iter().collect(),
            ))
        }
    }

    #[test]
    fn rows_come_out_as_they_went_in() {
        let cells = [
            (0, Cell::live(5, value(34))),
            (3, Cell::live(5, value(0))),
            (400, Cell::live(6, value(500))),
            (401, Cell::expiring(5, 60, 100, value(1))),
            (402, Cell::tombstone(7, 9)),
            (u16::MAX, Cell::expiring(i64::MAX, u32::MAX, u32::MAX, value(1))),
        ];
        let livenesses = [Liveness::NONE, Liveness::live(5), Liveness::expiring(5, 60, 100)];
        for liveness in livenesses {
            for few in 0..=cells.len() {
                let row = row(liveness, cells[..few].iter().cloned());
                let Some(packed) = Packed::of(&row) else {
                    assert!(row.is_empty());
                    continue;
                };
                assert_eq!(packed.row(), row);
                let values = row.clustering.values().iter();
                assert!(packed.clustering().eq(values.map(Option::as_deref)));
            }
        }
    }

    #[test]
    fn of_a_row_only_what_is_watched_is_shown() {
        let cells = [
            (0, Cell::live(5, value(34))),
            (3, Cell::expiring(5, 60, 100, value(2))),
            (7, Cell::live(6, value(9))),
        ];
        let row = row(Liveness::live(5), cells);
        let packed = Packed::of(&row).unwrap();
        for ids in [&[][..], &[0], &[3, 9], &[7, 3], &[0, 3, 7]] {
            let observed: Vec<ColumnId> = ids.iter().map(|id| ColumnId(*id)).collect();
            let wanted = row
                .columns
                .iter()
                .filter(|entry| observed.contains(&entry.column));
            let wanted: Vec<_> = wanted
                .map(|entry| (entry.column, row.cell(entry.column).unwrap()))
                .collect();
            assert_eq!(packed.cells(&observed).collect::<Vec<_>>(), wanted);
        }
    }

    #[test]
    fn what_is_large_or_says_nothing_is_not_packed() {
        let live = Liveness::live(1);
        assert!(Packed::of(&row(Liveness::NONE, [])).is_none());
        assert!(Packed::of(&row(live, [(0, Cell::live(1, value(BYTES_MAX)))])).is_none());
        assert!(Packed::of(&row(live, (0..65).map(|id| (id, Cell::live(1, value(1)))))).is_none());
        let mut deleted = row(live, []);
        assert!(Packed::of(&deleted).is_some());
        deleted.deletion = DeletionTime::new(0, 1);
        assert!(Packed::of(&deleted).is_none());
    }

    #[test]
    fn a_deletion_is_packed_if_the_row_has_nothing_else() {
        for (micros, secs) in [(0, 0), (5, 60), (i64::MIN + 1, u32::MAX), (i64::MAX, 1)] {
            let mut deleted = row(Liveness::NONE, []);
            deleted.deletion = DeletionTime::new(micros, secs);
            let packed = Packed::of(&deleted).unwrap();
            assert!(packed.is_deletion());
            assert_eq!(packed.row(), deleted);
            assert_eq!(packed.cells(&[ColumnId(0)]).count(), 0);
            assert!(packed.plain_cells(&mut Cells::new()).is_none());
            let live = Packed::of(&row(Liveness::live(micros), [])).unwrap();
            assert!(!live.is_deletion() && !packed.replaces(&live) && !live.replaces(&packed));
        }
    }

    #[test]
    fn a_row_replaces_what_is_older_in_all_its_columns() {
        let of = |micros: i64, ids: &[u16], cell_micros: i64| {
            let cells = ids.iter().map(|id| (*id, Cell::live(cell_micros, value(3))));
            Packed::of(&row(Liveness::live(micros), cells)).unwrap()
        };
        let known = of(5, &[1, 2], 5);
        assert!(of(6, &[1, 2], 6).replaces(&known));
        assert!(!of(5, &[1, 2], 5).replaces(&known));
        assert!(!of(4, &[1, 2], 4).replaces(&known));
        assert!(!of(6, &[1], 6).replaces(&known));
        assert!(!of(6, &[1, 3], 6).replaces(&known));
        assert!(!of(6, &[1, 2], 7).replaces(&known));
        assert!(!of(8, &[1, 2], 8).replaces(&of(5, &[1, 2], 9)));
    }
}
