//! The rest of a byte slice that a decoder consumes, kept in registers, without error reports.
//!
//! If the bytes are not as expected, the caller falls back to a [`ByteSource`](crate::row::source::ByteSource), which reports
//! errors.

use ilion_codec::Reader;

/// The unsigned vint at the start of `bytes`, and its length.
#[inline(always)]
pub(crate) fn read_uvint(bytes: &[u8]) -> Option<(u64, usize)> {
    match *bytes {
        [first @ ..0x80, ..] => Some((u64::from(first), 1)),
        // Two bytes: the usual length of row sizes.
        [first @ 0x80..0xC0, second, ..] => Some((u64::from(first & 0x3F) << 8 | u64::from(second), 2)),
        _ => read_long_uvint(bytes),
    }
}

#[inline]
fn read_long_uvint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut input = Reader::new(bytes);
    let value = input.uvint().ok()?;
    Some((value, input.offset()))
}

/// The bytes that are not consumed yet.
#[derive(Clone, Copy)]
pub(in crate::row) struct Rest<'w>(pub(in crate::row) &'w [u8]);

/// The key of the partition that starts with these bytes; `None` if it is incomplete.
#[inline]
pub(crate) fn key_at_hand(bytes: &[u8]) -> Option<&[u8]> {
    Rest(bytes).key()
}

impl<'w> Rest<'w> {
    /// The bytes up to the start of `later`. Requires: `later` is a suffix of this slice.
    #[inline]
    pub(in crate::row) fn before(self, later: Self) -> &'w [u8] {
        &self.0[..self.0.len() - later.0.len()]
    }

    #[inline]
    pub(in crate::row) fn u8(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    #[inline]
    pub(in crate::row) fn take(&mut self, len: usize) -> Option<&'w [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    #[inline(always)]
    pub(in crate::row) fn uvint(&mut self) -> Option<u64> {
        let (value, len) = read_uvint(self.0)?;
        self.0 = &self.0[len..];
        Some(value)
    }

    /// Skips an unsigned vint. Reads only its first byte, which determines its length.
    #[inline]
    pub(in crate::row) fn skip_uvint(&mut self) -> Option<()> {
        let more = self.u8()?.leading_ones();
        self.take(more as usize).map(drop)
    }

    #[inline(always)]
    pub(in crate::row) fn taken_by_uvint(&mut self) -> Option<&'w [u8]> {
        let len = usize::try_from(self.uvint()?).ok()?;
        self.take(len)
    }

    /// Takes a value. Without a `fixed_len`, its length comes before it.
    #[inline]
    pub(in crate::row) fn value(&mut self, fixed_len: Option<usize>) -> Option<&'w [u8]> {
        match fixed_len {
            Some(len) => self.take(len),
            None => self.taken_by_uvint(),
        }
    }

    /// Takes the key of a partition that starts here.
    #[inline]
    pub(in crate::row) fn key(&mut self) -> Option<&'w [u8]> {
        let len = self.take(2)?.first_chunk()?;
        self.take(usize::from(u16::from_be_bytes(*len)))
    }
}
