//! Recently read chunks, decompressed, shared by all SSTables; limited in bytes.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use ilion_env::cost::{self, Count};
use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, Lifecycle, Weighter};

use super::spare;

/// An open file and the number of a chunk in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ChunkKey {
    file: u64,
    chunk: u64,
}

/// Approximate bytes of an entry in addition to its chunk.
const ENTRY_OVERHEAD_BYTES: u64 = 96;

#[derive(Clone, Debug)]
struct ByBytes;

impl Weighter<ChunkKey, Bytes> for ByBytes {
    fn weight(&self, _: &ChunkKey, chunk: &Bytes) -> u64 {
        chunk.len() as u64 + ENTRY_OVERHEAD_BYTES
    }
}

/// Returns the entry that an insertion evicts.
#[derive(Clone, Debug)]
struct HandOut;

impl Lifecycle<ChunkKey, Bytes> for HandOut {
    /// The last evicted chunk.
    type RequestState = Option<Bytes>;

    fn on_evict(&self, thrown_out: &mut Self::RequestState, _: ChunkKey, chunk: Bytes) {
        *thrown_out = Some(chunk);
    }
}

/// A cache of decompressed chunks, limited in bytes.
pub struct ChunkCache {
    chunks: Cache<ChunkKey, Bytes, ByBytes, DefaultHashBuilder, HandOut>,
    next_file: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl ChunkCache {
    /// A cache of at most `capacity_bytes`.
    pub fn new(capacity_bytes: u64) -> Self {
        let entries = usize::try_from(capacity_bytes / 16_384)
            .unwrap_or(usize::MAX)
            .max(16);
        Self {
            chunks: Cache::with(
                entries,
                capacity_bytes,
                ByBytes,
                DefaultHashBuilder::default(),
                HandOut,
            ),
            next_file: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// Bytes in the cache.
    pub fn size_bytes(&self) -> u64 {
        self.chunks.weight()
    }

    /// Maximum number of bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.chunks.capacity()
    }

    /// Number of chunks in the cache.
    pub fn chunk_count(&self) -> usize {
        self.chunks.len()
    }

    /// Number of lookups that found their chunk.
    pub fn hits(&self) -> u64 {
        self.hits.load(Relaxed)
    }

    /// Number of lookups that did not find their chunk.
    pub fn misses(&self) -> u64 {
        self.misses.load(Relaxed)
    }

    /// Changes the capacity, in bytes; evicts chunks that no longer fit.
    pub fn resize(&self, capacity_bytes: u64) {
        self.chunks.set_capacity(capacity_bytes);
    }

    /// Removes all chunks.
    pub fn clear(&self) {
        self.chunks.clear();
    }

    /// Returns a new number for a file that was opened. Numbers are never reused, so chunks of a replaced file are never returned.
    pub(super) fn admit_file(&self) -> u64 {
        self.next_file.fetch_add(1, Relaxed)
    }

    #[inline]
    pub(super) fn lookup(&self, file: u64, chunk: u64) -> Option<Bytes> {
        let found = self.chunks.get(&ChunkKey { file, chunk });
        match &found {
            Some(chunk) => self.count_hit(chunk),
            None => {
                self.misses.fetch_add(1, Relaxed);
            }
        }
        found
    }

    /// As [`Self::lookup`], for a chunk that may not be needed: a miss is not counted.
    #[inline]
    pub(super) fn lookup_ahead(&self, file: u64, chunk: u64) -> Option<Bytes> {
        let found = self.chunks.get(&ChunkKey { file, chunk })?;
        self.count_hit(&found);
        Some(found)
    }

    #[inline]
    fn count_hit(&self, chunk: &Bytes) {
        self.hits.fetch_add(1, Relaxed);
        cost::add(Count::CachedChunks, 1);
        cost::add(Count::CachedBytes, chunk.len() as u64);
    }

    pub(super) fn insert(&self, file: u64, chunk: u64, bytes: Bytes) {
        let mut thrown_out = None;
        self.chunks
            .insert_with_lifecycle(ChunkKey { file, chunk }, bytes, &mut thrown_out);
        if let Some(chunk) = thrown_out {
            spare::keep(chunk);
        }
    }

    /// True if this many bytes fit without evicting useful chunks.
    pub(super) fn has_room_for(&self, bytes: usize) -> bool {
        self.chunks.weight().saturating_add(bytes as u64) <= self.chunks.capacity() / 4 * 3
    }

    /// Removes the chunks of a closed file.
    pub(super) fn forget_file(&self, file: u64, chunk_count: u64) {
        for chunk in 0..chunk_count {
            self.chunks.remove(&ChunkKey { file, chunk });
        }
    }
}

impl std::fmt::Debug for ChunkCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChunkCache")
            .field("size_bytes", &self.size_bytes())
            .field("capacity_bytes", &self.capacity_bytes())
            .finish()
    }
}
