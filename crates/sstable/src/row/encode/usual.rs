//! Encodes rows of the usual form in one pass: live rows with a value, neither empty nor null, in each clustering column and
//! each column, all written at one time. Other rows are left to the general way.

use std::ops::{Deref, Range};

use ilion_codec::{Gap, Room, Slab};
use ilion_rows::{ColumnData, Data, Liveness, NO_DELETION_TIME, NO_TTL, PlainRow, Row};
use ilion_schema::ColumnId;

use super::RowEncoder;
use super::columns::StoredColumn;
use crate::metadata_collector::MetadataCollector;
use crate::row::format::VALUES_PER_HEADER;
use crate::row::format::cell_flag::USES_ROW_TIMESTAMP;
use crate::row::format::state::RowState;
use crate::row::format::unfiltered_flag::{HAS_ALL_COLUMNS, HAS_TIMESTAMP};
use crate::row::format::values::FixedLen;

impl RowEncoder {
    /// Appends a row. Returns the range of its clustering values in `out`; `None`, without any change, if the row does not have
    /// the usual form, or `out` would have to grow.
    #[inline]
    pub(crate) fn encode_usual(
        &mut self,
        row: &Row,
        previous_size: u64,
        stats: &mut MetadataCollector,
        out: &mut Slab,
    ) -> Option<Range<usize>> {
        let micros = row.liveness.timestamp_micros;
        let columns = self.regulars.all_simple()?;
        if row.columns.len() != columns.len() || !RowState::of(row).is_insert_at(micros) {
            return None;
        }
        let (begun, room) = self.begin(row.clustering.values(), micros, previous_size, out)?;
        let room = append_cells(&row.columns, columns, micros, room)?;
        let (ended, cells) = (begun.end(room), columns.len() as u64);
        let clustering = self.end(ended, out)?;
        stats.usual_row(micros, cells);
        Some(clustering)
    }

    /// As [`Self::encode_usual`], for a plain row that was written at `micros`.
    #[inline(always)]
    pub(super) fn encode_usual_seen(
        &mut self,
        row: &PlainRow<'_>,
        micros: i64,
        previous_size: u64,
        stats: &mut MetadataCollector,
        out: &mut Slab,
    ) -> Option<Range<usize>> {
        let columns = self.regulars.all_simple()?;
        if row.cells.len() != columns.len() || Liveness::live(micros).is_none() {
            return None;
        }
        let (begun, room) = self.begin(row.clustering, micros, previous_size, out)?;
        let room = match row.stored {
            None => append_cells(row.cells, columns, micros, room)?,
            Some(stored) => {
                let ids = row.cells.iter().map(|(id, _)| *id);
                let has_all = ids.eq(columns.iter().map(|column| column.id));
                room.bytes(stored).filter(|_| has_all)?
            }
        };
        let (ended, cells) = (begun.end(room), columns.len() as u64);
        let clustering = self.end(ended, out)?;
        stats.usual_row(micros, cells);
        Some(clustering)
    }

    /// Writes a row with all columns, up to its cells, into the free space of `out`. Returns the space for the cells.
    #[inline(always)]
    fn begin<'s, V: Deref<Target = [u8]>>(
        &self,
        values: &[Option<V>],
        micros: i64,
        previous_size: u64,
        out: &'s mut Slab,
    ) -> Option<(Begun<'s>, Room<'s>)> {
        let room = out.spare().array([HAS_TIMESTAMP | HAS_ALL_COLUMNS])?;
        let room = append_clustering(&self.clustering_lens, values, room)?;
        let (size, room) = room.gap(self.size_len)?;
        let left_behind_size = room.left();
        let room = room.uvint(previous_size)?;
        let left_at_body = room.left();
        let room = room.uvint(self.times.micros_delta(micros))?;
        let begun = Begun {
            size,
            left_behind_size,
            left_at_body,
        };
        Some((begun, room))
    }

    /// Appends the row that was written to the free space of `out`. Returns the range of its clustering values; `None` if the row is
    /// not short.
    #[inline(always)]
    fn end(&mut self, ended: Ended, out: &mut Slab) -> Option<Range<usize>> {
        if ended.body_len >= self.short_bytes_max {
            return None;
        }
        let start = out.len();
        out.keep(ended.left);
        let size_at = out.len() - ended.size - self.size_len;
        if !ended.has_size {
            self.put_size(size_at, ended.size as u64, out);
        }
        Some(start + 1..size_at)
    }
}

