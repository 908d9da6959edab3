//! Bytes at hand that are taken one after another, in registers: nothing is counted, copied or reported.
//!
//! Whoever finds them to be other than expected leaves them to a [`ByteSource`](super::source::ByteSource), which tells what is wrong.

use super::body::CELL_USES_ROW_TIMESTAMP;
use super::source::read_uvint;

/// Bytes that are left.
#[derive(Clone, Copy)]
pub(super) struct Rest<'w>(pub(super) &'w [u8]);

/// A cell as most are: it lives for ever, and has a value.
#[derive(Clone, Copy)]
pub(super) struct CommonCell<'w> {
    /// Its timestamp as it is stored; nothing: that of its row.
    pub(super) delta: Option<u64>,
    pub(super) value: &'w [u8],
}

/// The key of the partition that begins with these bytes, if it is there.
#[inline]
pub(crate) fn key_at_hand(bytes: &[u8]) -> Option<&[u8]> {
    Rest(bytes).key()
}

impl<'w> Rest<'w> {
    /// The bytes up to where `later` begins, which goes on in the same bytes.
    #[inline(always)]
    pub(super) fn before(self, later: Self) -> &'w [u8] {
        &self.0[..self.0.len() - later.0.len()]
    }

    #[inline(always)]
    pub(super) fn u8(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    #[inline(always)]
    pub(super) fn take(&mut self, len: usize) -> Option<&'w [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    #[inline(always)]
    pub(super) fn uvint(&mut self) -> Option<u64> {
        let (value, len) = read_uvint(self.0)?;
        self.0 = &self.0[len..];
        Some(value)
    }

    /// Moves past an unsigned vint, of which the first byte tells the length.
    #[inline(always)]
    pub(super) fn skip_uvint(&mut self) -> Option<()> {
        let more = self.u8()?.leading_ones();
        self.take(more as usize).map(drop)
    }

    #[inline(always)]
    pub(super) fn taken_by_uvint(&mut self) -> Option<&'w [u8]> {
        let len = usize::try_from(self.uvint()?).ok()?;
        self.take(len)
    }

    /// A value that has a length before it, unless that is known.
    #[inline(always)]
    pub(super) fn value(&mut self, fixed_len: Option<usize>) -> Option<&'w [u8]> {
        match fixed_len {
            Some(len) => self.take(len),
            None => self.taken_by_uvint(),
        }
    }

    /// The key of a partition that begins here.
    #[inline(always)]
    pub(super) fn key(&mut self) -> Option<&'w [u8]> {
        let len = self.take(2)?.first_chunk()?;
        self.take(usize::from(u16::from_be_bytes(*len)))
    }

    /// The cell of a simple column, if it is a common one. Else it stands anywhere.
    #[inline(always)]
    pub(super) fn common_cell(&mut self, fixed_len: Option<usize>) -> Option<CommonCell<'w>> {
        let delta = match self.u8()? {
            CELL_USES_ROW_TIMESTAMP => None,
            0 => Some(self.uvint()?),
            _ => return None,
        };
        let value = self.value(fixed_len)?;
        Some(CommonCell { delta, value })
    }
}
