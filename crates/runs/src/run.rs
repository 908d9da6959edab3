//! Records one after another.

use crate::Stretch;

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'r> {
    /// What it is ordered by first.
    pub head: u64,
    /// The whole of it.
    pub bytes: &'r [u8],
}

/// Records, sorted once they are shown. Invariant: its bytes are fewer than 4 GiB.
#[derive(Debug, Default)]
pub struct Run {
    heads: Vec<u64>,
    /// Where each record ends.
    ends: Vec<u32>,
    /// The records, and behind them zeros for those that come: a write asks once whether there is room.
    bytes: Vec<u8>,
}

/// The memory of a record, which is written from front to back. all of it.
#[derive(Debug)]
pub struct Room<'r>(&'r mut [u8]);

impl Room<'_> {
    /// As many bytes as the type says.
    #[inline]
    pub fn array<const N: usize>(&mut self, bytes: [u8; N]) {
        self.next(N).copy_from_slice(&bytes);
    }

    /// The bytes as they are.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.next(bytes.len()).copy_from_slice(bytes);
    }

    /// Requires: so much is left, as whoever said how long the record is knows.
    #[inline]
    fn next(&mut self, len: usize) -> &mut [u8] {
        let (next, rest) = std::mem::take(&mut self.0).split_at_mut(len);
        self.0 = rest;
        next
    }
}

/// Records that are passed over by their heads in the time that it takes to look into one.
const PASSED_FOR_A_LOOK: usize = 16;

/// What a record takes beside its bytes.
pub(crate) const RECORD_BYTES: usize = size_of::<u64>() + size_of::<u32>();

/// Room that is made at once for records that come.
const ROOM_BYTES: usize = 1 << 10;

/// Memory that is taken at once for records that come: half of what a tail has, and some for its last record.
const GROWTH_BYTES_MAX: usize = 264 << 10;

impl Run {
    pub(crate) fn with_capacity(records: usize, bytes: usize) -> Self {
        Self {
            heads: Vec::with_capacity(records),
            ends: Vec::with_capacity(records),
            bytes: Vec::with_capacity(bytes),
        }
    }

    pub(crate) fn heads(&self) -> &[u64] {
        &self.heads
    }

    /// How many records it has.
    #[inline]
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    /// True if it has none.
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

    /// The record with this number, which is below the length.
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

    /// The number of the first record in `from..to` that is not `before` what is sought.
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

    /// Appends what a reader wants of it to another run; returns about what that took, in records passed over.
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

    /// Appends a record of so many bytes; returns what it takes.
    #[inline]
    pub(crate) fn push(&mut self, head: u64, len: usize, write: impl FnOnce(&mut Room<'_>)) -> usize {
        let start = self.bytes_len();
        let end = start + len;
        if end > self.bytes.len() {
            self.make_room(end);
        }
        let mut room = Room(&mut self.bytes[start..end]);
        write(&mut room);
        debug_assert!(room.0.is_empty(), "a record is as long as it was said to be");
        self.heads.push(head);
        // A run is closed long before.
        self.ends.push(u32::try_from(end).unwrap_or(u32::MAX));
        len + RECORD_BYTES
    }

    /// Memory grows fourfold, so that little is copied, but by a limit, so that a tail that is full fills it; zeros are put there a little
    /// at a time, so that what is not needed is not touched.
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

    /// Gives back memory for records that became one.
    pub(crate) fn shrink(&mut self) {
        self.bytes.truncate(self.bytes_len());
        self.heads.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.bytes.shrink_to_fit();
    }
}
