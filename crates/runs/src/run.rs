//! Records in one buffer.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Order, Stretch};

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'r> {
    /// The number that it is ordered by first.
    pub head: u64,
    /// All bytes of the record.
    pub bytes: &'r [u8],
}

/// A list of records, sorted once other modules see it. Invariant: it has less than 4 GiB of bytes.
#[derive(Debug, Default)]
pub struct Run {
    heads: Vec<u64>,
    /// End of each record in `bytes`.
    ends: Vec<u32>,
    /// The records, followed by zeros for later records: a write checks once whether there is space.
    bytes: Vec<u8>,
    /// A bit for each record of a sorted run: set if the record is a removal, or if a reader has found a removal of it in a newer run. Bits
    /// are never cleared. An unsorted tail has no bits.
    removed: Vec<AtomicU64>,
    /// Number of records of a sorted run that are void ([`Order::is_void`]).
    void: usize,
}

/// The memory of a new record, to be filled from front to back, completely.
#[derive(Debug)]
pub struct Room<'r>(&'r mut [u8]);

impl Room<'_> {
    /// A fixed number of bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self, bytes: [u8; N]) {
        self.next(N).copy_from_slice(&bytes);
    }

    /// Bytes without a length.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.next(bytes.len()).copy_from_slice(bytes);
    }

    /// Requires: the record was announced with enough bytes.
    #[inline]
    fn next(&mut self, len: usize) -> &mut [u8] {
        let (next, rest) = std::mem::take(&mut self.0).split_at_mut(len);
        self.0 = rest;
        next
    }
}

/// Bits of a word of [`Run::removed`].
const BITS: usize = u64::BITS as usize;

/// Number of heads that a reader can compare in the time that one record's bytes take.
const PASSED_FOR_A_LOOK: usize = 16;

/// Memory of a record beside its bytes.
pub(crate) const RECORD_BYTES: usize = size_of::<u64>() + size_of::<u32>();

/// Minimum growth of the record memory.
const ROOM_BYTES: usize = 1 << 10;

/// Maximum growth of the record memory: half of a full tail, and some bytes for its last record.
const GROWTH_BYTES_MAX: usize = 264 << 10;

impl Run {
    pub(crate) fn with_capacity(records: usize, bytes: usize) -> Self {
        Self {
            heads: Vec::with_capacity(records),
            ends: Vec::with_capacity(records),
            bytes: Vec::with_capacity(bytes),
            removed: Vec::with_capacity(records.div_ceil(BITS)),
            void: 0,
        }
    }

    pub(crate) fn heads(&self) -> &[u64] {
        &self.heads
    }

    /// Number of records.
    #[inline]
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    /// True if there are no records.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// Memory that its records take.
    pub fn size_bytes(&self) -> usize {
        self.bytes_len() + self.len() * RECORD_BYTES
    }

