//! Rows as nearly all are: they live, and have a value of the usual kind for each clustering column and each column, all written at
//! once. They are written in one go as they are looked at; what turns out to be otherwise is left to `plain`.

use std::ops::{Deref, Range};

use ilion_codec::{Room, Slab};
use ilion_rows::{Data, Liveness, NO_DELETION_TIME, NO_TTL, Row};

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
        form: Form<'_>,
        previous_size: u64,
        stats: &mut MetadataCollector,
        out: &mut Slab,
    ) -> Option<Range<usize>> {
        let Liveness {
            timestamp_micros: micros,
            ..
        } = row.liveness;
        let columns = form.layout.all_plain()?;
        let is_usual = row.columns.len() == columns.len()
            && row.liveness == Liveness::live(micros)
            && !row.liveness.is_none()
            && row.deletion.is_live();
        if !is_usual {
            return None;
        }
        let start = out.len();
        let values = row.clustering.values();
        let size_len = self.size_len;
        let room = out.spare();
        let first = room.left();
        let room = room.array([HAS_TIMESTAMP | HAS_ALL_COLUMNS])?;
        let room = append_clustering(form.clustering_lens, values, room)?;
        let at = first - room.left();
        let room = room.skip(size_len)?;
        let from = first - room.left();
        let room = room.uvint(previous_size)?;
        let body = room.left();
        let room = room.uvint(form.times.of_micros(micros))?;
        let left = append_cells(row, columns, micros, room)?.left();
        if body - left >= self.bytes_max {
            return None;
        }
        out.keep(left);
        self.put_size(start + at, (first - left - from) as u64, out);
        stats.usual_row(micros, row.columns.len() as u64);
        Some(start + 1..start + at)
    }
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

/// What is in a loop over cells is a function of its own, so that the loop has all registers.
#[inline(never)]
fn append_cells<'s>(
    row: &Row,
    columns: &[StoredColumn],
    micros: i64,
    mut room: Room<'s>,
) -> Option<Room<'s>> {
    for (entry, column) in row.columns.iter().zip(columns) {
        let Data::Simple(cell) = &entry.data else {
            return None;
        };
        let is_as_row = cell.timestamp_micros == micros
            && cell.ttl_secs == NO_TTL
            && cell.local_deletion_secs == NO_DELETION_TIME;
        if !is_as_row || entry.column != column.id {
            return None;
        }
        room = append_value(column.value_len, &cell.value, room.array([USE_ROW_TIMESTAMP])?)?;
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
