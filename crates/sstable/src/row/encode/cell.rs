//! Encodes cells.

use ilion_codec::{Append, unsigned_vint_len};
use ilion_rows::{CellRef, Liveness};

use super::columns::StoredColumn;
use crate::row::format::cell_flag::{
    HAS_EMPTY_VALUE, IS_DELETED, IS_EXPIRING, USES_ROW_TIMESTAMP, USES_ROW_TTL,
};
use crate::row::format::times::Times;
use crate::row::format::values::Unstorable;

/// Appends a cell without the bytes of its value.
#[inline]
pub(super) fn encode_cell_head(
    cell: &CellRef<'_>,
    column: &StoredColumn,
    path: Option<&[u8]>,
    liveness: &Liveness,
    times: &Times,
    out: &mut impl Append,
) -> Result<(), Unstorable> {
    encode_times(cell, flags_of(cell, liveness), times, out);
    if let Some(path) = path {
        out.bytes_vint(path);
    }
    if cell.value.is_empty() {
        return Ok(());
    }
    match column.value_len {
        None => out.uvint(cell.value.len() as u64),
        Some(len) if len as usize == cell.value.len() => {}
        Some(_) => return Err(Unstorable::WrongLength),
    }
    Ok(())
}

/// Appends the start of a cell: flags and times.
pub(super) fn encode_cell_times(
    cell: &CellRef<'_>,
    liveness: &Liveness,
    times: &Times,
    out: &mut impl Append,
) {
    encode_times(cell, flags_of(cell, liveness) & !HAS_EMPTY_VALUE, times, out);
}

/// Length of a stored value, including its length field.
#[inline]
pub(super) fn value_length(cell: &CellRef<'_>, column: &StoredColumn) -> usize {
    let len = cell.value.len();
    match column.value_len {
        None if len > 0 => len + unsigned_vint_len(len as u64),
        _ => len,
    }
}

#[inline]
fn encode_times(cell: &CellRef<'_>, flags: u8, times: &Times, out: &mut impl Append) {
    out.u8(flags);
    if flags & USES_ROW_TIMESTAMP == 0 {
        times.encode_micros(cell.timestamp_micros, out);
    }
    if flags & USES_ROW_TTL == 0 {
        if flags & (IS_DELETED | IS_EXPIRING) != 0 {
            times.encode_secs(cell.local_deletion_secs, out);
        }
        if flags & IS_EXPIRING != 0 {
            times.encode_ttl(cell.ttl_secs, out);
        }
    }
}

#[inline]
fn flags_of(cell: &CellRef<'_>, liveness: &Liveness) -> u8 {
    let mut flags = 0;
    if cell.is_expiring() {
        flags |= IS_EXPIRING;
        let is_of_row =
            cell.ttl_secs == liveness.ttl_secs && cell.local_deletion_secs == liveness.expires_secs;
        if is_of_row {
            flags |= USES_ROW_TTL;
        }
    } else if cell.is_tombstone() {
        flags |= IS_DELETED;
    }
    if cell.value.is_empty() {
        flags |= HAS_EMPTY_VALUE;
    }
    if cell.timestamp_micros == liveness.timestamp_micros && !liveness.is_none() {
        flags |= USES_ROW_TIMESTAMP;
    }
    flags
}
