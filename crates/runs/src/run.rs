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
    bytes: Vec<u8>,
}

/// Records that are passed over by their heads in the time that it takes to look into one.
const PASSED_FOR_A_LOOK: usize = 16;

/// What a record takes beside its bytes.
pub(crate) const RECORD_BYTES: usize = size_of::<u64>() + size_of::<u32>();

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
        self.bytes.len() + self.len() * RECORD_BYTES
    }

    #[cfg(test)]
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.bytes.capacity() + self.heads.capacity() * 8 + self.ends.capacity() * 4
    }

    pub(crate) fn bytes_len(&self) -> usize {
        self.bytes.len()
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

    /// Appends what a reader wants of it to another run; gives about what that took, in records passed over.
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

    #[inline]
    pub(crate) fn push(&mut self, head: u64, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        let before = self.bytes.len();
        write(&mut self.bytes);
        self.heads.push(head);
        // A run is closed long before.
        self.ends
            .push(u32::try_from(self.bytes.len()).unwrap_or(u32::MAX));
        self.bytes.len() - before + RECORD_BYTES
    }

    #[inline]
    pub(crate) fn push_record(&mut self, record: Record<'_>) {
        self.push(record.head, |bytes| bytes.extend_from_slice(record.bytes));
    }

    /// Gives back memory for records that became one.
    pub(crate) fn shrink(&mut self) {
        self.heads.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.bytes.shrink_to_fit();
    }
}
