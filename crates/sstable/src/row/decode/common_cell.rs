//! A cell as most are, from bytes at hand.

use crate::row::format::cell_flag;
use crate::row::rest::Rest;

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
