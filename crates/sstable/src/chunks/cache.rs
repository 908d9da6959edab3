//! Decompressed chunks that were read lately, shared by all SSTables; bounded by bytes.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use ilion_env::cost::{self, Count};
use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, Lifecycle, Weighter};

use super::spare;

/// Which chunk of which open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ChunkKey {
    file: u64,
    chunk: u64,
}

/// What an entry costs beside its bytes.
const ENTRY_OVERHEAD_BYTES: u64 = 96;

#[derive(Clone, Debug)]
struct ByBytes;

impl Weighter<ChunkKey, Bytes> for ByBytes {
    fn weight(&self, _: &ChunkKey, chunk: &Bytes) -> u64 {
        chunk.len() as u64 + ENTRY_OVERHEAD_BYTES
    }
}

/// Hands out what an insertion threw out.
#[derive(Clone, Debug)]
struct HandOut;

impl Lifecycle<ChunkKey, Bytes> for HandOut {
    /// The last one.
    type RequestState = Option<Bytes>;

    fn on_evict(&self, thrown_out: &mut Self::RequestState, _: ChunkKey, chunk: Bytes) {
        *thrown_out = Some(chunk);
    }
}

/// Decompressed chunks, at most so many bytes of them.
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

    /// Bytes held.
    pub fn size_bytes(&self) -> u64 {
        self.chunks.weight()
    }

    /// Most bytes that it holds.
    pub fn capacity_bytes(&self) -> u64 {
        self.chunks.capacity()
    }

    /// Chunks held.
    pub fn chunk_count(&self) -> usize {
        self.chunks.len()
    }

    /// Look-ups that found their chunk, since the start.
    pub fn hits(&self) -> u64 {
        self.hits.load(Relaxed)
    }

    /// Look-ups that did not.
    pub fn misses(&self) -> u64 {
        self.misses.load(Relaxed)
    }

    /// Changes the capacity; what no longer fits goes.
    pub fn resize(&self, capacity_bytes: u64) {
        self.chunks.set_capacity(capacity_bytes);
    }

    /// Forgets all chunks.
    pub fn clear(&self) {
        self.chunks.clear();
    }

    /// A number for a file that was just opened; never given twice, so a replaced file cannot be mistaken.
    pub(super) fn admit_file(&self) -> u64 {
        self.next_file.fetch_add(1, Relaxed)
    }

    #[inline]
    pub(super) fn lookup(&self, file: u64, chunk: u64) -> Option<Bytes> {
        let found = self.chunks.get(&ChunkKey { file, chunk });
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Relaxed);
        if let Some(chunk) = &found {
            cost::add(Count::CachedChunks, 1);
            cost::add(Count::CachedBytes, chunk.len() as u64);
        }
        found
    }

    pub(super) fn insert(&self, file: u64, chunk: u64, bytes: Bytes) {
        let mut thrown_out = None;
        self.chunks
            .insert_with_lifecycle(ChunkKey { file, chunk }, bytes, &mut thrown_out);
        if let Some(chunk) = thrown_out {
            spare::keep(chunk);
        }
    }

    /// True if nothing of worth has to go for so many bytes.
    pub(super) fn has_room_for(&self, bytes: usize) -> bool {
        self.chunks.weight().saturating_add(bytes as u64) <= self.chunks.capacity() / 4 * 3
    }

    /// Drops the chunks of a file that was closed.
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
