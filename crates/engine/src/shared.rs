//! [`Shared`]: the state that the parts and threads of an engine share. Each part has an `impl Shared` in its own module.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use hashbrown::HashMap;
use ilion_commitlog::{CommitLog, Position};
use ilion_env::{Env, PageBudget};
use ilion_rows::ReadLaw;
use ilion_schema::{Release, Schema, SchemaRow, TableId};
use ilion_sstable::{ChunkCache, KeyCache, Lookups, SortedBudget};
use parking_lot::Mutex;
use uuid::Uuid;

use crate::adjust::Adjusted;
use crate::backlog::Backlog;
use crate::budget::Budget;
use crate::cache_saving::CacheSaving;
use crate::clock::now_secs;
use crate::counter_cache::CounterCache;
use crate::counters::Counters;
use crate::faults::Faults;
use crate::log_losses::LogLosses;
use crate::pace::Pacer;
use crate::progress::Awaited;
use crate::purged::Purged;
use crate::reached::Reached;
use crate::releaser::Releaser;
use crate::remover::Remover;
use crate::row_cache::RowCache;
use crate::sampler::Sampling;
use crate::snapshots::Snapshots;
use crate::stall::Stall;
use crate::stripes::Stripes;
use crate::table_store::TableStore;
use crate::tablet_ends::Tablets;
use crate::tasks::Tasks;
use crate::virtual_table::VirtualTables;
use crate::work::Background;
use crate::{EngineOptions, Error, Result};

pub(crate) type TableMap = HashMap<TableId, Arc<TableStore>, foldhash::fast::FixedState>;

/// The state of an engine. Recovery creates it, before the [`crate::Engine`].
pub(crate) struct Shared {
    // For all parts.
    /// The id of this node. Data directory, SSTables and log must have the same id.
    pub id: Uuid,
    /// The directory had this id before this start, so no other program expects to find it unchanged.
    pub is_ours: bool,
    pub env: Arc<dyn Env>,
    pub options: EngineOptions,
    /// Why writes are refused for good.
    failure: OnceLock<String>,
    pub counters: Counters,

    // The schema and its tables.
    pub schema: ArcSwap<Schema>,
    /// Held while the schema changes.
    pub schema_change: Mutex<()>,
    /// The release of Cassandra that must be able to read the directory.
    pub release: Release,
    /// The rows of the server's own keyspaces that `system_schema` lacked when it was last read; the start stores them.
    pub missing_own_rows: Mutex<Vec<SchemaRow>>,
    pub tables: ArcSwap<TableMap>,
    pub virtual_tables: VirtualTables,
    /// The objects of `system_schema` that do not decode.
    pub faults: Faults,

    // Writes.
    pub budget: Budget,
    pub backlog: Backlog,
    pub stripes: Stripes,
    /// Held while a large record of many mutations is made and written, so that there is one at a time: no budget counts its bytes.
    pub large_write: Mutex<()>,
    /// Set once recovery has replayed the log.
    pub log: OnceLock<CommitLog>,
    /// During the replay: the position behind the last record.
    pub replayed: Mutex<Position>,
    /// The offsets up to which the logs of tablets are applied; empty outside of clusters.
    pub tablets: Arc<Tablets>,
    /// The parts of the log that recovery could not read.
    pub log_losses: OnceLock<LogLosses>,
    /// The contents of the file `ilion.reached`.
    pub reached: Mutex<Option<Reached>>,
    /// The contents of the file `ilion.purged`.
    pub purged: Mutex<Purged>,

    // Reads.
    pub chunk_cache: Arc<ChunkCache>,
    /// Memory for sorted views.
    pub sorted_views: Arc<SortedBudget>,
    pub key_cache: Arc<KeyCache>,
    pub row_cache: RowCache,
    pub counter_cache: CounterCache,
    pub cache_savings: [CacheSaving; 3],
    /// How look-ups in SSTables were answered.
    pub lookups: Arc<Lookups>,
    pub sampling: Sampling,

    /// The state of snapshots.
    pub snapshots: Snapshots,
    /// Flushed SSTables are linked into `backups/`.
    pub is_backing_up: AtomicBool,

    // Background work.
    pub background: Background,
    /// Removes the files of obsolete SSTables.
    pub remover: Arc<Remover>,
    /// Frees the memory of flushed memtables.
    pub releaser: Releaser,
    /// Work that is tried again after a shortage.
    pub stall: Stall,
    /// Running compactions and builds of indexes.
    pub tasks: Tasks,
    /// Flushes and snapshots that operators wait for.
    pub awaited: Awaited,
    pub pacer: Arc<Pacer>,
    /// Options that the operator changes while the engine runs.
    pub adjusted: Adjusted,
}

