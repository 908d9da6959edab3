//! [`Engine`] and its public calls. Calls that belong to one part of the engine are in the module of that part.

use std::path::Path;
use std::sync::Arc;

use ilion_commitlog::{Callback, Position};
use ilion_env::{Env, FileLock};
use ilion_rows::{ClusteringFilter, Cursor, DecoratedKey, KeyRange, Mutation};
use ilion_schema::{Schema, TableId, TableSchema};
use ilion_types::Partitioner;
use uuid::Uuid;

use crate::counter_cache::CounterCache;
use crate::large::{LargeLimits, shown};
use crate::progress::{AwaitedFacts, AwaitedKind};
use crate::sampler::TopPartitions;
use crate::shared::Shared;
use crate::stripes::StripesGuard;
use crate::table_store::TableStore;
use crate::virtual_table::{self, VirtualTable};
use crate::{Error, Result};

/// The storage engine over one data directory.
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
    /// While it is held, no other process opens the directory.
    pub(crate) _lock: Box<dyn FileLock>,
}

impl Engine {
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

    /// The directory that contains the directories of keyspaces.
    pub fn data_dir(&self) -> &Path {
        &self.shared.options.data_dir
    }

    /// Access to files, clock and randomness.
    pub fn env(&self) -> &Arc<dyn Env> {
        &self.shared.env
    }

    /// One partition of all sources, merged. Tombstones and expired data are not removed.
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

