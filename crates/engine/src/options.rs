//! [`EngineOptions`].

use std::path::{Path, PathBuf};
use std::time::Duration;

use ilion_index::IndexClasses;
use ilion_sstable::{Finding, Version};
use ilion_types::Partitioner;

use crate::large::LargeLimits;

/// How an [`crate::Engine`] behaves.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// The directory with the tables, `<keyspace>/<table>-<id>/`.
    pub data_dir: PathBuf,
    /// The directory with the segments of the commit log.
    pub commitlog_dir: PathBuf,
    /// How keys become tokens; fixed for the life of a data directory.
    pub partitioner: Partitioner,
    /// Options of the commit log: segments, sync mode, how damage is handled.
    pub commit_log: ilion_commitlog::Options,
    /// Above this size of the log, the table with the oldest unflushed data is flushed.
    pub commit_log_bytes_max: u64,
    /// Memory of all memtables together, in bytes. Flushes start at two fifths of it.
    pub memtable_bytes_max: usize,
    /// Shards of a memtable.
    pub memtable_shards: usize,
    /// Version of the SSTables that are written; it decides their format.
    pub sstable_version: Version,
    /// A directory of Cassandra 4.x stays readable for Cassandra 4.x; if false, it becomes one of 5.0 for good.
    pub stays_compatible: bool,
    /// How partitions of SSTables are found: by token maps, or as in Cassandra. Without token maps none are written.
    pub finding: Finding,
    /// The key cache: positions of partitions in SSTables without a token map.
    pub key_cache: CacheOptions,
    /// Thresholds of warnings about large partitions, rows and cells.
    pub large: LargeLimits,
    /// Size of the blocks of row indexes that are written; `None` is the default of the format.
    pub column_index_bytes: Option<u32>,
    /// Memory of the index summaries of all SSTables; they are sampled more sparsely to fit.
    pub index_summary_bytes: u64,
    /// Memory of the sorted views of all tables. A table whose view does not fit has none.
    pub sorted_view_bytes: u64,
    /// Memory for pages of token maps, cell maps and attached indexes. All engines of a process share it; the engine that is opened last
    /// sets the limit.
    pub index_page_bytes: u64,
    /// How often index summaries are resized; `None` means never.
    pub index_summary_resize_interval_secs: Option<u64>,
    /// Memory of decompressed chunks.
    pub chunk_cache_bytes: u64,
    /// The row cache: heads of partitions, for tables with `caching = {'rows_per_partition': ...}`.
    pub row_cache: CacheOptions,
    /// The counter cache: this node's shards of counters.
    pub counter_cache: CacheOptions,
    /// The directory of the saved caches.
    pub saved_caches_dir: PathBuf,
    /// How long saved caches may take to load, in the background.
    pub cache_load_timeout: Duration,
    /// Whether compactions start in the background.
    pub is_compacting: bool,
    /// Compactions that may run at the same time.
    pub compaction_threads: usize,
    /// How many bytes per second all compactions together may read; `None` is no limit.
    pub compaction_bytes_per_sec: Option<u64>,
    /// Snapshots and backups that the engine makes by itself.
    pub snapshots: SnapshotOptions,
    /// The known classes of indexes.
    pub index_classes: IndexClasses,
    /// The engine and its log have no threads: background work waits until [`crate::Engine::step`] does it, and what is due by time
    /// until [`crate::Engine::tick`]. Writers are not slowed, and saved caches are loaded at once and not saved. For simulations, in which
    /// one seed decides everything.
    pub is_stepped: bool,
}

/// A cache whose keys can be saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheOptions {
    /// Its capacity in bytes; 0 means no cache.
    pub bytes_max: u64,
    /// Time between two saves of its keys; `None` never saves them, not even when the engine closes.
    pub save_period: Option<Duration>,
    /// Maximum number of keys that are saved.
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
    /// Default options, with the directories `data/`, `commitlog/` and `saved_caches/` below `root`.
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
            column_index_bytes: None,
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
            snapshots: SnapshotOptions::default(),
            index_classes: IndexClasses::own(),
            is_stepped: false,
        }
    }
}

/// How an engine takes snapshots and backups by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotOptions {
    /// Takes a snapshot before TRUNCATE and DROP remove data (`auto_snapshot`).
    pub is_automatic: bool,
    /// How long automatic snapshots are kept; `None` keeps them until they are cleared (`auto_snapshot_ttl`).
    pub automatic_ttl_secs: Option<u64>,
    /// Takes a snapshot before each compaction (`snapshot_before_compaction`).
    pub is_before_compaction: bool,
    /// Links each flushed SSTable into `backups/` (`incremental_backups`).
    pub is_backing_up: bool,
    /// Maximum number of files that are linked per second; `None` is no limit (`snapshot_links_per_second`).
    pub links_per_sec: Option<u32>,
}

impl Default for SnapshotOptions {
    fn default() -> Self {
        Self {
            is_automatic: true,
            automatic_ttl_secs: None,
            is_before_compaction: false,
            is_backing_up: false,
            links_per_sec: None,
        }
    }
}
