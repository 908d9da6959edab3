//! A buffer with memory allocated in advance: an append is one comparison and a copy.
//!
//! For buffers with millions of appends per second. A [`crate::Writer`] is slower: its vector allocates no memory before the first
//! append, and each append may have to grow it. Numbers are big-endian, as in `Writer`.
//!
//! Invariant: all memory behind `len` is initialised; its content has no meaning.

use crate::Writer;
use crate::vint::{encode_unsigned, only_byte, zigzag_encode};

/// Minimum size of the first allocation.
const LEN_MIN: usize = 256;

/// Bytes that the last vint of a [`Slab::fill`] may write beyond its end.
const SPARE_BYTES: usize = 9;

/// Appends big-endian numbers and bytes.
pub trait Append {
    /// A fixed number of bytes.
    fn array<const N: usize>(&mut self, bytes: [u8; N]);
    /// Bytes without a length.
    fn bytes(&mut self, bytes: &[u8]);
    /// An unsigned vint.
    fn uvint(&mut self, value: u64);

    /// One byte.
    #[inline]
    fn u8(&mut self, value: u8) {
        self.array([value]);
    }

    /// Two bytes.
    #[inline]
    fn u16(&mut self, value: u16) {
        self.array(value.to_be_bytes());
    }

    /// Four bytes.
    #[inline]
    fn u32(&mut self, value: u32) {
        self.array(value.to_be_bytes());
    }

    /// Eight bytes.
    #[inline]
    fn u64(&mut self, value: u64) {
        self.array(value.to_be_bytes());
    }

    /// Eight bytes, signed.
    #[inline]
    fn i64(&mut self, value: i64) {
        self.array(value.to_be_bytes());
    }

    /// A signed (zigzag) vint.
    #[inline]
    fn svint(&mut self, value: i64) {
        self.uvint(zigzag_encode(value));
    }

    /// `u16` length, then bytes.
    ///
    /// # Panics
    /// If there are more than 65535 bytes: the caller checks the limit and reports it to the user.
    #[expect(clippy::expect_used, reason = "callers check the 64 KiB limit of keys")]
    #[inline]
    fn bytes16(&mut self, bytes: &[u8]) {
        let len = u16::try_from(bytes.len()).expect("at most 65535 bytes");
        self.u16(len);
        self.bytes(bytes);
    }

    /// Unsigned vint length, then bytes.
    #[inline]
    fn bytes_vint(&mut self, bytes: &[u8]) {
        self.uvint(bytes.len() as u64);
        self.bytes(bytes);
    }
}

impl Append for Writer {
    #[inline]
    fn array<const N: usize>(&mut self, bytes: [u8; N]) {
        self.bytes(&bytes);
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        self.bytes(bytes);
    }

    #[inline]
    fn uvint(&mut self, value: u64) {
        self.uvint(value);
    }

    #[inline]
    fn u8(&mut self, value: u8) {
        self.u8(value);
    }
}

/// A growing buffer; see the module.
#[derive(Clone, Debug, Default)]
pub struct Slab {
    bytes: Box<[u8]>,
    len: usize,
}