    /// Like [`Self::read_partition`], for many partitions.
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
        self.shared.note_read_for_sorting(&store);
        Ok(store.read_range(table, range, filter))
    }

    fn store_of(&self, table: &TableSchema) -> Result<Arc<TableStore>> {
        let store = self.shared.table(table.id).ok_or_else(|| {
            Error::Refused(format!("table {}.{} does not exist", table.keyspace, table.name))
        })?;
        store.check_usable()?;
        Ok(store)
    }

    /// Registers a table of a virtual keyspace, which is computed whenever it is read.
    pub fn register_virtual_table(&self, id: TableId, table: Arc<dyn VirtualTable>) {
        self.shared.virtual_tables.register(id, table);
    }

    /// Whether a virtual table can be updated.
    pub fn is_settable(&self, table: TableId) -> bool {
        self.shared.virtual_tables.settable(table).is_some()
    }

    /// Updates a virtual table.
    ///
    /// # Errors
    /// The table does not accept this update. It is unchanged then.
    pub fn set_virtual(&self, mutation: &Mutation) -> Result<()> {
        let table = &mutation.table;
        let provider = self.shared.virtual_tables.settable(table.id);
        let provider = provider.ok_or_else(|| {
            Error::Refused(format!(
                "Modification is not supported by table {}.{}",
                table.keyspace, table.name
            ))
        })?;
        virtual_table::update(&*provider, mutation)
    }

    /// Limits how many files snapshots link per second, including snapshots that are being taken; `None` is no limit.
    pub fn set_snapshot_links_per_sec(&self, links: Option<u32>) {
        self.shared.adjusted.set_links_per_sec(links);
    }

    /// Changes the sizes from which on partitions, rows and cells are logged, for flushes and compactions that begin later.
    pub fn set_large_limits(&self, limits: LargeLimits) {
        self.shared.adjusted.set_large(limits);
    }

    /// Changes the size of the blocks of row indexes; for flushes and compactions that begin later. `None` is the default of the format.
    pub fn set_column_index_bytes(&self, bytes: Option<u32>) {
        self.shared.adjusted.set_column_index_bytes(bytes);
    }

    /// Locks partitions for a write that depends on a read.
    pub fn lock_partitions<'a>(
        &'a self,
        partitions: &mut dyn Iterator<Item = (TableId, &DecoratedKey)>,
    ) -> StripesGuard<'a> {
        self.shared.stripes.lock(partitions)
    }

    /// The counter cache. Requires: the caller holds the lock of a partition while it uses its entries.
    pub fn counter_cache(&self) -> &CounterCache {
        &self.shared.counter_cache
    }

    /// Calls back when the log is durable up to the position in the sense of its mode. The callback must not block.
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

    /// Syncs the log, whatever its mode: then a loss of power loses none of the writes that were applied before, and all captured
    /// records of acknowledged writes can be read.
    ///
    /// # Errors
    /// The log stopped for good.
    pub fn sync_log(&self) -> Result<()> {
        Ok(self.shared.log()?.sync()?)
    }

    /// Flushes all memtables of a table, and returns when they are on disk. For a hidden table: those of the table it belongs to.
    ///
    /// # Errors
    /// The flush failed. After a shortage (such as a full disk) it is retried automatically; after any other error writes are
    /// refused from now on.
    pub fn flush(&self, table: TableId) -> Result<()> {
        let (_, store) = self
            .shared
            .any_table(table)
            .ok_or_else(|| Error::Refused(format!("table {table} does not exist")))?;
        self.shared.flush_table(&store)
    }

    /// Like [`Self::flush`] for several tables, each once; operators see the progress ([`Self::awaited`]).
    ///
    /// # Errors
    /// Those of [`Self::flush`]. If one of the tables does not exist, none is flushed.
    pub fn flush_tables(&self, tables: &[TableId]) -> Result<()> {
        let mut stores = Vec::with_capacity(tables.len());
        for table in tables {
            let found = self.shared.any_table(*table);
            let (_, store) = found.ok_or_else(|| Error::Refused(format!("table {table} does not exist")))?;
            stores.push(store);
        }
        stores.sort_by_key(|store| store.id);
        stores.dedup_by_key(|store| store.id);
        let _shown = self.shared.awaited.begin(AwaitedKind::Flush, &stores);
        self.shared.flush_tables(&stores)
    }

    /// The flushes and snapshots that operators wait for, with their progress.
    pub fn awaited(&self) -> Vec<AwaitedFacts> {
        self.shared.awaited.facts()
    }

    /// Flushes the memtables of all tables, and returns when they are on disk.
    ///
    /// # Errors
    /// Those of [`Self::flush`].
    pub fn flush_all(&self) -> Result<()> {
        let tables = self.shared.tables.load_full();
        let mut stores: Vec<_> = tables.values().cloned().collect();
        stores.sort_by_key(|store| store.id);
        let _shown = self.shared.awaited.begin(AwaitedKind::Flush, &stores);
        self.shared.flush_tables(&stores)
    }

    /// Flushes all tables and starts a new log segment, so that the next start replays no records. Later writes are
    /// accepted as usual.
    ///
    /// # Errors
    /// A flush failed.
    pub fn drain(&self) -> Result<()> {
        self.flush_all()?;
        let log = self.shared.log()?;
        log.rotate()?;
        // Only segments that are synced can be trimmed.
        log.sync()?;
        self.shared.trim_log()
    }

    /// Why memtables cannot be flushed for now; `None` if they can. Flushes are tried again automatically, and writes are accepted as
    /// long as memtables have room.
    pub fn stalled(&self) -> Option<String> {
        self.shared.stalled()
    }

    /// Why writes are refused for good; `None` if they are accepted.
    pub fn failure(&self) -> Option<String> {
        self.shared.failure().map(str::to_owned)
    }

    /// Starts to count reads and writes of the tables' partitions.
    ///
    /// # Errors
    /// Another sampling is running.
    pub fn begin_sampling(&self, tables: Vec<TableId>) -> Result<()> {
        self.shared.sampling.begin(tables)
    }

    /// Ends the sampling; returns the `top` partitions with the highest counts of each kind.
    pub fn finish_sampling(&self, top: usize) -> TopPartitions {
        // A table may have been dropped while it was sampled.
        self.shared.sampling.finish(top, |table, key| {
            let store = self.shared.table(table)?;
            Some(shown(&store.schema(), key))
        })
    }

    /// The tables' stores.
    pub fn tables(&self) -> Vec<Arc<TableStore>> {
        self.shared.tables.load().values().cloned().collect()
    }

    /// The tables' stores, and those of the hidden tables of their indexes.
    pub fn all_tables(&self) -> Vec<Arc<TableStore>> {
        self.shared.stores()
    }

    /// Returns when saved caches are loaded, or when loading them has ended early. For tests and benchmarks.
    pub fn wait_caches_loaded(&self) {
        self.shared.background.wait_caches_loaded();
    }

    /// Returns when no flush, compaction or other background work is due. For tests and benchmarks.
    pub fn wait_idle(&self) {
        match self.shared.options.is_stepped {
            true => while self.step() {},
            false => self.shared.background.wait_idle(),
        }
    }
}
