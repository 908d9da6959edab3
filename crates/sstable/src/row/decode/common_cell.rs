//! Cells as most are, from bytes at hand.

use ilion_rows::{Cell, ColumnData, Data};

use super::columns::FileColumn;

use crate::row::format::cell_flag;
use crate::row::format::times::Times;
use crate::row::rest::Rest;
use crate::row::source::Stretch;

/// A cell as most are: it lives for ever, and has a value.
#[derive(Clone, Copy)]
pub(in crate::row) struct CommonCell<'w> {
    /// Its timestamp as it is stored; `None`: that of its row.
    pub(in crate::row) delta: Option<u64>,
    pub(in crate::row) value: &'w [u8],
}

impl<'w> Rest<'w> {
    /// The cell of a simple column, if it is a common one. After `None` the position means nothing.
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

/// Reads these columns as long as they are simple and their cells common ones; returns the index of the first that is not.
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
        let (Some(cell), Some(id)) = (rest.common_cell(column.fixed_len), column.plain) else {
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
