//! Options of an open SSTable, and counts of its lookups.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ilion_schema::TableId;
use ilion_types::Partitioner;

use crate::{ChunkCache, KeyCache};

/// How an SSTable is opened.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// The partitioner of the keys.
    pub partitioner: Partitioner,
    /// Cache of decompressed chunks; with `None`, every read decompresses.
    pub chunk_cache: Option<Arc<ChunkCache>>,
    /// How partitions are found.
    pub finding: Finding,
    /// Cache of positions that were found through an index, and the table's id in it.
    pub key_cache: Option<(TableId, Arc<KeyCache>)>,
    /// Counts lookups.
    pub lookups: Arc<Lookups>,
    /// For rows above this size, scans keep values in unnamed files instead of memory.
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
    /// By the token map; without one, like [`Finding::Summary`].
    #[default]
    TokenMap,
    /// As Cassandra does: by Bloom filter, key cache, summary and index.
    Summary,
    /// Like [`Finding::Summary`], but the whole index is read when the SSTable is opened, as before Cassandra 1.2.
    WholeIndex,
}

/// Counts of lookups of partitions, by the way they were answered.
#[derive(Debug, Default)]
pub struct Lookups {
    /// Answered by a token map, which had the position or excluded the key.
    pub(crate) by_token_map: AtomicU64,
    /// Answered by reading an index.
    pub(crate) by_index: AtomicU64,
    /// The token map returned a partition with another key.
    pub(crate) token_map_false_positives: AtomicU64,
    /// The Bloom filter passed a key that does not exist.
    pub(crate) filter_false_positives: AtomicU64,
}

/// A snapshot of the counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LookupCounts {
    /// Lookups that a token map answered.
    pub by_token_map: u64,
    /// Lookups that read an index.
    pub by_index: u64,
    /// Lookups for which the token map returned a partition with another key.
    pub token_map_false_positives: u64,
    /// Lookups for which the Bloom filter passed a key that does not exist.
    pub filter_false_positives: u64,
}

impl Lookups {
    /// The current counts.
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
