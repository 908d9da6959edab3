//! How an SSTable is opened, and what its look-ups count.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ilion_schema::TableId;
use ilion_types::Partitioner;

use crate::{ChunkCache, KeyCache};

/// How an SSTable is opened.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// What the keys are ordered by.
    pub partitioner: Partitioner,
    /// Where decompressed chunks are kept; without it, every read decompresses.
    pub chunk_cache: Option<Arc<ChunkCache>>,
    /// How partitions are found.
    pub finding: Finding,
    /// Where places of partitions are kept that an index was asked for, and the table as which they are known there.
    pub key_cache: Option<(TableId, Arc<KeyCache>)>,
    /// Where look-ups are counted.
    pub lookups: Arc<Lookups>,
    /// Of a row that takes more, scans keep the values in files without a name rather than in memory.
    pub held_row_bytes_max: usize,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            partitioner: Partitioner::default(),
            chunk_cache: None,
            finding: Finding::default(),
            key_cache: None,
            lookups: Arc::default(),
            held_row_bytes_max: 16 << 20,
        }
    }
}

/// How partitions are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Finding {
    /// By the token map; where there is none, as [`Finding::Summary`].
    #[default]
    TokenMap,
    /// As Cassandra does: Bloom filter, key cache, summary, index.
    Summary,
    /// As [`Finding::Summary`], and the whole index is read when the SSTable is opened, as before Cassandra 1.2.
    WholeIndex,
}

/// How look-ups of partitions were answered, since the start.
#[derive(Debug, Default)]
pub struct Lookups {
    /// By a token map, which knew the place, or that there is none.
    pub(crate) by_token_map: AtomicU64,
    /// By a walk over an index.
    pub(crate) by_index: AtomicU64,
    /// Partitions with another key that looked like the right one to a token map.
    pub(crate) token_map_false_positives: AtomicU64,
    /// Keys that a Bloom filter let pass and that were not there.
    pub(crate) filter_false_positives: AtomicU64,
}

/// The counts at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LookupCounts {
    /// Look-ups that a token map answered.
    pub by_token_map: u64,
    /// Look-ups that walked over an index.
    pub by_index: u64,
    /// Partitions with another key that looked like the right one to a token map.
    pub token_map_false_positives: u64,
    /// Keys that a Bloom filter let pass and that were not there.
    pub filter_false_positives: u64,
}

impl Lookups {
    /// The counts now.
    pub fn counts(&self) -> LookupCounts {
        LookupCounts {
            by_token_map: self.by_token_map.load(Relaxed),
            by_index: self.by_index.load(Relaxed),
            token_map_false_positives: self.token_map_false_positives.load(Relaxed),
            filter_false_positives: self.filter_false_positives.load(Relaxed),
        }
    }
}

#[inline]
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}