/// A row that is being written to free space.
#[derive(Debug)]
struct Begun<'s> {
    /// The space of the size field.
    size: Gap<'s>,
    /// Number of free bytes behind the size field. `left_at_body` is the number behind `previous_size`, where the body starts.
    left_behind_size: usize,
    left_at_body: usize,
}

/// A row that was written to free space.
#[derive(Debug)]
struct Ended {
    /// Number of free bytes behind the row.
    left: usize,
    size: usize,
    /// True if the size was written: its field is as long as that of the row before.
    has_size: bool,
    body_len: usize,
}

impl Begun<'_> {
    /// Completes the row; `room` is the space behind it.
    #[inline]
    fn end(self, room: Room<'_>) -> Ended {
        let left = room.left();
        let size = self.left_behind_size - left;
        Ended {
            left,
            size,
            has_size: self.size.uvint(size as u64),
            body_len: self.left_at_body - left,
        }
    }
}

#[inline(always)]
fn append_clustering<'s, V: Deref<Target = [u8]>>(
    lens: &[FixedLen],
    values: &[Option<V>],
    room: Room<'s>,
) -> Option<Room<'s>> {
    if lens.is_empty() && values.is_empty() {
        return Some(room);
    }
    if values.len() != lens.len() || lens.len() > VALUES_PER_HEADER {
        return None;
    }
    // The header of the values: none is empty or null.
    let mut room = room.array([0])?;
    for (len, value) in lens.iter().zip(values) {
        room = append_value(*len, value.as_deref()?, room)?;
    }
    Some(room)
}

/// A cell of a row.
trait RowCell {
    /// True if the cell belongs to this column, and has no times of its own in a row written at `micros`.
    fn is_usual(&self, column: ColumnId, micros: i64) -> bool;
    /// The value of the cell. Requires: [`Self::is_usual`].
    fn value(&self) -> &[u8];
}

impl RowCell for ColumnData {
    #[inline]
    fn is_usual(&self, column: ColumnId, micros: i64) -> bool {
        match &self.data {
            Data::Simple(cell) => {
                self.column == column
                    && cell.timestamp_micros == micros
                    && cell.ttl_secs == NO_TTL
                    && cell.local_deletion_secs == NO_DELETION_TIME
            }
            Data::Complex(_) => false,
        }
    }

    #[inline]
    fn value(&self) -> &[u8] {
        match &self.data {
            Data::Simple(cell) => &cell.value,
            Data::Complex(_) => &[],
        }
    }
}

/// A cell of a plain row whose cells have the row's timestamp.
impl RowCell for (ColumnId, &[u8]) {
    #[inline]
    fn is_usual(&self, column: ColumnId, _: i64) -> bool {
        self.0 == column
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.1
    }
}

/// Appends all cells. This is its own function, so that the loop over the cells can use all registers.
#[inline(never)]
fn append_cells<'s>(
    cells: &[impl RowCell],
    columns: &[StoredColumn],
    micros: i64,
    mut room: Room<'s>,
) -> Option<Room<'s>> {
    for (cell, column) in cells.iter().zip(columns) {
        if !cell.is_usual(column.id, micros) {
            return None;
        }
        let value = cell.value();
        room = match column.value_len {
            #[expect(clippy::cast_possible_truncation, reason = "it is in the range")]
            None if (1..0x80).contains(&value.len()) => {
                room.headed([USES_ROW_TIMESTAMP, value.len() as u8], value)?
            }
            len => append_value(len, value, room.array([USES_ROW_TIMESTAMP])?)?,
        };
    }
    Some(room)
}

/// Appends a value that is not empty and has a valid length.
#[inline(always)]
fn append_value<'s>(len: FixedLen, value: &[u8], room: Room<'s>) -> Option<Room<'s>> {
    match len {
        None if value.is_empty() => None,
        None => room.uvint(value.len() as u64)?.bytes(value),
        Some(len) if len as usize != value.len() || len == 0 => None,
        Some(4) => room.array::<4>(value.try_into().ok()?),
        Some(8) => room.array::<8>(value.try_into().ok()?),
        Some(_) => room.bytes(value),
    }
}
