//! [`Engine`]: the public calls, and what its threads share.

use std::sync::Arc;
use std::sync::OnceLock;

use arc_swap::ArcSwap;
use hashbrown::HashMap;
use ilion_commitlog::{Callback, CommitLog, Position};
use ilion_env::{Env, FileLock, PageBudget};
use ilion_rows::{ClusteringFilter, Cursor, DecoratedKey, KeyRange, ReadLaw, TombstoneLimits};
use ilion_schema::{Release, Schema, TableId, TableSchema};
use ilion_sstable::{ChunkCache, KeyCache, Lookups, SortedBudget};
use ilion_types::Partitioner;
use parking_lot::Mutex;
use uuid::Uuid;

use crate::background::{Background, Work};
use crate::budget::Budget;
use crate::compact::{Backlog, Pacer, Tasks};
use crate::counter_cache::CounterCache;
use crate::log_losses::LogLosses;
use crate::reached::Reached;
use crate::row_cache::RowCache;
use crate::sampler::Sampling;
use crate::saved_caches::SavedCache;
use crate::set_aside::SetAside;
use crate::stall::Stall;
use crate::stripes::{Stripes, StripesGuard};
use crate::table_store::TableStore;
use crate::virtual_table::{VirtualTable, VirtualTables};
use crate::{EngineOptions, Error, Result};

pub(crate) type TableMap = HashMap<TableId, Arc<TableStore>, foldhash::fast::FixedState>;

/// What every part of the engine reaches; all that recovery needs, too.
pub(crate) struct Shared {
    /// Ties SSTables, log and data directory to each other.
    pub id: Uuid,
    /// The directory had this id before this start: no other program waits for it.
    pub is_ours: bool,
    pub env: Arc<dyn Env>,
    pub options: EngineOptions,
    pub schema: ArcSwap<Schema>,
    /// Which Cassandra must be able to read what is written.
    pub release: Release,
    pub tables: ArcSwap<TableMap>,
    pub budget: Budget,
    /// Compactions that go on.
    pub tasks: Tasks,
    pub pacer: Arc<Pacer>,
    pub backlog: Backlog,
    pub chunk_cache: Arc<ChunkCache>,
    /// Memory for sorted views.
    pub sorted_views: Arc<SortedBudget>,
    pub key_cache: Arc<KeyCache>,
    pub row_cache: RowCache,
    pub counter_cache: CounterCache,
    pub saved_caches: [SavedCache; 3],
    /// How look-ups in SSTables were answered.
    pub lookups: Arc<Lookups>,
    pub virtual_tables: VirtualTables,
    pub stripes: Stripes,
    pub sampling: Sampling,
    /// Held while a record of many mutations is made and written: its bytes are in no budget, so there is one of them at a time.
    pub large_write: Mutex<()>,
    /// Held while the schema changes.
    pub schema_change: Mutex<()>,
    /// What of `system_schema` does not decode.
    pub faults: Mutex<Vec<SetAside>>,
    /// The newest timestamp and the stretch of the log, as the file has them.
    pub reached: Mutex<Option<Reached>>,
    /// What recovery could not read of the log.
    pub log_losses: OnceLock<LogLosses>,
    /// Set once recovery has replayed it.
    pub log: OnceLock<CommitLog>,
    /// Until then: behind the last record that was taken.
    pub replayed: Mutex<Position>,
    /// Why writes are refused for good.
    failure: OnceLock<String>,
    /// What is to be tried again.
    pub stall: Stall,
    pub background: Background,
    pub counters: crate::facts::Counters,
}

/// The storage engine over one data directory.
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
    /// Nobody else opens the directory while it is held.
    _lock: Box<dyn FileLock>,
}

