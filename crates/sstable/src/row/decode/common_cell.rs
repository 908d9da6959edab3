//! Decodes cells in their usual form, from bytes in memory.

use ilion_rows::{Cell, ColumnData, Data};

use super::columns::FileColumn;

use crate::row::format::cell_flag;
use crate::row::format::times::Times;
use crate::row::rest::Rest;
use crate::row::source::Stretch;

/// A cell in its usual form: without an end, and with a value.
#[derive(Clone, Copy)]
pub(in crate::row) struct CommonCell<'w> {
    /// The timestamp as stored; `None` if it is that of the row.
    pub(in crate::row) delta: Option<u64>,
    pub(in crate::row) value: &'w [u8],
}

impl<'w> Rest<'w> {
    /// Decodes the cell of a simple column if it has the usual form. If this returns `None`, the position is undefined.
    #[inline(always)]
    pub(in crate::row) fn common_cell(&mut self, fixed_len: Option<usize>) -> Option<CommonCell<'w>> {
        let delta = match self.u8()? {
            cell_flag::USES_ROW_TIMESTAMP => None,
            0 => Some(self.uvint()?),
            _ => return None,
        };
        let value = self.value(fixed_len)?;
        Some(CommonCell { delta, value })
    }
}

/// Decodes columns while they are simple and their cells have the usual form; returns the index of the first other column.
#[inline(always)]
pub(super) fn common_cells<'c>(
    columns: impl Iterator<Item = (usize, &'c FileColumn)>,
    row_micros: i64,
    times: &Times,
    input: &mut Stretch<'_>,
    out: &mut Vec<ColumnData>,
) -> Option<usize> {
    let mut rest = input.rest();
    for (index, column) in columns {
        let before = rest;
        let (Some(cell), Some(id)) = (rest.common_cell(column.fixed_len), column.simple_id) else {
            input.go_to(before);
            return Some(index);
        };
        let timestamp_micros = match cell.delta {
            None => row_micros,
            Some(delta) => times.timestamp_of(delta),
        };
        let value = input.slice_before(rest, cell.value.len());
        let data = Data::Simple(Cell::live(timestamp_micros, value));
        out.push(ColumnData { column: id, data });
    }
    input.go_to(rest);
    None
}