    #[cfg(test)]
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.bytes.capacity() + self.heads.capacity() * 8 + self.ends.capacity() * 4
    }

    #[inline]
    pub(crate) fn bytes_len(&self) -> usize {
        self.ends.last().map_or(0, |end| *end as usize)
    }

    /// The record with number `index`, which must be below the length.
    #[inline]
    pub fn record(&self, index: usize) -> Record<'_> {
        let start = match index {
            0 => 0,
            _ => self.ends[index - 1] as usize,
        };
        Record {
            head: self.heads[index],
            bytes: &self.bytes[start..self.ends[index] as usize],
        }
    }

    /// Like [`Self::find`], in few steps if the result is near `from`.
    pub(crate) fn find_near(
        &self,
        from: usize,
        to: usize,
        mut before: impl FnMut(Record<'_>) -> bool,
    ) -> usize {
        let (mut low, mut step) = (from, 1);
        while low < to {
            let probe = (low + step - 1).min(to - 1);
            if !before(self.record(probe)) {
                return self.find(low, probe, before);
            }
            low = probe + 1;
            step *= 2;
        }
        to
    }

    /// The number of the first record in `from..to` whose bit is not set; `to` if there is none.
    pub(crate) fn next_living(&self, from: usize, to: usize) -> usize {
        let mut at = from;
        while at < to {
            let living = !self.removed_word(at) >> (at % BITS);
            if living != 0 {
                return (at + living.trailing_zeros() as usize).min(to);
            }
            at = (at / BITS + 1) * BITS;
        }
        to
    }

    /// The records of a range whose bits are not set.
    pub fn living(&self, range: Range<usize>) -> impl Iterator<Item = Record<'_>> {
        let Range { mut start, end } = range;
        std::iter::from_fn(move || {
            start = self.next_living(start, end);
            (start < end).then(|| {
                start += 1;
                self.record(start - 1)
            })
        })
    }

    /// How many records of a range have no bit that is set.
    pub fn count_living(&self, range: Range<usize>) -> usize {
        let Range { mut start, end } = range;
        let mut count = 0;
        while start < end {
            let next = ((start / BITS + 1) * BITS).min(end);
            let bits = (u64::MAX >> (BITS - (next - start))) << (start % BITS);
            count += (!self.removed_word(start) & bits).count_ones() as usize;
            start = next;
        }
        count
    }

    /// The word of `removed` with the bit of a record.
    fn removed_word(&self, index: usize) -> u64 {
        let word = self.removed.get(index / BITS);
        word.map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Sets the bit of a record.
    pub(crate) fn mark_removed(&self, index: usize) {
        if let Some(word) = self.removed.get(index / BITS) {
            word.fetch_or(1 << (index % BITS), Ordering::Relaxed);
        }
    }

    /// The number of the first record in `from..to` for which `before` is false. Requires: `before` is true for a prefix only.
    pub fn find(&self, from: usize, to: usize, mut before: impl FnMut(Record<'_>) -> bool) -> usize {
        let (mut low, mut high) = (from, to);
        while low < high {
            let middle = usize::midpoint(low, high);
            if before(self.record(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Appends the records of a stretch to `into`; returns the work, in heads compared.
    pub(crate) fn pick(&self, stretch: &impl Stretch, into: &mut Self) -> usize {
        let heads = stretch.heads();
        let mut looked_into = 0;
        for (number, _) in self
            .heads
            .iter()
            .enumerate()
            .filter(|(_, head)| heads.contains(head))
        {
            let record = self.record(number);
            looked_into += 1;
            if stretch.has(record) {
                into.push_record(record);
            }
        }
        self.len() + looked_into * PASSED_FOR_A_LOOK
    }

    /// Appends a record of `len` bytes; returns the memory that it takes.
    #[inline]
    pub(crate) fn push(&mut self, head: u64, len: usize, write: impl FnOnce(&mut Room<'_>)) -> usize {
        let start = self.bytes_len();
        let end = start + len;
        if end > self.bytes.len() {
            self.make_room(end);
        }
        let mut room = Room(&mut self.bytes[start..end]);
        write(&mut room);
        debug_assert!(room.0.is_empty(), "a record has its announced length");
        self.heads.push(head);
        // A tail is cut far below this size.
        self.ends.push(u32::try_from(end).unwrap_or(u32::MAX));
        len + RECORD_BYTES
    }

    /// The capacity grows fourfold, so that little is copied, but by a limited amount, so that a full tail wastes little. It is
    /// zeroed in small steps, so that unused memory is not touched.
    #[cold]
    fn make_room(&mut self, end: usize) {
        let (len, capacity) = (self.bytes.len(), self.bytes.capacity());
        if end > capacity {
            let growth = (3 * capacity).clamp(ROOM_BYTES, GROWTH_BYTES_MAX);
            self.bytes.reserve_exact(growth.max(end - len));
        }
        self.bytes
            .resize((end + ROOM_BYTES).min(self.bytes.capacity()), 0);
    }

    #[inline]
    pub(crate) fn push_record(&mut self, record: Record<'_>) {
        self.push(record.head, record.bytes.len(), |room| room.bytes(record.bytes));
    }

    /// Appends a record of a sorted run.
    #[inline]
    pub(crate) fn push_sorted(&mut self, order: &impl Order, record: Record<'_>) {
        let index = self.len();
        if index.is_multiple_of(BITS) {
            self.removed.push(AtomicU64::new(0));
        }
        if order.is_removal(record.bytes)
            && let Some(word) = self.removed.last_mut()
        {
            *word.get_mut() |= 1 << (index % BITS);
            self.void += usize::from(order.is_void(record.bytes));
        }
        self.push_record(record);
    }

    /// This sorted run without the records that are void, and those; `None` if there are none.
    pub(crate) fn without_void(self, order: &impl Order) -> (Self, Option<Self>) {
        if self.void == 0 {
            return (self, None);
        }
        let (mut kept, mut void) = (Self::default(), Self::default());
        for record in (0..self.len()).map(|number| self.record(number)) {
            let into = if order.is_void(record.bytes) {
                &mut void
            } else {
                &mut kept
            };
            into.push_sorted(order, record);
        }
        (kept, Some(void))
    }

    /// Releases unused memory.
    pub(crate) fn shrink(&mut self) {
        self.bytes.truncate(self.bytes_len());
        self.heads.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.bytes.shrink_to_fit();
        self.removed.shrink_to_fit();
    }
}