impl Shared {
    pub(crate) fn new(env: Arc<dyn Env>, options: EngineOptions, id: Uuid) -> Self {
        PageBudget::of_process().set_limit(options.index_page_bytes);
        Self {
            id,
            is_ours: false,
            schema: ArcSwap::from_pointee(Schema::with_system()),
            release: Release::default(),
            tables: ArcSwap::from_pointee(TableMap::default()),
            budget: Budget::new(options.memtable_bytes_max),
            tasks: Tasks::default(),
            pacer: Arc::new(Pacer::new(env.clone(), options.compaction_bytes_per_sec)),
            backlog: Backlog::default(),
            chunk_cache: Arc::new(ChunkCache::new(options.chunk_cache_bytes)),
            sorted_views: Arc::new(SortedBudget::new(options.sorted_view_bytes)),
            key_cache: Arc::new(KeyCache::new(options.key_cache.bytes_max)),
            row_cache: RowCache::new(options.row_cache.bytes_max),
            counter_cache: CounterCache::new(options.counter_cache.bytes_max),
            saved_caches: SavedCache::all(&options),
            lookups: Arc::default(),
            virtual_tables: VirtualTables::default(),
            stripes: Stripes::new(),
            sampling: Sampling::default(),
            large_write: Mutex::new(()),
            schema_change: Mutex::new(()),
            faults: Mutex::default(),
            log_losses: OnceLock::new(),
            log: OnceLock::new(),
            reached: Mutex::new(None),
            replayed: Mutex::new(Position::START),
            failure: OnceLock::new(),
            stall: Stall::default(),
            background: Background::default(),
            counters: crate::facts::Counters::default(),
            env,
            options,
        }
    }