impl Slab {
    /// An empty buffer with `capacity` bytes of memory. It grows when needed.
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            bytes: vec![0; capacity].into(),
            len: 0,
        }
    }

    /// Number of bytes appended.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if no bytes were appended.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The appended bytes.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Removes the content, keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Removes the content after the first `len` bytes.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Appends `len` zeros (at most nine), which the caller overwrites later.
    #[inline]
    pub fn room(&mut self, len: usize) {
        self.overlapping([0; 9], len.min(9));
    }

    /// Lets `fill` append at most `most` bytes, and returns its result.
    #[inline]
    pub fn fill<T>(&mut self, most: usize, fill: impl FnOnce(&mut Filling<'_>) -> T) -> T {
        if self.bytes.len() - self.len < most + SPARE_BYTES {
            self.grow(most + SPARE_BYTES);
        }
        let room = &mut self.bytes[self.len..];
        let before = room.len();
        let mut filling = Filling { room };
        let filled = fill(&mut filling);
        self.len += before - filling.room.len();
        filled
    }

    /// The free memory, for writes that never grow the buffer. Afterwards call [`Slab::keep`].
    #[inline]
    pub fn spare(&mut self) -> Room<'_> {
        Room {
            room: &mut self.bytes[self.len..],
        }
    }

    /// Makes the bytes that were written to [`Slab::spare`] part of the content; `left` is the number of free bytes that remain.
    #[inline]
    pub fn keep(&mut self, left: usize) {
        debug_assert!(
            left <= self.bytes.len() - self.len,
            "at most the free bytes are left"
        );
        self.len = self.bytes.len() - left;
    }

    /// Writes an unsigned vint into the `reserved` bytes at `at`. The content behind them moves if the vint takes more or fewer
    /// bytes. Returns the length of the vint.
    ///
    /// # Panics
    /// If the reserved bytes are not there.
    #[inline]
    pub fn uvint_at(&mut self, at: usize, reserved: usize, value: u64) -> usize {
        let room = self.bytes.get_mut(at..);
        let room = room.and_then(|room| room.split_at_mut_checked(reserved));
        match room.is_some_and(|(room, _)| Gap(room).uvint(value)) {
            true => reserved,
            false => self.uvint_instead(at, reserved, value),
        }
    }

    #[cold]
    fn uvint_instead(&mut self, at: usize, reserved: usize, value: u64) -> usize {
        let tail = self.as_slice()[at + reserved..].to_vec();
        self.truncate(at);
        self.uvint(value);
        let len = self.len - at;
        self.bytes(&tail);
        len
    }

    /// Appends the first `len` bytes of an array. Copies the whole array if there is space: a copy of a fixed length is faster.
    #[inline]
    fn overlapping<const N: usize>(&mut self, bytes: [u8; N], len: usize) {
        let room = self.bytes.get_mut(self.len..);
        match room.and_then(|room| room.first_chunk_mut::<N>()) {
            Some(room) => *room = bytes,
            None => self.append_grown(&bytes),
        }
        self.len += len;
    }

    /// Grows, then appends.
    #[cold]
    #[inline(never)]
    fn append_grown(&mut self, bytes: &[u8]) {
        self.grow(bytes.len());
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
    }

    /// Adds space for at least `missing` bytes.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, missing: usize) {
        let mut grown = std::mem::take(&mut self.bytes).into_vec();
        grown.resize((self.len + missing).max(2 * grown.len()).max(LEN_MIN), 0);
        self.bytes = grown.into();
    }
}

/// Writes to reserved space. The value stays in registers, as long as it is not passed to a call.
#[derive(Debug)]
pub struct Filling<'s> {
    room: &'s mut [u8],
}

impl<'s> Filling<'s> {
    /// Writes bytes at the current position, without moving it.
    #[expect(clippy::expect_used, reason = "as a slice that is too short")]
    #[inline]
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        *self
            .room
            .first_chunk_mut()
            .expect("the caller reserved enough space") = bytes;
    }

    /// Takes the next `len` bytes of the space.
    #[inline]
    fn take(&mut self, len: usize) -> &'s mut [u8] {
        let (taken, rest) = std::mem::take(&mut self.room).split_at_mut(len);
        self.room = rest;
        taken
    }
}

/// Each method panics if the reserved space is too small.
impl Append for Filling<'_> {
    #[inline]
    fn array<const N: usize>(&mut self, bytes: [u8; N]) {
        self.put(bytes);
        self.take(N);
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        copy(bytes, self.take(bytes.len()));
    }

    #[inline(always)]
    fn uvint(&mut self, value: u64) {
        match only_byte(value) {
            Some(byte) => self.u8(byte),
            None => {
                let (encoded, len) = encode_unsigned(value);
                self.put(encoded);
                self.take(len);
            }
        }
    }
}

impl Append for Slab {
    #[inline(always)]
    fn array<const N: usize>(&mut self, bytes: [u8; N]) {
        self.overlapping(bytes, N);
    }

