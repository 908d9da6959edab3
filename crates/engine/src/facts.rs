//! Counts for operators: metrics, `ilion info`, `system_views`.

use std::sync::atomic::Ordering::Relaxed;

use ilion_env::{PageBudget, RequestIo};

use ilion_sstable::LookupCounts;

use crate::log_losses::LogLosses;
use crate::shared::Shared;
use crate::view::View;
use crate::{Engine, TableStore};

/// The state of a cache at one moment.
#[derive(Clone, Debug, Default)]
pub struct CacheFacts {
    /// Its name in `system_views.caches`.
    pub name: &'static str,
    /// Memory in use.
    pub bytes: u64,
    /// The limit of `bytes`.
    pub bytes_max: u64,
    /// Entries in it.
    pub entries: u64,
    /// Look-ups since the start that found an entry.
    pub hits: u64,
    /// Look-ups since the start that found no entry.
    pub misses: u64,
}

/// The state of the engine at one moment.
#[derive(Clone, Debug, Default)]
pub struct EngineFacts {
    /// Bytes of memory of all memtables.
    pub memtable_bytes: u64,
    /// The limit of `memtable_bytes`.
    pub memtable_bytes_max: u64,
    /// Running flushes.
    pub flushes_running: u64,
    /// Flushes that are requested but not running yet.
    pub flushes_waiting: u64,
    /// Flushes since the start.
    pub flushes: u64,
    /// Bytes of SSTables that flushes wrote.
    pub flushed_bytes: u64,
    /// Compactions since the start.
    pub compactions: u64,
    /// Compactions that failed; the log says why.
    pub compactions_failed: u64,
    /// Bytes of SSTables that compactions read.
    pub compacted_bytes_in: u64,
    /// Bytes of SSTables that compactions wrote.
    pub compacted_bytes_out: u64,
    /// Running compactions.
    pub compactions_running: u64,
    /// Compactions that may run at the same time.
    pub compaction_threads: u64,
    /// How often all of `system_schema` was read.
    pub schema_readings: u64,
    /// By how many microseconds the clock is behind the newest timestamp that this node gave; 0 if the clock is ahead.
    pub clock_behind_micros: u64,
    /// Parts of the commit log that the start could not read.
    pub log_losses: LogLosses,
    /// Counts of the commit log.
    pub commit_log: ilion_commitlog::Stats,
    /// Bytes of decompressed chunks in the chunk cache.
    pub chunk_cache_bytes: u64,
    /// The limit of `chunk_cache_bytes`.
    pub chunk_cache_bytes_max: u64,
    /// Reads of chunks that were in the cache.
    pub chunk_cache_hits: u64,
    /// Reads of chunks that were not in the cache and went to disk.
    pub chunk_cache_misses: u64,
    /// Chunks in the cache.
    pub chunk_cache_chunks: u64,
    /// Bytes of the key cache.
    pub key_cache_bytes: u64,
    /// The limit of `key_cache_bytes`.
    pub key_cache_bytes_max: u64,
    /// Look-ups that the key cache answered.
    pub key_cache_hits: u64,
    /// Look-ups that the key cache did not answer.
    pub key_cache_misses: u64,
    /// Partitions in the key cache.
    pub key_cache_keys: u64,
    /// All caches.
    pub caches: Vec<CacheFacts>,
    /// How look-ups in SSTables were answered.
    pub lookups: LookupCounts,
    /// Bytes of the token maps of all SSTables.
    pub token_map_bytes: u64,
    /// Memory of the pages of token maps, cell maps and attached indexes.
    pub index_page_bytes: u64,
    /// The limit of `index_page_bytes`.
    pub index_page_bytes_max: u64,
}

/// The state of a table at one moment.
#[derive(Clone, Debug, Default)]
pub struct TableFacts {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub table: String,
    /// Number of SSTables.
    pub sstables: u64,
    /// SSTables of each level; without leveled compaction all are in the first one.
    pub levels: Vec<u64>,
    /// Bytes of their files.
    pub sstable_bytes: u64,
    /// Memory of its memtables.
    pub memtable_bytes: u64,
    /// About how many partitions the table has; a partition that is in several sources counts several times.
    pub estimated_partitions: u64,
    /// About how many compactions are due.
    pub pending_compactions: u64,
    /// SSTables that a read may have to touch only because compactions are behind.
    pub compaction_debt: u64,
    /// Whether background compactions of the table are on.
    pub is_auto_compacting: bool,
}