impl Shared {
    pub(crate) fn new(env: Arc<dyn Env>, options: EngineOptions, id: Uuid) -> Self {
        PageBudget::of_process().set_limit(options.index_page_bytes);
        Self {
            id,
            is_ours: false,
            schema: ArcSwap::from_pointee(Schema::with_system()),
            release: Release::default(),
            missing_own_rows: Mutex::default(),
            tables: ArcSwap::from_pointee(TableMap::default()),
            budget: Budget::new(options.memtable_bytes_max),
            tasks: Tasks::default(),
            awaited: Awaited::default(),
            pacer: Arc::new(Pacer::new(
                env.clone(),
                options.compaction_bytes_per_sec.filter(|_| !options.is_stepped),
            )),
            backlog: Backlog::default(),
            adjusted: Adjusted::of(&options),
            chunk_cache: Arc::new(ChunkCache::new(options.chunk_cache_bytes)),
            sorted_views: Arc::new(SortedBudget::new(options.sorted_view_bytes)),
            key_cache: Arc::new(KeyCache::new(options.key_cache.bytes_max)),
            row_cache: RowCache::new(options.row_cache.bytes_max),
            counter_cache: CounterCache::new(options.counter_cache.bytes_max),
            cache_savings: CacheSaving::all(&options),
            lookups: Arc::default(),
            virtual_tables: VirtualTables::default(),
            stripes: Stripes::new(),
            sampling: Sampling::default(),
            large_write: Mutex::new(()),
            schema_change: Mutex::new(()),
            faults: Faults::default(),
            log_losses: OnceLock::new(),
            log: OnceLock::new(),
            tablets: Arc::default(),
            reached: Mutex::new(None),
            purged: Mutex::default(),
            replayed: Mutex::new(Position::START),
            failure: OnceLock::new(),
            snapshots: Snapshots::default(),
            is_backing_up: AtomicBool::new(options.snapshots.is_backing_up),
            stall: Stall::default(),
            background: Background::default(),
            remover: Arc::default(),
            releaser: Releaser::default(),
            counters: Counters::default(),
            env,
            options,
        }
    }

    pub(crate) fn now_secs(&self) -> u32 {
        now_secs(&*self.env)
    }

    /// Pauses the caller, at most until the engine is closed. Does nothing in an engine without threads.
    pub(crate) fn pause(&self, duration: Duration) {
        if !self.options.is_stepped {
            self.background.pause(duration);
        }
    }

    /// The rules of the engine's own reads: all data that lives now, without limits.
    pub(crate) fn own_read_law(&self) -> ReadLaw {
        ReadLaw::without_limits(self.now_secs())
    }

    /// The table's store.
    pub(crate) fn table(&self, id: TableId) -> Option<Arc<TableStore>> {
        self.tables.load().get(&id).cloned()
    }

    /// The stores of all tables, and of the hidden tables of their indexes.
    pub(crate) fn stores(&self) -> Vec<Arc<TableStore>> {
        let tables = self.tables.load();
        let mut stores = Vec::with_capacity(tables.len());
        for store in tables.values() {
            stores.push(store.clone());
            stores.extend(store.indexes().hidden().cloned());
        }
        stores
    }

    /// The store of a table or hidden table, and the store of the table that it belongs to.
    pub(crate) fn any_table(&self, id: TableId) -> Option<(Arc<TableStore>, Arc<TableStore>)> {
        if let Some(store) = self.table(id) {
            return Some((store.clone(), store));
        }
        let tables = self.tables.load();
        tables.values().find_map(|store| {
            let indexes = store.indexes();
            let hidden = indexes.hidden().find(|hidden| hidden.id == id)?;
            Some((hidden.clone(), store.clone()))
        })
    }

    /// The log. Requires: recovery has replayed it.
    pub(crate) fn log(&self) -> Result<&CommitLog> {
        self.log
            .get()
            .ok_or_else(|| Error::Refused("the commit log is still being replayed".to_owned()))
    }

    /// The position above all records so far. During a replay: above the records that were received. The caller waits until these are
    /// applied.
    pub(crate) fn barrier(&self) -> Position {
        self.log
            .get()
            .map_or_else(|| *self.replayed.lock(), CommitLog::barrier)
    }

    /// Refuses writes from now on, since data in memory can no longer be written to disk.
    pub(crate) fn stop_writes(&self, reason: &Error) {
        tracing::error!(%reason, "writes are refused from now on; remove the cause and restart");
        // Fails if there is a reason already: the first one is shown.
        let _ = self.failure.set(reason.to_string());
        self.budget.stop();
    }

    pub(crate) fn check_writable(&self) -> Result<()> {
        match self.failure.get() {
            None => Ok(()),
            Some(reason) => Err(Error::Stopped(reason.clone())),
        }
    }

    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }
}
