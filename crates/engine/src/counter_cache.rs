//! The counter cache: this node's shard of a counter, so that an increment need not read it from memtables and SSTables.
//!
//! An entry is the clock and count of this node's shard. Writers of counters hold their partition's lock from look-up to
//! insert. A deletion holds no lock: it raises the epoch of its partition, which makes entries of earlier epochs invalid.
//! Compat: `CounterCacheKey`, `ClockAndCount` of Cassandra 5.0, which continues with the count of a deleted counter.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use ilion_rows::{Clustering, Data, PartitionUpdate};
use ilion_schema::{ColumnId, TableId};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// Number of epochs; partitions share them by hash.
const STRIPES: usize = 1024;
const ENTRY_OVERHEAD_BYTES: u64 = 160;

/// The key of a counter in the cache.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CounterKey {
    /// Its table.
    pub table: TableId,
    /// Its partition.
    pub key: Bytes,
    /// The clustering of its row; empty for a static column.
    pub clustering: Clustering,
    /// Its column.
    pub column: ColumnId,
}

/// This node's shard of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnCount {
    /// How often the shard was written.
    pub clock: i64,
    /// Its count.
    pub count: i64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    own: OwnCount,
    epoch: u64,
}

#[derive(Clone, Debug)]
struct ByBytes;

impl Weighter<CounterKey, Entry> for ByBytes {
    fn weight(&self, key: &CounterKey, _: &Entry) -> u64 {
        (key.key.len() + key.clustering.size_bytes()) as u64 + ENTRY_OVERHEAD_BYTES
    }
}

/// The counter cache. Its size is limited in bytes.
pub struct CounterCache {
    counters: Cache<CounterKey, Entry, ByBytes>,
    epochs: Box<[AtomicU64]>,
    hasher: foldhash::fast::FixedState,
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
}

impl CounterCache {
    pub(crate) fn new(capacity_bytes: u64) -> Self {
        let entries = usize::try_from(capacity_bytes / 256).unwrap_or(usize::MAX);
        Self {
            counters: Cache::with_weighter(entries.max(16), capacity_bytes, ByBytes),
            epochs: std::iter::repeat_with(|| AtomicU64::new(0))
                .take(STRIPES)
                .collect(),
            hasher: foldhash::fast::FixedState::default(),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    pub(crate) fn capacity_bytes(&self) -> u64 {
        self.counters.capacity()
    }

    /// Sets the capacity, and evicts entries that no longer fit.
    pub(crate) fn resize(&self, capacity_bytes: u64) {
        self.counters.set_capacity(capacity_bytes);
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.counters.weight()
    }

    pub(crate) fn len(&self) -> usize {
        self.counters.len()
    }

    /// False if the capacity is 0.
    pub fn is_enabled(&self) -> bool {
        self.capacity_bytes() > 0
    }

    fn epoch_of(&self, table: TableId, key: &Bytes) -> &AtomicU64 {
        &self.epochs[self.hasher.hash_one((table, key)) as usize % STRIPES]
    }

    /// The epoch of a partition: taken before a counter is read, and passed to [`Self::insert`].
    pub fn epoch(&self, table: TableId, key: &Bytes) -> u64 {
        self.epoch_of(table, key).load(Ordering::Acquire)
    }

    /// This node's shard; `None` if it is not cached.
    pub fn lookup(&self, key: &CounterKey) -> Option<OwnCount> {
        let epoch = self.epoch(key.table, &key.key);
        let found = self.counters.get(key).filter(|entry| entry.epoch == epoch);
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        found.map(|entry| entry.own)
    }

    /// Caches a shard. Requires: the partition's lock has been held since `epoch` was taken.
    pub fn insert(&self, key: &CounterKey, own: OwnCount, epoch: u64) {
        let detached = CounterKey {
            key: Bytes::copy_from_slice(&key.key),
            clustering: Clustering::new(detached(&key.clustering)),
            ..*key
        };
        self.counters.insert(detached, Entry { own, epoch });
    }

    /// Makes the entries of a partition invalid, since data of it was deleted.
    pub(crate) fn forget(&self, table: TableId, key: &Bytes) {
        self.epoch_of(table, key).fetch_add(1, Ordering::AcqRel);
    }

    /// Removes all entries of one table, or with `None` those of all tables.
    pub(crate) fn clear(&self, table: Option<TableId>) {
        for epoch in &self.epochs {
            epoch.fetch_add(1, Ordering::AcqRel);
        }
        match table {
            None => self.counters.clear(),
            Some(table) => self.counters.retain(|key, _| key.table != table),
        }
    }

    /// The cached counters.
    pub(crate) fn keys(&self) -> Vec<CounterKey> {
        self.counters.iter().map(|(key, _)| key).collect()
    }
}

fn detached(clustering: &Clustering) -> ilion_rows::Values {
    let copy = |value: &Option<Bytes>| value.as_ref().map(|value| Bytes::copy_from_slice(value));
    clustering.values().iter().map(copy).collect()
}

impl std::fmt::Debug for CounterCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CounterCache").field("len", &self.len()).finish()
    }
}

/// True if the update of a counter table deletes something, so that cached shards are wrong.
pub fn deletes_counters(update: &PartitionUpdate) -> bool {
    update.deletion.is_some()
        || !update.ranges.is_empty()
        || update.static_row.iter().chain(&update.rows).any(|row| {
            !row.deletion.is_live()
                || row
                    .columns
                    .iter()
                    .any(|entry| matches!(&entry.data, Data::Simple(cell) if cell.is_tombstone()))
        })
}
