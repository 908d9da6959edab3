//! Positions of partitions that were recently found through an index, shared by all SSTables; limited in bytes.
//!
//! Used for SSTables without a token map. An entry belongs to one open SSTable. Entries of a closed SSTable are never found again,
//! and are evicted when space is needed.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use ilion_env::cost::{self, Count};
use ilion_schema::TableId;
use parking_lot::Mutex;
use quick_cache::sync::Cache;
use quick_cache::{Equivalent, Weighter};

use crate::Descriptor;
use crate::reader::Location;

/// A partition of an open SSTable.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CacheKey {
    file: u64,
    key: Bytes,
}

/// A borrowed `CacheKey`.
struct CacheKeyRef<'k> {
    file: u64,
    key: &'k [u8],
}

impl Hash for CacheKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.file, &self.key[..]).hash(state);
    }
}

impl Hash for CacheKeyRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.file, self.key).hash(state);
    }
}

impl Equivalent<CacheKey> for CacheKeyRef<'_> {
    fn equivalent(&self, other: &CacheKey) -> bool {
        self.file == other.file && self.key == other.key
    }
}

/// Approximate bytes of an entry in addition to its key.
const ENTRY_OVERHEAD_BYTES: u64 = (size_of::<CacheKey>() + size_of::<Location>()) as u64 + 32;
/// Estimated size of an entry, with a key of 16 bytes, for the initial size of the cache.
const ENTRY_BYTES_ESTIMATED: u64 = ENTRY_OVERHEAD_BYTES + 16;

#[derive(Clone, Debug)]
struct ByBytes;

impl Weighter<CacheKey, Location> for ByBytes {
    fn weight(&self, key: &CacheKey, _: &Location) -> u64 {
        key.key.len() as u64 + ENTRY_OVERHEAD_BYTES
    }
}

/// A cache of positions of partitions, limited in bytes.
pub struct KeyCache {
    places: Cache<CacheKey, Location, ByBytes>,
    next_file: AtomicU64,
    /// The open SSTables by their number.
    files: Mutex<HashMap<u64, (TableId, Descriptor)>>,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// A cached partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedKey {
    /// Its table.
    pub table: TableId,
    /// Its SSTable.
    pub descriptor: Descriptor,
    /// Its key.
    pub key: Bytes,
    /// Its position.
    pub(crate) location: Location,
}

impl KeyCache {
    /// A cache of at most `capacity_bytes`.
    pub fn new(capacity_bytes: u64) -> Self {
        let entries = usize::try_from(capacity_bytes / ENTRY_BYTES_ESTIMATED).unwrap_or(usize::MAX);
        Self {
            places: Cache::with_weighter(entries.max(16), capacity_bytes, ByBytes),
            next_file: AtomicU64::new(0),
            files: Mutex::default(),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// Bytes in the cache.
    pub fn size_bytes(&self) -> u64 {
        self.places.weight()
    }

    /// Maximum number of bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.places.capacity()
    }

    /// Number of partitions in the cache.
    pub fn entry_count(&self) -> usize {
        self.places.len()
    }

    /// Number of lookups that found their partition.
    pub fn hits(&self) -> u64 {
        self.hits.load(Relaxed)
    }

    /// Number of lookups that did not find their partition.
    pub fn misses(&self) -> u64 {
        self.misses.load(Relaxed)
    }

    /// Changes the capacity, in bytes; evicts entries that no longer fit.
    pub fn resize(&self, capacity_bytes: u64) {
        self.places.set_capacity(capacity_bytes);
    }

    /// Removes all partitions.
    pub fn clear(&self) {
        self.places.clear();
    }

    /// Cached partitions of open SSTables, at most `limit`; to be saved by [`crate::SSTable::save_place`].
    pub fn keys(&self, limit: usize) -> Vec<CachedKey> {
        let files = self.files.lock().clone();
        let cached = self.places.iter().filter_map(|(cached, location)| {
            let (table, descriptor) = files.get(&cached.file)?.clone();
            Some(CachedKey {
                table,
                descriptor,
                key: cached.key,
                location,
            })
        });
        cached.take(limit).collect()
    }

    /// Returns a new number for an SSTable that was opened. Numbers are never reused.
    pub(crate) fn admit(&self, table: TableId, descriptor: &Descriptor) -> u64 {
        let file = self.next_file.fetch_add(1, Relaxed);
        self.files.lock().insert(file, (table, descriptor.clone()));
        file
    }

    /// Removes a closed SSTable.
    pub(crate) fn forget(&self, file: u64) {
        self.files.lock().remove(&file);
    }

    #[inline]
    pub(crate) fn lookup(&self, file: u64, key: &[u8]) -> Option<Location> {
        let found = self.places.get(&CacheKeyRef { file, key });
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Relaxed);
        cost::add(Count::CachedKeys, u64::from(found.is_some()));
        found
    }

    /// Removes a partition whose cached position is wrong.
    pub(crate) fn remove(&self, file: u64, key: &[u8]) {
        self.places.remove(&CacheKeyRef { file, key });
    }

    pub(crate) fn insert(&self, file: u64, key: &[u8], location: Location) {
        let key = Bytes::copy_from_slice(key);
        self.places.insert(CacheKey { file, key }, location);
    }
}

impl std::fmt::Debug for KeyCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyCache")
            .field("size_bytes", &self.size_bytes())
            .field("capacity_bytes", &self.capacity_bytes())
            .finish()
    }
}
