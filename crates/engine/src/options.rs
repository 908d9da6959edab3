//! What the engine is told when it is opened.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ilion_index::IndexClasses;
use ilion_sstable::{Finding, Version};
use ilion_types::Partitioner;

use crate::large::LargeLimits;

/// How an [`crate::Engine`] behaves.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Holds `<keyspace>/<table>-<id>/`.
    pub data_dir: PathBuf,
    /// Holds the segments of the commit log.
    pub commitlog_dir: PathBuf,
    /// How keys become tokens; fixed for the life of a data directory.
    pub partitioner: Partitioner,
    /// Segments, sync mode, what to do with damage.
    pub commit_log: ilion_commitlog::Options,
    /// Above this size of the log, the tables with the oldest unflushed data are flushed.
    pub commit_log_bytes_max: u64,
    /// What all memtables together may take. Flushing starts at two fifths of it.
    pub memtable_bytes_max: usize,
    /// Shards of a memtable.
    pub memtable_shards: usize,
    /// Version of the SSTables that are written; it decides their format.
    pub sstable_version: Version,
    /// A directory of Cassandra 4.x stays one that it can open; else it becomes one of 5.0 for good.
    pub stays_compatible: bool,
    /// How partitions of SSTables are found: by token maps, or as Cassandra does. It decides whether maps are written, too.
    pub finding: Finding,
    /// Memory for places of partitions that an index was asked for, where no token map knows them.
    pub key_cache: CacheOptions,
    /// Partitions, rows and cells that are warned of as they are written to SSTables.
    pub large: LargeLimits,
    /// What the index summaries of all SSTables may take; they are thinned out to fit.
    pub index_summary_bytes: u64,
    /// What the sorted views of all tables may take; a table that finds no room goes without.
    pub sorted_view_bytes: u64,
    /// Memory for pages of token maps, cell maps and attached indexes. All engines of a process share it: the last one opened says.
    pub index_page_bytes: u64,
    /// How often index summaries are resized; `None` means never.
    pub index_summary_resize_interval_secs: Option<u64>,
    /// Decompressed chunks kept in memory.
    pub chunk_cache_bytes: u64,
    /// Heads of partitions kept in memory, of tables with `caching = {'rows_per_partition': ...}`.
    pub row_cache: CacheOptions,
    /// Counts of this node kept in memory.
    pub counter_cache: CacheOptions,
    /// Holds the keys of saved caches.
    pub saved_caches_dir: PathBuf,
    /// How long saved caches may take to load, in the background.
    pub cache_load_timeout: Duration,
    /// Whether SSTables are compacted without being asked.
    pub is_compacting: bool,
    /// Compactions that may go on at once.
    pub compaction_threads: usize,
    /// Most bytes a second that compactions read together; nothing is no limit.
    pub compaction_bytes_per_sec: Option<u64>,
    /// The kinds of indexes that there are.
    pub index_classes: IndexClasses,
}

/// A cache whose keys can be saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheOptions {
    /// What it may take; 0 is no cache.
    pub bytes_max: u64,
    /// How often its keys are saved, and whether at the end.
    pub save_period: Option<Duration>,
    /// How many keys are saved.
    pub keys_to_save: usize,
}

impl CacheOptions {
    /// A cache of this size whose keys are not saved.
    pub fn of(bytes_max: u64) -> Self {
        Self {
            bytes_max,
            save_period: None,
            keys_to_save: usize::MAX,
        }
    }
}

impl EngineOptions {
    /// Everything below one directory: `data/` and `commitlog/`.
    pub fn below(root: &Path) -> Self {
        Self {
            data_dir: root.join("data"),
            commitlog_dir: root.join("commitlog"),
            partitioner: Partitioner::Murmur3,
            commit_log: ilion_commitlog::Options {
                mode: ilion_commitlog::Mode::Batch,
                ..ilion_commitlog::Options::default()
            },
            commit_log_bytes_max: 2 << 30,
            memtable_bytes_max: 1 << 30,
            memtable_shards: 16,
            sstable_version: Version::NB,
            stays_compatible: true,
            finding: Finding::TokenMap,
            key_cache: CacheOptions::of(16 << 20),
            large: LargeLimits::default(),
            index_summary_bytes: 128 << 20,
            sorted_view_bytes: 256 << 20,
            index_page_bytes: 1 << 30,
            index_summary_resize_interval_secs: Some(3600),
            chunk_cache_bytes: 512 << 20,
            row_cache: CacheOptions::of(0),
            counter_cache: CacheOptions::of(16 << 20),
            saved_caches_dir: root.join("saved_caches"),
            cache_load_timeout: Duration::from_secs(30),
            is_compacting: true,
            compaction_threads: 2,
            compaction_bytes_per_sec: Some(64 << 20),
            index_classes: IndexClasses::own(),
        }
    }
}