    /// What lives now, for reads of our own: nobody limits them.
    pub(crate) fn own_read_law(&self) -> ReadLaw {
        ReadLaw {
            now_secs: self.now_secs(),
            gc_before_secs: 0,
            limits: TombstoneLimits::NONE,
            spend: ReadLaw::patient,
        }
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

    /// The store of a table, or of a hidden one, and the table's.
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

    /// The position above all records so far. In a replay, of those that were taken: whoever asks waits until they are applied.
    pub(crate) fn barrier(&self) -> Position {
        self.log
            .get()
            .map_or_else(|| *self.replayed.lock(), CommitLog::barrier)
    }

    /// Refuses writes from now on: data in memory can no longer be brought to disk.
    pub(crate) fn stop_writes(&self, reason: &Error) {
        tracing::error!(%reason, "writes are refused from now on; mend the cause and restart");
        // The first failure is the one that is told.
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

impl Engine {
    /// Opens a data directory, created if absent, and replays the commit log.
    ///
    /// # Errors
    /// The directory is in use or somebody else's, a file is damaged, or the operating system refused. Nothing that was
    /// acknowledged is lost or changed then.
    pub fn open(env: Arc<dyn Env>, options: EngineOptions) -> Result<Self> {
        let (shared, lock) = crate::recovery::open(env, options)?;
        let shared = Arc::new(shared);
        let engine = Self { shared, _lock: lock };
        engine.store_own_keyspaces()?;
        Background::start(&engine.shared)?;
        engine.shared.ask_for_token_maps();
        engine.shared.resume_builds()?;
        Ok(engine)
    }

    /// The schema as it is now.
    pub fn schema(&self) -> Arc<Schema> {
        self.shared.schema.load_full()
    }

    /// The id of this node, the same over restarts.
    pub fn id(&self) -> Uuid {
        self.shared.id
    }

    /// How keys become tokens.
    pub fn partitioner(&self) -> Partitioner {
        self.shared.options.partitioner
    }

    /// The door to files, clock and randomness.
    pub fn env(&self) -> &Arc<dyn Env> {
        &self.shared.env
    }

    /// One partition: merged, with tombstones and expired data still there.
    ///
    /// # Errors
    /// A source cannot be read, or the table is gone.
    pub fn read_partition(
        &self,
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        filter: &ClusteringFilter,
    ) -> Result<Box<dyn Cursor>> {
        if let Some(rows) = self.shared.virtual_tables.open(table) {
            return Ok(rows?.cursor(&KeyRange::exactly(key), filter));
        }
        self.shared.sampling.read(table, &key.key);
        let store = self.store_of(table)?;
        Ok(self.shared.read_partition(&store, table, key, filter)?)
    }

    /// Many partitions, as [`Self::read_partition`].
    ///
    /// # Errors
    /// The table is gone, or a virtual table cannot be computed.
    pub fn read_range(
        &self,
        table: &Arc<TableSchema>,
        range: &KeyRange,
        filter: &ClusteringFilter,
    ) -> Result<Box<dyn Cursor>> {
        if let Some(rows) = self.shared.virtual_tables.open(table) {
            return Ok(rows?.cursor(range, filter));
        }
        let store = self.store_of(table)?;
        if store.wants_sorted_view() {
            self.shared.ask_for_sorted_view(&store);
        }
        Ok(store.read_range(table, range, filter))
    }

    fn store_of(&self, table: &TableSchema) -> Result<Arc<TableStore>> {
        let store = self.shared.table(table.id).ok_or_else(|| {
            Error::Refused(format!("table {}.{} does not exist", table.keyspace, table.name))
        })?;
        store.check_usable()?;
        Ok(store)
    }

    /// Computes a table of a virtual keyspace whenever it is read.
    pub fn register_virtual_table(&self, id: TableId, table: Arc<dyn VirtualTable>) {
        self.shared.virtual_tables.register(id, table);
    }

    /// Holds partitions for somebody who reads and then writes by what was read.
    pub fn lock_partitions<'a>(
        &'a self,
        partitions: &mut dyn Iterator<Item = (TableId, &DecoratedKey)>,
    ) -> StripesGuard<'a> {
        self.shared.stripes.lock(partitions)
    }

    /// What this node has counted lately. To be used while the partition is locked.
    pub fn counter_cache(&self) -> &CounterCache {
        &self.shared.counter_cache
    }

    /// Calls back when the log is durable up to the position in the sense of its mode. Must not block.
    pub fn on_durable(&self, position: Position, callback: Callback) {
        match self.shared.log() {
            Ok(log) => log.on_durable(position, callback),
            // An engine that is open has replayed its log.
            Err(_) => callback(Err(ilion_commitlog::Error::Closed)),
        }
    }

    /// Returns when the log is durable up to the position in the sense of its mode.
    ///
    /// # Errors
    /// The log stopped for good.
    pub fn wait_durable(&self, position: Position) -> Result<()> {
        Ok(self.shared.log()?.wait_durable(position)?)
    }

    /// Writes all memtables of a table, or of that of a hidden one, to disk, and returns when they are there.
    ///
    /// # Errors
    /// The flush failed. Where something was used up (a full disk) it is tried again by itself; else writes are refused from
    /// now on.
    pub fn flush(&self, table: TableId) -> Result<()> {
        let (_, store) = self
            .shared
            .any_table(table)
            .ok_or_else(|| Error::Refused(format!("table {table} does not exist")))?;
        self.shared.flush_table(&store)
    }

    /// Writes all memtables to disk, and returns when they are there.
    ///
    /// # Errors
    /// As [`Self::flush`].
    pub fn flush_all(&self) -> Result<()> {
        let tables = self.shared.tables.load_full();
        let mut stores: Vec<_> = tables.values().cloned().collect();
        stores.sort_by_key(|store| store.id);
        self.shared.flush_tables(&stores)
    }

    /// Brings everything to disk and starts a new log segment, so that the next start replays nothing. Writes that
    /// follow are taken all the same.
    ///
    /// # Errors
    /// A flush failed.
    pub fn drain(&self) -> Result<()> {
        self.flush_all()?;
        let log = self.shared.log()?;
        log.rotate()?;
        // What is not synced yet is not let go.
        log.sync()?;
        self.shared.trim_log()
    }

    /// Why memtables cannot be flushed for now, if they cannot: it is tried again by itself, and writes are taken as long as
    /// memtables have room.
    pub fn stalled(&self) -> Option<String> {
        self.shared.stalled()
    }

    /// Why writes are refused for good, if they are.
    pub fn failure(&self) -> Option<String> {
        self.shared.failure().map(str::to_owned)
    }

    /// The tables' stores.
    pub fn tables(&self) -> Vec<Arc<TableStore>> {
        self.shared.tables.load().values().cloned().collect()
    }

    /// The tables' stores, and those of the hidden tables of their indexes.
    pub fn all_tables(&self) -> Vec<Arc<TableStore>> {
        self.shared.stores()
    }

    /// Returns when saved caches are loaded, as far as they will be. For tests and benchmarks.
    pub fn wait_caches_loaded(&self) {
        self.shared.background.wait_caches_loaded();
    }

    /// Returns when the background has nothing to do: no flush and no compaction is due. For tests and benchmarks.
    pub fn wait_idle(&self) {
        self.shared.background.wait_idle();
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shared.pacer.stop();
        self.shared.background.send(Work::Stop);
        self.shared.background.join();
        self.shared.save_reached_at_end();
    }
}
