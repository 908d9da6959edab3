//! [`TableStore`]: one table with its memtables, SSTables, indexes and directory (Cassandra: `ColumnFamilyStore`).
//!
//! The hidden table of an index is also a [`TableStore`], which belongs to the store of its table.

mod memtables;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use ilion_commitlog::Position;
use ilion_env::Env;
use ilion_index::{SecondaryIndex, Storage};
use ilion_memtable::{Memtable, Observed};
use ilion_rows::Mutation;
use ilion_schema::{TableId, TableSchema};
use ilion_sstable::{Descriptor, SSTableId, Version};
use parking_lot::{MappedRwLockReadGuard, Mutex, RwLock, RwLockReadGuard};

use crate::backlog::Debt;
use crate::choosing::Choosing;
use crate::live_sstable::LiveSSTable;
use crate::maintenance::Maintenance;
use crate::memtable_indexes::{EntryTable, MemtableIndexes};
use crate::sorted::SortedState;
use crate::tablet_ends::{FirstOfTablets, Tablets};
use crate::view::View;
use crate::{Error, Result};

/// The memtable that receives writes.
pub(crate) struct Active {
    pub memtable: Arc<Memtable>,
    /// The memtable has every record of the table from this position on.
    pub since: Position,
    /// The first records of tablets that the memtable has.
    pub tablets: Arc<FirstOfTablets>,
    /// When the memtable was made, by the monotonic clock.
    pub made_nanos: u64,
    /// Its indexes; `None` if the table has none.
    pub indexes: Option<Arc<MemtableIndexes>>,
}

impl Active {
    /// Bytes of memory that a flush of it frees.
    pub(crate) fn size_bytes(&self) -> usize {
        let of_indexes = self.indexes.as_ref().map_or(0, |indexes| indexes.size_bytes());
        self.memtable.size_bytes() + of_indexes
    }

    fn is_empty(&self) -> bool {
        let are_empty = |indexes: &Arc<MemtableIndexes>| indexes.is_empty();
        self.memtable.is_empty() && self.indexes.as_ref().is_none_or(are_empty)
    }
}

/// An index of a table.
pub(crate) struct LiveIndex {
    pub index: Arc<dyn SecondaryIndex>,
    /// Its hidden table, if it has one.
    pub hidden: Option<Arc<TableStore>>,
    /// Kept when an ALTER of the table reopens the index.
    pub state: Arc<IndexState>,
}

/// The state of an index.
#[derive(Default)]
pub(crate) struct IndexState {
    /// The index covers all data of its table.
    pub is_built: AtomicBool,
    /// A build is requested or running.
    pub is_build_asked: AtomicBool,
    /// The schema no longer has the index.
    pub is_dropped: AtomicBool,
    /// Held while the index is built or emptied.
    pub building: Mutex<()>,
}

impl LiveIndex {
    pub(crate) fn name(&self) -> &str {
        &self.index.definition().schema.name
    }

    pub(crate) fn is_built(&self) -> bool {
        self.state.is_built.load(Ordering::Acquire)
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.state.is_dropped.load(Ordering::Acquire)
    }
}

/// The indexes of a table.
#[derive(Default)]
pub(crate) struct TableIndexes(pub Vec<Arc<LiveIndex>>);

impl TableIndexes {
    pub(crate) fn named(&self, name: &str) -> Option<&Arc<LiveIndex>> {
        self.0.iter().find(|live| live.name() == name)
    }

    /// The hidden tables of the indexes.
    pub(crate) fn hidden(&self) -> impl Iterator<Item = &Arc<TableStore>> {
        self.0.iter().filter_map(|live| live.hidden.as_ref())
    }

    /// The columns of a row before a change that the indexes need.
    pub(crate) fn observed(&self) -> Observed {
        Observed::of(self.0.iter().map(|live| live.index.watches()))
    }

    /// The indexes of a new memtable; `None` if there are none.
    pub(crate) fn begin_memtable(&self) -> Option<Arc<MemtableIndexes>> {
        if self.0.is_empty() {
            return None;
        }
        let mut indexes = MemtableIndexes::observing(self.observed());
        for live in &self.0 {
            let index = live.index.clone();
            match (&live.hidden, live.index.storage()) {
                (_, Storage::Attached(attached)) => {
                    let memtable = attached.begin_memtable();
                    indexes.attach(index, memtable);
                }
                (Some(hidden), Storage::HiddenTable(_)) => indexes.add_hidden(index, hidden.clone()),
                (None, Storage::HiddenTable(_)) => {}
            }
        }
        Some(Arc::new(indexes))
    }
}