    #[inline(always)]
    fn bytes(&mut self, bytes: &[u8]) {
        let end = self.len.saturating_add(bytes.len());
        match self.bytes.get_mut(self.len..end) {
            Some(room) => copy(bytes, room),
            None => self.append_grown(bytes),
        }
        self.len = end;
    }

    #[inline]
    fn uvint(&mut self, value: u64) {
        match only_byte(value) {
            Some(byte) => self.u8(byte),
            None => {
                let (encoded, len) = encode_unsigned(value);
                self.overlapping(encoded, len);
            }
        }
    }
}

/// Writes to free space that may be too small: then a method returns `None`. Methods take and return the `Room` by value, so that
/// it stays in registers.
#[derive(Debug)]
pub struct Room<'s> {
    room: &'s mut [u8],
}

impl<'s> Room<'s> {
    /// Number of free bytes.
    #[inline]
    pub fn left(&self) -> usize {
        self.room.len()
    }

    /// Skips `len` bytes.
    #[inline]
    pub fn skip(self, len: usize) -> Option<Self> {
        self.gap(len).map(|(_, room)| room)
    }

    /// Skips `len` bytes, and returns them as a gap for a vint.
    #[inline]
    pub fn gap(self, len: usize) -> Option<(Gap<'s>, Self)> {
        let (gap, room) = self.room.split_at_mut_checked(len)?;
        Some((Gap(gap), Self { room }))
    }

    /// A fixed number of bytes.
    #[inline]
    pub fn array<const N: usize>(self, bytes: [u8; N]) -> Option<Self> {
        let (first, room) = self.room.split_first_chunk_mut()?;
        *first = bytes;
        Some(Self { room })
    }

    /// Bytes without a length.
    #[inline]
    pub fn bytes(self, bytes: &[u8]) -> Option<Self> {
        self.headed([], bytes)
    }

    /// A fixed number of bytes and then more bytes, with one check for both.
    #[inline]
    pub fn headed<const N: usize>(self, head: [u8; N], bytes: &[u8]) -> Option<Self> {
        let (both, room) = self.room.split_at_mut_checked(N.checked_add(bytes.len())?)?;
        let (first, rest) = both.split_first_chunk_mut()?;
        *first = head;
        copy(bytes, rest);
        Some(Self { room })
    }

    /// An unsigned vint.
    #[inline(always)]
    pub fn uvint(self, value: u64) -> Option<Self> {
        match only_byte(value) {
            Some(byte) => self.array([byte]),
            None => {
                let (encoded, len) = encode_unsigned(value);
                *self.room.first_chunk_mut()? = encoded;
                self.skip(len)
            }
        }
    }
}

/// Space reserved for a vint.
#[derive(Debug)]
pub struct Gap<'s>(&'s mut [u8]);

impl Gap<'_> {
    /// Writes an unsigned vint of one or two bytes. Returns false, and writes nothing, if the vint does not fill the space exactly:
    /// then call [`Slab::uvint_at`].
    #[inline]
    pub fn uvint(self, value: u64) -> bool {
        let [.., high, low] = value.to_be_bytes();
        match self.0 {
            [first, second] if (0x80..0x4000).contains(&value) => {
                *first = 0x80 | high;
                *second = low;
                true
            }
            [only] if value < 0x80 => {
                *only = low;
                true
            }
            _ => false,
        }
    }
}

/// Copies bytes to space of the same length. Short strings are copied by two moves that overlap: that is faster than a call.
#[inline]
fn copy(bytes: &[u8], room: &mut [u8]) {
    match bytes.len() {
        65.. => room.copy_from_slice(bytes),
        32.. => ends::<32>(bytes, room),
        16.. => ends::<16>(bytes, room),
        8.. => ends::<8>(bytes, room),
        4.. => ends::<4>(bytes, room),
        _ => room.iter_mut().zip(bytes).for_each(|(room, byte)| *room = *byte),
    }
}