impl Engine {
    /// Counts of the whole engine.
    pub fn facts(&self) -> EngineFacts {
        let shared = &self.shared;
        let counters = &shared.counters;
        let cache = &shared.chunk_cache;
        EngineFacts {
            memtable_bytes: shared.budget.used() as u64,
            memtable_bytes_max: shared.budget.limit() as u64,
            flushes_running: counters.flushes_running.load(Relaxed),
            flushes_waiting: shared.background.flushes_waiting() as u64,
            flushes: counters.flushes.load(Relaxed),
            flushed_bytes: counters.flushed_bytes.load(Relaxed),
            compactions: counters.compactions.load(Relaxed),
            compactions_failed: counters.compactions_failed.load(Relaxed),
            compacted_bytes_in: counters.compacted_bytes_in.load(Relaxed),
            compacted_bytes_out: counters.compacted_bytes_out.load(Relaxed),
            compactions_running: shared.tasks.list().len() as u64,
            compaction_threads: shared.background.compactors() as u64,
            schema_readings: counters.schema_readings.load(Relaxed),
            clock_behind_micros: shared.clock_behind_micros().unsigned_abs(),
            log_losses: shared.log_losses.get().copied().unwrap_or_default(),
            commit_log: shared
                .log
                .get()
                .map(ilion_commitlog::CommitLog::stats)
                .unwrap_or_default(),
            chunk_cache_bytes: cache.size_bytes(),
            chunk_cache_bytes_max: cache.capacity_bytes(),
            chunk_cache_hits: cache.hits(),
            chunk_cache_misses: cache.misses(),
            chunk_cache_chunks: cache.chunk_count() as u64,
            key_cache_bytes: shared.key_cache.size_bytes(),
            key_cache_bytes_max: shared.key_cache.capacity_bytes(),
            key_cache_hits: shared.key_cache.hits(),
            key_cache_misses: shared.key_cache.misses(),
            key_cache_keys: shared.key_cache.entry_count() as u64,
            caches: shared.cache_facts(),
            lookups: shared.lookups.counts(),
            token_map_bytes: shared.stores().iter().map(|store| store.token_map_bytes()).sum(),
            index_page_bytes: PageBudget::of_process().taken(),
            index_page_bytes_max: PageBudget::of_process().limit(),
        }
    }

    /// Counts of each table, and of the hidden tables of indexes, which are named `table.index` as in Cassandra.
    pub fn table_facts(&self) -> Vec<TableFacts> {
        let mut facts: Vec<TableFacts> = self
            .shared
            .stores()
            .iter()
            .map(|store| TableFacts {
                pending_compactions: self.shared.pending_compactions(store) as u64,
                ..store.facts()
            })
            .collect();
        facts.sort_by(|a, b| (&a.keyspace, &a.table).cmp(&(&b.keyspace, &b.table)));
        facts
    }

    /// Counts of reads, writes and syncs of files since the process started.
    pub fn io(&self) -> RequestIo {
        ilion_env::account::totals().into_iter().map(|(_, io)| io).sum()
    }
}

impl Shared {
    fn cache_facts(&self) -> Vec<CacheFacts> {
        let (chunks, counters) = (&self.chunk_cache, &self.counter_cache);
        let (keys, rows) = (&self.key_cache, &self.row_cache);
        vec![
            CacheFacts {
                name: "chunks",
                bytes: chunks.size_bytes(),
                bytes_max: chunks.capacity_bytes(),
                entries: chunks.chunk_count() as u64,
                hits: chunks.hits(),
                misses: chunks.misses(),
            },
            CacheFacts {
                name: "counters",
                bytes: counters.size_bytes(),
                bytes_max: counters.capacity_bytes(),
                entries: counters.len() as u64,
                hits: counters.hits.load(Relaxed),
                misses: counters.misses.load(Relaxed),
            },
            CacheFacts {
                name: "keys",
                bytes: keys.size_bytes(),
                bytes_max: keys.capacity_bytes(),
                entries: keys.entry_count() as u64,
                hits: keys.hits(),
                misses: keys.misses(),
            },
            CacheFacts {
                name: "rows",
                bytes: rows.size_bytes(),
                bytes_max: rows.capacity_bytes(),
                entries: rows.len() as u64,
                hits: rows.hits.load(Relaxed),
                misses: rows.misses.load(Relaxed),
            },
        ]
    }
}

impl TableStore {
    fn token_map_bytes(&self) -> u64 {
        let view = self.view();
        let maps = view
            .sstables
            .iter()
            .filter_map(|live| live.sstable.token_map_bytes());
        maps.sum()
    }

    pub(crate) fn facts(&self) -> TableFacts {
        let schema = self.schema();
        let view = self.view();
        let sstables = view.sstables.iter().map(|live| &live.sstable);
        let in_memory: usize = view
            .memtables
            .iter()
            .map(|memtable| memtable.partition_count())
            .sum();
        TableFacts {
            keyspace: schema.keyspace.clone(),
            table: schema.name.clone(),
            sstables: view.sstables.len() as u64,
            levels: levels_of(&view),
            sstable_bytes: sstables.clone().map(|sstable| sstable.size_bytes()).sum(),
            memtable_bytes: view.memtable_bytes(),
            estimated_partitions: sstables.map(|sstable| sstable.estimated_keys()).sum::<u64>()
                + in_memory as u64,
            pending_compactions: 0,
            compaction_debt: self.debt.now() as u64,
            is_auto_compacting: self.is_auto_compacting(),
        }
    }
}

/// SSTables of each level.
pub(crate) fn levels_of(view: &View) -> Vec<u64> {
    let mut levels = Vec::new();
    for live in &view.sstables {
        let level = usize::try_from(live.sstable.stats().level).unwrap_or(0);
        if levels.len() <= level {
            levels.resize(level + 1, 0);
        }
        levels[level] += 1;
    }
    levels
}