/// One table.
pub struct TableStore {
    pub(crate) id: TableId,
    pub(crate) directory: PathBuf,
    schema: ArcSwap<TableSchema>,
    /// The locks for changes of its files.
    pub(crate) maintenance: Maintenance,
    /// Held shared from the append of a record until it is applied, exclusively to freeze the memtable.
    pub(crate) active: RwLock<Active>,
    /// Held only to swap the view.
    swap: Mutex<()>,
    view: ArcSwap<View>,
    /// Changed while `active` is held exclusively.
    indexes: ArcSwap<TableIndexes>,
    has_indexes: AtomicBool,
    has_refusing_indexes: AtomicBool,
    /// For a hidden table: the newest timestamp of its entries.
    newest_entry_micros: AtomicI64,
    /// SSTables in running compactions, by the path of Data.db.
    pub(crate) compacting: Mutex<HashSet<PathBuf>>,
    /// Held while a compaction is chosen and its inputs are registered.
    pub(crate) choosing: Mutex<Choosing>,
    /// Thresholds of its compactions that an operator has set until the next start.
    pub(crate) thresholds: Mutex<Option<(u32, u32)>>,
    /// Held while compactions run on request.
    pub(crate) manual: Mutex<()>,
    /// Decides when its next sorted view is made.
    pub(crate) sorted: SortedState,
    /// How far compactions are behind.
    pub(crate) debt: Debt,
    /// Compactions start in the background.
    is_auto_compacting: AtomicBool,
    /// Average bytes of a flush.
    flush_bytes: AtomicU64,
    last_generation: AtomicU32,
    /// Writes go to the commit log (`durable_writes`).
    pub(crate) is_logged: AtomicBool,
    /// Its logged writes are kept for consumers of changes (`cdc`).
    pub(crate) is_captured: AtomicBool,
    /// A flush is requested and has not frozen the memtable yet.
    pub(crate) is_flush_asked: AtomicBool,
    /// The table was dropped: no file is written to its directory.
    pub(crate) is_dropped: AtomicBool,
    /// For a hidden table: not all of its files could be opened.
    pub(crate) is_damaged: AtomicBool,
    /// Why the table is set aside; unset if it is not.
    set_aside: OnceLock<String>,
    /// Number of begun and ended imports; odd while one is running.
    imports: AtomicU64,
    /// Other contents of its directory at the start.
    pub(crate) left: Mutex<Left>,
    /// Offsets up to which the logs of tablets are applied to all tables.
    tablets: Arc<Tablets>,
    /// Offsets up to which the SSTables had the records of tablets when the first record came after a start, a copy or a clearing. `None`
    /// before that record.
    pub(crate) tablet_ends: RwLock<Option<BTreeMap<u32, u64>>>,
    shards: usize,
}

/// What a start found in a table's directory beside SSTables, and handles after the replay.
#[derive(Default)]
pub(crate) struct Left {
    /// The directory has transaction logs to finish.
    pub has_transactions: bool,
    /// Subdirectories; those of indexes have hidden names.
    pub directories: Vec<String>,
}

impl TableStore {
    /// A table without data.
    pub(crate) fn new(
        env: &dyn Env,
        data_dir: &Path,
        schema: Arc<TableSchema>,
        shards: usize,
        since: Position,
        tablets: Arc<Tablets>,
    ) -> Self {
        let directory = directory_of(data_dir, &schema);
        Self::in_directory(env, directory, schema, shards, since, tablets)
    }

    /// A table without data in a given directory.
    pub(crate) fn in_directory(
        env: &dyn Env,
        directory: PathBuf,
        schema: Arc<TableSchema>,
        shards: usize,
        since: Position,
        tablets: Arc<Tablets>,
    ) -> Self {
        let memtable = Arc::new(Memtable::new(schema.clone(), shards));
        let view = View {
            memtables: vec![memtable.clone()],
            ..View::default()
        };
        Self {
            id: schema.id,
            directory,
            maintenance: Maintenance::default(),
            active: RwLock::new(Active {
                memtable,
                since,
                tablets: Arc::default(),
                made_nanos: env.monotonic_nanos(),
                indexes: None,
            }),
            indexes: ArcSwap::default(),
            has_indexes: AtomicBool::new(false),
            has_refusing_indexes: AtomicBool::new(false),
            newest_entry_micros: AtomicI64::new(0),
            swap: Mutex::new(()),
            view: ArcSwap::from_pointee(view),
            compacting: Mutex::default(),
            choosing: Mutex::default(),
            thresholds: Mutex::default(),
            manual: Mutex::new(()),
            sorted: SortedState::default(),
            debt: Debt::default(),
            is_auto_compacting: AtomicBool::new(true),
            flush_bytes: AtomicU64::new(0),
            last_generation: AtomicU32::new(0),
            is_logged: AtomicBool::new(true),
            is_captured: AtomicBool::new(false),
            is_flush_asked: AtomicBool::new(false),
            is_dropped: AtomicBool::new(false),
            is_damaged: AtomicBool::new(false),
            set_aside: OnceLock::new(),
            imports: AtomicU64::new(0),
            left: Mutex::default(),
            tablets,
            tablet_ends: RwLock::new(None),
            schema: ArcSwap::new(schema),
            shards,
        }
    }