/// Copies the first `N` and the last `N` bytes. Requires: there are `N` to `2 * N` bytes.
#[inline]
fn ends<const N: usize>(bytes: &[u8], room: &mut [u8]) {
    if let (Some(room), Some(first)) = (room.first_chunk_mut::<N>(), bytes.first_chunk()) {
        *room = *first;
    }
    if let (Some(room), Some(last)) = (room.last_chunk_mut::<N>(), bytes.last_chunk()) {
        *room = *last;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_what_a_writer_holds_however_much_memory_it_had() {
        let source: Vec<u8> = (0..=255).cycle().take(300).collect();
        for capacity in [0, 1, 7, 64, 100, 1000, 1 << 20] {
            let (mut slab, mut writer) = (Slab::with_capacity(capacity), Writer::new());
            assert!(slab.is_empty());
            for len in (0..300).chain([1, 0, 33]) {
                slab.bytes(&source[..len]);
                writer.bytes(&source[..len]);
                slab.bytes16(&source[300 - len..]);
                writer.bytes16(&source[300 - len..]);
                slab.u8(7);
                writer.u8(7);
                slab.array([1, 2, 3]);
                writer.bytes(&[1, 2, 3]);
            }
            for shift in 0..64 {
                for value in [(1_u64 << shift) - 1, 1 << shift, u64::MAX >> shift] {
                    slab.uvint(value);
                    writer.uvint(value);
                }
            }
            let most = slab.len();
            slab.fill(most, |out| {
                out.bytes(&writer.as_slice()[..most - 5]);
                out.array([1, 2]);
                out.uvint(3);
                out.uvint(0x90);
            });
            let copy = writer.clone();
            writer.bytes(&copy.as_slice()[..most - 5]);
            writer.bytes(&[1, 2, 3, 0x80, 0x90]);
            assert_eq!(slab.as_slice(), writer.as_slice());
            slab.truncate(5);
            assert_eq!((slab.len(), slab.as_slice()), (5, &writer.as_slice()[..5]));
            slab.clear();
            slab.u8(1);
            assert_eq!(slab.as_slice(), [1]);
        }
    }

    #[test]
    fn what_does_not_fit_is_not_there() {
        let mut expected = Writer::new();
        expected.bytes(b"head");
        expected.uvint(300);
        expected.bytes(b"some bytes");
        expected.bytes(&[0, 0]);
        let mut fitted = 0;
        for capacity in 0..expected.len() + 20 {
            let mut slab = Slab::with_capacity(capacity);
            let fill = |room: Room<'_>| {
                let (size, room) = room.headed(*b"he", b"ad")?.gap(2)?;
                let room = room.bytes(b"some bytes")?;
                assert!(size.uvint(300));
                Some(room.skip(2)?.left())
            };
            let left = fill(slab.spare());
            if let Some(left) = left {
                slab.keep(left);
            }
            let (all, nothing) = (expected.as_slice(), &[][..]);
            assert_eq!(slab.as_slice(), if left.is_some() { all } else { nothing });
            assert!(left.is_none_or(|left| left == capacity - expected.len()));
            fitted += usize::from(left.is_some());
        }
        assert_eq!(fitted, 20);
        let mut slab = Slab::with_capacity(10);
        slab.u8(1);
        let left = slab.spare().array([2]).unwrap().left();
        slab.keep(left);
        // Without `keep`, the written byte is not appended.
        slab.spare().array([3]).unwrap();
        assert_eq!(slab.as_slice(), [1, 2]);
    }

    #[test]
    fn a_vint_fits_wherever_room_was_left_for_it() {
        for value in [0, 0x7F, 0x80, 0x3FFF, 0x4000, u64::MAX] {
            let mut expected = Writer::new();
            expected.bytes(b"head");
            expected.uvint(value);
            expected.bytes(b"tail");
            for reserved in 0..=9 {
                let mut out = Slab::default();
                out.bytes(b"head");
                out.room(reserved);
                out.bytes(b"tail");
                let taken = out.uvint_at(4, reserved, value);
                assert_eq!(out.as_slice(), expected.as_slice(), "{value} in {reserved} bytes");
                assert_eq!(taken, expected.len() - 8);
            }
        }
    }
}
