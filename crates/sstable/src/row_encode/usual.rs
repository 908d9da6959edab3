//! Rows as nearly all are: they live, and have a value of the usual kind for each clustering column and each column, all written at
//! once. They are written in one go as they are looked at; what turns out to be otherwise is left to `plain`.

use std::ops::{Deref, Range};

use ilion_codec::{Room, Slab};
use ilion_rows::{ColumnData, Data, Liveness, NO_DELETION_TIME, NO_TTL, PlainRow, Row};
use ilion_schema::ColumnId;

use super::cell::cell_flag::USE_ROW_TIMESTAMP;
use super::columns::StoredColumn;
use super::plain::{Form, PlainRows};
use super::unfiltered_flag::{HAS_ALL_COLUMNS, HAS_TIMESTAMP};
use crate::metadata_collector::MetadataCollector;
use crate::values::FixedLen;

/// Clustering values that have one header.
const HEADED_VALUES_MAX: usize = 32;

impl PlainRows {
    /// Appends a row, and gives where its clustering is; nothing, if it is not as most are, or `out` has to grow for it. Then nothing was
    /// appended or told.
    #[inline(never)]
    pub(super) fn append_usual(
        &mut self,
        row: &Row,
        form: &Form,
        previous_size: u64,
        stats: &mut MetadataCollector,
        out: &mut Slab,
    ) -> Option<Range<usize>> {
        let micros = row.liveness.timestamp_micros;
        let columns = form.layout.all_plain()?;
        let is_usual = row.columns.len() == columns.len()
            && row.liveness == Liveness::live(micros)
            && !row.liveness.is_none()
            && row.deletion.is_live();
        if !is_usual {
            return None;
        }
        let (begun, room) = self.begin(row.clustering.values(), micros, form, previous_size, out)?;
        let room = append_cells(
            &row.columns,
            move |entry| cell_as_row(entry, micros),
            columns,
            room,
        )?;
        let clustering = self.end(begun, room.left(), out)?;
        stats.usual_row(micros, columns.len() as u64);
        Some(clustering)
    }

    /// The same of a row as it was shown, all of it written at `micros`.
    #[inline(never)]
    pub(super) fn append_usual_shown(
        &mut self,
        row: &PlainRow<'_>,
        micros: i64,
        form: &Form,
        previous_size: u64,
        stats: &mut MetadataCollector,
        out: &mut Slab,
    ) -> Option<Range<usize>> {
        let columns = form.layout.all_plain()?;
        if row.cells.len() != columns.len() || Liveness::live(micros).is_none() {
            return None;
        }
        let (begun, room) = self.begin(row.clustering, micros, form, previous_size, out)?;
        let room = match row.stored {
            None => append_cells(row.cells, |(id, value)| Some((*id, *value)), columns, room)?,
            Some(stored) => {
                let ids = row.cells.iter().map(|(id, _)| *id);
                let has_all = ids.eq(columns.iter().map(|column| column.id));
                room.bytes(stored).filter(|_| has_all)?
            }
        };
        let clustering = self.end(begun, room.left(), out)?;
        stats.usual_row(micros, columns.len() as u64);
        Some(clustering)
    }

    /// Puts what stands before the cells of a row with all columns into what room there is in `out`. Gives the room for the cells.
    #[inline(always)]
    fn begin<'s, V: Deref<Target = [u8]>>(
        &self,
        values: &[Option<V>],
        micros: i64,
        form: &Form,
        previous_size: u64,
        out: &'s mut Slab,
    ) -> Option<(Begun, Room<'s>)> {
        let start = out.len();
        let room = out.spare();
        let first = room.left();
        let room = room.array([HAS_TIMESTAMP | HAS_ALL_COLUMNS])?;
        let room = append_clustering(&form.clustering_lens, values, room)?;
        let at = start + first - room.left();
        let room = room.skip(self.size_len)?;
        let left_from = room.left();
        let room = room.uvint(previous_size)?;
        let left_body = room.left();
        let room = room.uvint(form.times.of_micros(micros))?;
        let begun = Begun {
            start,
            at,
            left_from,
            left_body,
        };
        Some((begun, room))
    }

    /// Appends what was put there, of which so much room is left. Gives where the clustering is; nothing if the row is too long.
    #[inline(always)]
    fn end(&mut self, begun: Begun, left: usize, out: &mut Slab) -> Option<Range<usize>> {
        if begun.left_body - left >= self.bytes_max {
            return None;
        }
        out.keep(left);
        self.put_size(begun.at, (begun.left_from - left) as u64, out);
        Some(begun.start + 1..begun.at)
    }
}

/// A row that is being put into the room that there is.
#[derive(Clone, Copy, Debug)]
struct Begun {
    start: usize,
    /// Where its size stands.
    at: usize,
    /// The room that was left where the size begins to count, and where the body begins.
    left_from: usize,
    left_body: usize,
}

#[inline(always)]
fn append_clustering<'s, V: Deref<Target = [u8]>>(
    lens: &[FixedLen],
    values: &[Option<V>],
    room: Room<'s>,
) -> Option<Room<'s>> {
    if values.len() != lens.len() || lens.len() > HEADED_VALUES_MAX {
        return None;
    }
    if lens.is_empty() {
        return Some(room);
    }
    // No value is empty or null.
    let mut room = room.array([0])?;
    for (len, value) in lens.iter().zip(values) {
        room = append_value(*len, value.as_deref()?, room)?;
    }
    Some(room)
}

/// The column and the value of a cell that has no times of its own, in a row that was written at `micros`.
#[inline(always)]
fn cell_as_row(entry: &ColumnData, micros: i64) -> Option<(ColumnId, &[u8])> {
    let Data::Simple(cell) = &entry.data else {
        return None;
    };
    let is_as_row = cell.timestamp_micros == micros
        && cell.ttl_secs == NO_TTL
        && cell.local_deletion_secs == NO_DELETION_TIME;
    is_as_row.then_some((entry.column, &cell.value))
}

/// What is in a loop over cells is a function of its own, so that the loop has all registers.
#[inline(never)]
fn append_cells<'s, T>(
    cells: &[T],
    of: impl for<'v> Fn(&'v T) -> Option<(ColumnId, &'v [u8])>,
    columns: &[StoredColumn],
    mut room: Room<'s>,
) -> Option<Room<'s>> {
    for (cell, column) in cells.iter().zip(columns) {
        let (id, value) = of(cell)?;
        if id != column.id {
            return None;
        }
        room = match column.value_len {
            #[expect(clippy::cast_possible_truncation, reason = "it is in the range")]
            None if (1..0x80).contains(&value.len()) => {
                room.array([USE_ROW_TIMESTAMP, value.len() as u8])?.bytes(value)?
            }
            len => append_value(len, value, room.array([USE_ROW_TIMESTAMP])?)?,
        };
    }
    Some(room)
}

/// A value that is not empty and has the length that it may have.
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