    /// The current schema of the table.
    pub fn schema(&self) -> Arc<TableSchema> {
        self.schema.load_full()
    }

    /// Whether compactions start in the background.
    pub(crate) fn is_auto_compacting(&self) -> bool {
        self.is_auto_compacting.load(Ordering::Relaxed)
    }

    pub(crate) fn set_auto_compacting(&self, is_on: bool) {
        self.is_auto_compacting.store(is_on, Ordering::Relaxed);
    }

    /// Average bytes of a flush; 0 if there was none.
    pub(crate) fn flush_bytes(&self) -> u64 {
        self.flush_bytes.load(Ordering::Relaxed)
    }

    /// Counts a flush of this many bytes. Requires: the table's files are held (`maintenance`).
    pub(crate) fn note_flush(&self, bytes: u64) {
        let average = match self.flush_bytes() {
            0 => bytes,
            before => (before * 3 + bytes) / 4,
        };
        self.flush_bytes.store(average, Ordering::Relaxed);
    }

    /// Why the table is set aside; `None` if it is not.
    pub(crate) fn set_aside_reason(&self) -> Option<&str> {
        self.set_aside.get().map(String::as_str)
    }

    /// Sets the table aside: reads and writes are refused from now on; its log records are still applied.
    pub(crate) fn set_aside(&self, reason: String) {
        // Fails if there is a reason already: the first one is kept.
        let _ = self.set_aside.set(reason);
    }

    /// Refuses a table that was set aside.
    #[inline]
    pub(crate) fn check_usable(&self) -> Result<()> {
        match self.set_aside.get() {
            None => Ok(()),
            Some(reason) => Err(self.unusable(reason)),
        }
    }

    #[cold]
    fn unusable(&self, reason: &str) -> Error {
        let table = self.schema();
        Error::SetAside {
            table: format!("{}.{}", table.keyspace, table.name),
            reason: reason.to_owned(),
        }
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn view(&self) -> arc_swap::Guard<Arc<View>> {
        self.view.load()
    }

    /// Replaces the view by what `change` returns.
    pub(crate) fn change_view(&self, change: impl FnOnce(&View) -> View) {
        let _guard = self.swap.lock();
        let next = change(&self.view.load());
        self.view.store(Arc::new(next));
    }

    /// The newest timestamp of its data; `None` if it is empty.
    pub(crate) fn newest_micros(&self) -> Option<i64> {
        let view = self.view();
        let memtables = view
            .memtables
            .iter()
            .map(|memtable| memtable.statistics().max_timestamp_micros);
        let sstables = view.sstables.iter().map(|live| live.sstable.stats());
        let has_seen = |(oldest, newest): &(i64, i64)| *oldest != i64::MIN || *newest != i64::MAX;
        let sstables = sstables
            .map(|stats| (stats.min_timestamp_micros, stats.max_timestamp_micros))
            .filter(has_seen);
        let all = memtables.chain(sstables.map(|(_, newest)| newest));
        all.filter(|newest| *newest != i64::MIN).max()
    }

    /// Adds SSTables from its directory or from an import.
    pub(crate) fn add_sstables(&self, found: Vec<Arc<LiveSSTable>>) {
        let newest = found
            .iter()
            .map(|live| live.sstable.stats().max_timestamp_micros)
            .max();
        self.newest_entry_micros
            .fetch_max(newest.unwrap_or(0), Ordering::Relaxed);
        self.change_view(|view| {
            let all = view.sstables.iter().cloned().chain(found).collect();
            view.with_sstables(all)
        });
    }

    /// Begins an import. Until the result is dropped, indexes may have entries whose rows are not in the table yet. Requires: the
    /// table's files are held alone (`maintenance`).
    pub(crate) fn begin_import(&self) -> Importing<'_> {
        let _active = self.active.write();
        self.imports.fetch_add(1, Ordering::Relaxed);
        Importing(self)
    }

