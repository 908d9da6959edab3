//! Writes Summary.db, a sample of Index.db.
//!
//! ```text
//! summary := min_index_interval:i32  count:i32  size:i64  sampling_level:i32  full_count:i32
//!            offset:u32le *  entry *  first_key:bytes32  last_key:bytes32
//! entry   := key bytes  index_position:i64le                 without a length: the next offset ends it
//! ```
//!
//! `size` is the size of all offsets and entries. Offsets count from the start of the offsets.

use ilion_codec::Writer;

/// The level without downsampling (`Downsampling.BASE_SAMPLING_LEVEL`).
const FULL_SAMPLING_LEVEL: i32 = 128;
/// Maximum total size of the entries: entries behind it would have no offset in the file.
const ENTRY_BYTES_MAX: usize = i32::MAX as usize;

#[derive(Debug)]
pub(super) struct SummaryBuilder {
    interval: u32,
    partitions_until_next: u32,
    /// Offsets of the entries, relative to the first one.
    offsets: Vec<u32>,
    entries: Writer,
}

impl SummaryBuilder {
    pub(super) fn new(interval: u32) -> Self {
        Self {
            interval: interval.max(1),
            partitions_until_next: 0,
            offsets: Vec::new(),
            entries: Writer::new(),
        }
    }

    /// Adds a partition, whose entry is at `index_position` of Index.db.
    #[inline]
    pub(super) fn add(&mut self, key: &[u8], index_position: u64) {
        if self.partitions_until_next > 0 {
            self.partitions_until_next -= 1;
        } else {
            self.sample(key, index_position);
        }
    }

    fn sample(&mut self, key: &[u8], index_position: u64) {
        self.partitions_until_next = self.interval - 1;
        let length = self.entries.len() + key.len() + size_of::<u64>();
        // A summary that ends early is valid: lookups read the index from its last entry on.
        let Some(offset) = u32::try_from(self.entries.len())
            .ok()
            .filter(|_| length + 4 * (self.offsets.len() + 1) <= ENTRY_BYTES_MAX)
        else {
            return;
        };
        self.offsets.push(offset);
        self.entries.bytes(key);
        self.entries.i64_le(index_position.cast_signed());
    }

    pub(super) fn encode(&self, first_key: &[u8], last_key: &[u8]) -> Vec<u8> {
        let offsets_length = 4 * self.offsets.len();
        let size = offsets_length + self.entries.len();
        let mut out = Writer::with_capacity(size + first_key.len() + last_key.len() + 40);
        out.u32(self.interval);
        #[expect(clippy::cast_possible_truncation, reason = "below ENTRY_BYTES_MAX")]
        let (count, offsets_length) = (self.offsets.len() as u32, offsets_length as u32);
        out.u32(count);
        out.u64(size as u64);
        out.i32(FULL_SAMPLING_LEVEL);
        out.u32(count);
        for offset in &self.offsets {
            out.u32_le(offsets_length + offset);
        }
        out.bytes(self.entries.as_slice());
        out.bytes32(first_key);
        out.bytes32(last_key);
        out.into_vec()
    }
}