    /// A mark of imports so far, for [`Self::are_settled`].
    pub(crate) fn import_mark(&self) -> u64 {
        self.imports.load(Ordering::Relaxed)
    }

    /// True if no import was running since the mark was taken. Then an entry without a row is stale. Requires: `active` is held.
    pub(crate) fn are_settled(&self, since: u64) -> bool {
        since.is_multiple_of(2) && since == self.import_mark()
    }

    /// Makes sure that no new SSTable gets this generation.
    pub(crate) fn reserve_generation(&self, id: SSTableId) {
        if let SSTableId::Sequence(generation) = id {
            self.last_generation.fetch_max(generation, Ordering::Relaxed);
        }
    }

    /// The name of the next SSTable. Names of files that an operator has placed in the directory are skipped.
    pub(crate) fn next_descriptor(&self, env: &dyn Env, version: Version) -> Descriptor {
        loop {
            let generation = self.last_generation.fetch_add(1, Ordering::Relaxed) + 1;
            let id = SSTableId::Sequence(generation);
            let descriptor = Descriptor::new(self.directory.as_path(), version, id, version.format());
            if descriptor.files(env).unwrap_or_default().is_empty() {
                return descriptor;
            }
        }
    }

    /// Whether the table has indexes. Cheap.
    #[inline]
    pub(crate) fn has_indexes(&self) -> bool {
        self.has_indexes.load(Ordering::Relaxed)
    }

    /// True if the table has no data.
    pub(crate) fn is_empty(&self) -> bool {
        self.view().sstables.is_empty() && self.are_memtables_empty()
    }

    /// True if all data of the table is on disk.
    pub(crate) fn are_memtables_empty(&self) -> bool {
        self.view().memtables.iter().all(|memtable| memtable.is_empty())
    }

    /// Its indexes.
    pub(crate) fn indexes(&self) -> Arc<TableIndexes> {
        self.indexes.load_full()
    }

    /// Refuses a mutation with a value that an index cannot store.
    #[inline]
    pub(crate) fn check_indexable(&self, mutation: &Mutation) -> Result<()> {
        match self.has_refusing_indexes.load(Ordering::Relaxed) {
            true => self.check_with_indexes(mutation),
            false => Ok(()),
        }
    }

    #[cold]
    fn check_with_indexes(&self, mutation: &Mutation) -> Result<()> {
        let indexes = self.indexes_now();
        Ok(indexes.0.iter().try_for_each(|live| live.index.check(mutation))?)
    }

    /// Its indexes, without incrementing a reference count. Hold the guard only briefly.
    pub(crate) fn indexes_now(&self) -> arc_swap::Guard<Arc<TableIndexes>> {
        self.indexes.load()
    }
}

impl EntryTable for TableStore {
    fn memtable(&self) -> MappedRwLockReadGuard<'_, Arc<Memtable>> {
        RwLockReadGuard::map(self.active.read(), |active| &active.memtable)
    }

    fn memtable_again(&self) -> MappedRwLockReadGuard<'_, Arc<Memtable>> {
        RwLockReadGuard::map(self.active.read_recursive(), |active| &active.memtable)
    }

    fn entry_micros(&self, env: &dyn Env) -> i64 {
        let now_micros = env.now_micros();
        let later = |newest: i64| Some(newest.saturating_add(1).max(now_micros));
        let (Ok(newest) | Err(newest)) =
            self.newest_entry_micros
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
        newest.saturating_add(1).max(now_micros)
    }

    fn freeze_beside(&self, env: &dyn Env, upto: Position) {
        let mut active = self.active.write();
        if !active.memtable.is_empty() {
            self.freeze_locked(env, &mut active, upto);
        }
    }
}

impl std::fmt::Debug for TableStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let schema = self.schema();
        write!(f, "TableStore({}.{})", schema.keyspace, schema.name)
    }
}

/// `<keyspace>/<table>-<id without dashes>`, as in Cassandra.
pub(crate) fn directory_of(data_dir: &Path, schema: &TableSchema) -> PathBuf {
    data_dir
        .join(&schema.keyspace)
        .join(format!("{}-{}", schema.name, schema.id.0.simple()))
}

/// An import, see [`TableStore::begin_import`].
pub(crate) struct Importing<'a>(&'a TableStore);

impl Drop for Importing<'_> {
    fn drop(&mut self) {
        let _active = self.0.active.write();
        self.0.imports.fetch_add(1, Ordering::Relaxed);
    }
}
