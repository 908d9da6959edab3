//! Building an index over existing data.
//!
//! An index receives every write after its creation, at which the memtable is frozen. Older data is flushed, and then read
//! once, in the order of the table, into memtables of the build, which become SSTables of the hidden table. After each of these the
//! last complete partition is saved, so that a build continues after a restart. It does no harm if an entry is written twice.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use ilion_compaction::Watched;
use ilion_index::{HiddenTable, RowChange, Storage};
use ilion_memtable::Memtable;
use ilion_rows::{
    ClusteringFilter, Cursor, DecoratedKey, Direction, KeyBound, KeyRange, MergeCursor, ReadError, Row,
    Unfiltered,
};
use ilion_sstable::{Scan, list_directory};

use super::IndexBuildFacts;
use super::built::IndexName;
use crate::flush_pace::{FlushPace, Haste};
use crate::live_sstable::LiveSSTable;
use crate::memtable_indexes::Writing;
use crate::pace::Pace;
use crate::shared::Shared;
use crate::source::scan;
use crate::table_store::{LiveIndex, TableStore};
use crate::tasks::{Job, Registered};
use crate::view::Frozen;
use crate::work::Work;
use crate::{Error, Result};

/// When collected entries take this much memory, a build writes them as an SSTable.
const GATHERED_BYTES_MAX: usize = 32 << 20;
/// The file with the key of the last complete partition of a build.
const PROGRESS_FILE: &str = "build-progress";
const PROGRESS_BYTES_MAX: u64 = 1 << 17;
/// The kind of a build in the list of compactions. Compat: `OperationType.INDEX_BUILD`.
const KIND: &str = "Secondary index build";

/// How a build ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BuildEnd {
    Built,
    /// The index was dropped, or the engine is closing.
    Stopped,
}

impl Shared {
    /// At the start: marks the indexes that are built, and requests builds of the others.
    pub(crate) fn resume_builds(&self) -> Result<()> {
        self.remove_index_leftovers()?;
        let built = self.built_indexes()?;
        let schema = self.schema.load_full();
        let is_gone = |(keyspace, name): &&IndexName| {
            let keyspace = schema.keyspace(keyspace);
            keyspace.is_none_or(|keyspace| !keyspace.indexes.contains_key(name))
        };
        built
            .iter()
            .filter(is_gone)
            .try_for_each(|name| self.set_built(name, false))?;
        for keyspace in schema.keyspaces.values() {
            for index in keyspace.indexes.values() {
                let table = keyspace.tables.get(&index.table);
                let store = table.and_then(|table| self.table(table.id));
                let live = store
                    .as_ref()
                    .and_then(|store| store.indexes().named(&index.name).cloned());
                let name = (keyspace.name.clone(), index.name.clone());
                // The table is set aside: its indexes stay as they are until it can be opened again.
                if store
                    .as_ref()
                    .is_some_and(|store| store.set_aside_reason().is_some())
                {
                    continue;
                }
                match (store, live) {
                    (Some(store), Some(live)) if built.contains(&name) && self.is_complete(&store, &live) => {
                        live.state.is_built.store(true, Ordering::Release);
                    }
                    (Some(store), Some(live)) => {
                        if built.contains(&name) {
                            self.set_built(&name, false)?;
                        }
                        self.ask_to_build(&store, &live);
                    }
                    // The class of the index is unknown, so the index misses the writes from now on.
                    _ if built.contains(&name) => self.set_built(&name, false)?,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// True if no file of a built index is missing or damaged.
    fn is_complete(&self, store: &TableStore, live: &LiveIndex) -> bool {
        match &live.hidden {
            Some(hidden) => !hidden.is_damaged.load(Ordering::Acquire),
            None => self.is_attached_everywhere(store, live),
        }
    }

    /// Requests builds of the indexes that a change of the schema has created.
    pub(crate) fn build_new(&self) -> Result<()> {
        let tables = self.tables.load_full();
        for store in tables.values().filter(|store| store.set_aside_reason().is_none()) {
            for live in &store.indexes().0 {
                let is_asked = live.state.is_build_asked.load(Ordering::Acquire);
                if live.is_built() || is_asked {
                    continue;
                }
                match store.is_empty() {
                    true => match self.finish_build(live) {
                        // The background retries the build until it succeeds.
                        Err(error) if error.is_shortage() => self.ask_to_build(store, live),
                        finished => finished?,
                    },
                    false => self.ask_to_build(store, live),
                }
            }
        }
        Ok(())
    }

    fn ask_to_build(&self, store: &Arc<TableStore>, live: &Arc<LiveIndex>) {
        if !live.state.is_build_asked.swap(true, Ordering::AcqRel) {
            self.background
                .send(Work::BuildIndex(store.clone(), live.name().to_owned()));
        }
    }

    /// Builds an index in the background. A failure is logged, and the index stays unbuilt.
    pub(crate) fn build_asked(&self, store: &Arc<TableStore>, index: &str) {
        let Some(live) = store.indexes().named(index).cloned() else {
            return;
        };
        match self.build_index(store, &live) {
            Ok(BuildEnd::Built) => tracing::info!(?store, index, "the index is built"),
            Ok(BuildEnd::Stopped) => tracing::info!(?store, index, "the build of the index was stopped"),
            // The files of the index were removed during the build.
            Err(error) if live.is_dropped() => {
                tracing::info!(?store, index, %error, "the build of the index ended, since it was dropped");
            }
            Err(error) if self.build_failed(store, index, &error) => {
                tracing::warn!(?store, index, %error, "the index cannot be built for now; this is tried again automatically");
            }
            Err(error) => tracing::error!(?store, index, %error, "the index cannot be built; rebuild it"),
        }
        live.state.is_build_asked.store(false, Ordering::Release);
    }

    fn build_index(&self, store: &Arc<TableStore>, live: &Arc<LiveIndex>) -> Result<BuildEnd> {
        let _building = live.state.building.lock();
        if live.is_dropped() || live.is_built() {
            return Ok(BuildEnd::Stopped);
        }
        if let Some(hidden) = live
            .hidden
            .as_ref()
            .filter(|hidden| hidden.is_damaged.load(Ordering::Acquire))
        {
            self.empty_hidden(store, hidden)?;
            self.forget_progress(hidden)?;
            hidden.is_damaged.store(false, Ordering::Release);
        }
        self.flush_table(store)?;
        let end = match (live.index.storage(), &live.hidden) {
            (Storage::HiddenTable(index), Some(hidden)) => self.build_hidden(store, live, index, hidden)?,
            _ if self.build_attached(store, live)? => BuildEnd::Built,
            _ => BuildEnd::Stopped,
        };
        if end == BuildEnd::Built {
            // Locked so that no change of the schema drops the index meanwhile, which would leave it listed as built.
            let _change = self.schema_change.lock();
            if live.is_dropped() {
                return Ok(BuildEnd::Stopped);
            }
            self.finish_build(live)?;
        }
        Ok(end)
    }

    /// Marks an index as built, and then lists it: a client that finds it listed can use it. After a crash in between, the next start
    /// builds it again.
    ///
    /// Requires: `schema_change` is held.
    fn finish_build(&self, live: &LiveIndex) -> Result<()> {
        let definition = live.index.definition();
        let name = (definition.table.keyspace.clone(), definition.schema.name.clone());
        live.state.is_built.store(true, Ordering::Release);
        self.set_built(&name, true)?;
        if let Some(hidden) = &live.hidden {
            self.forget_progress(hidden)?;
        }
        Ok(())
    }

    /// Empties an index and builds it again.
    pub(crate) fn rebuild(&self, store: &Arc<TableStore>, live: &Arc<LiveIndex>) -> Result<()> {
        self.check_writable()?;
        {
            let _building = live.state.building.lock();
            let definition = live.index.definition();
            let name = (definition.table.keyspace.clone(), definition.schema.name.clone());
            self.set_built(&name, false)?;
            live.state.is_built.store(false, Ordering::Release);
            match &live.hidden {
                Some(hidden) => {
                    self.empty_hidden(store, hidden)?;
                    self.forget_progress(hidden)?;
                }
                None => self.detach(store, live.name())?,
            }
        }
        match self.build_index(store, live)? {
            BuildEnd::Built => Ok(()),
            BuildEnd::Stopped => Err(Error::Refused(format!(
                "the build of index {} was stopped",
                live.name()
            ))),
        }
    }

    /// Drops all entries. The table's memtable is frozen at the same moment, so that the build finds all rows on disk whose entries
    /// are dropped from memory here.
    fn empty_hidden(&self, store: &Arc<TableStore>, hidden: &Arc<TableStore>) -> Result<()> {
        let gone = {
            let _maintenance = store.maintenance.alone();
            let _of_hidden = hidden.maintenance.alone();
            store.freeze(&*self.env, || self.barrier());
            let mut active = hidden.active.write();
            let since = active.since;
            let (bytes, gone) = hidden.clear_locked(&*self.env, &mut active, since);
            drop(active);
            self.budget.free(bytes);
            let is_damaged = hidden.is_damaged.load(Ordering::Acquire) && self.env.exists(&hidden.directory);
            let there = match is_damaged {
                true => list_directory(&*self.env, &hidden.directory)?,
                false => Vec::new(),
            };
            // Remove SSTables that could not be opened at the start, too.
            for listed in there {
                if !gone
                    .iter()
                    .any(|sstable| *sstable.descriptor() == listed.descriptor)
                {
                    listed.descriptor.remove_files(&*self.env)?;
                }
            }
            gone
        };
        self.remove_sstables(hidden, &gone, None)
    }

    fn build_hidden(
        &self,
        store: &Arc<TableStore>,
        live: &LiveIndex,
        index: &dyn HiddenTable,
        hidden: &Arc<TableStore>,
    ) -> Result<BuildEnd> {
        let sstables = store.view().sstables.clone();
        let reached = self.progress(hidden, store)?;
        let progress = hidden.directory.join(PROGRESS_FILE);
        let mut build = HiddenBuild::of(self, index, hidden, Some(progress));
        let range = KeyRange {
            start: reached.map_or(KeyBound::Start, KeyBound::After),
            end: KeyBound::End,
        };
        match self.read_for_build(store, live, &sstables, &range, &mut build) {
            Ok(()) => build.flush().map(|()| BuildEnd::Built),
            Err(Error::Read(ReadError::Aborted(_))) => Ok(BuildEnd::Stopped),
            Err(error) => Err(error),
        }
    }

    /// Adds the entries of SSTables to hidden tables, before the SSTables are added to their table.
    ///
    /// Requires: the table's files are held (`maintenance`).
    pub(crate) fn index_imported(&self, store: &Arc<TableStore>, taken: &[Arc<LiveSSTable>]) -> Result<()> {
        let indexes = store.indexes();
        for live in &indexes.0 {
            let (Storage::HiddenTable(index), Some(hidden)) = (live.index.storage(), &live.hidden) else {
                continue;
            };
            let mut build = HiddenBuild::of(self, index, hidden, None);
            self.read_for_build(store, live, taken, &KeyRange::all(), &mut build)?;
            build.flush()?;
        }
        Ok(())
    }

    /// Adds every row of the SSTables to the build.
    fn read_for_build(
        &self,
        store: &Arc<TableStore>,
        live: &LiveIndex,
        sstables: &[Arc<LiveSSTable>],
        range: &KeyRange,
        build: &mut HiddenBuild<'_>,
    ) -> Result<()> {
        let task = self.begin_build_task(store, live, sstables);
        let table = store.schema();
        let filter = Arc::new(ClusteringFilter::all());
        let sources = sstables.iter().map(|source| {
            let cursor = scan(source, &table, range, &filter, Scan::Sequential);
            let sstable = &source.sstable;
            let items = sstable.stats().total_rows + sstable.estimated_keys();
            let bytes = sstable.size_bytes();
            let watched = Watched::new(cursor, Pace::of(&self.pacer, &task.task), bytes, items);
            Box::new(watched) as Box<dyn Cursor>
        });
        let mut merged = MergeCursor::new(sources.collect(), table, Direction::Forward);
        while let Some(head) = merged.next_partition()? {
            if live.is_dropped() || self.pacer.is_stopping() {
                return Err(Error::Read(ReadError::Aborted("the build was stopped")));
            }
            if let Some(row) = &head.static_row {
                build.add(&head.key, row)?;
            }
            while let Some(unfiltered) = merged.next_unfiltered()? {
                if let Unfiltered::Row(row) = unfiltered {
                    build.add(&head.key, &row)?;
                }
            }
            build.complete = Some(head.key);
        }
        Ok(())
    }

    pub(crate) fn begin_build_task(
        &self,
        store: &TableStore,
        live: &LiveIndex,
        sstables: &[Arc<LiveSSTable>],
    ) -> Registered<'_> {
        let table = store.schema();
        let directory = live
            .hidden
            .as_ref()
            .map_or(&store.directory, |hidden| &hidden.directory);
        let job = Job {
            table_id: store.id,
            keyspace: table.keyspace.clone(),
            table: format!("{}.{}", table.name, live.name()),
            kind: KIND,
            directory: directory.clone(),
            sstables: sstables.len(),
            total_bytes: sstables.iter().map(|live| live.sstable.size_bytes()).sum(),
        };
        self.tasks.begin(self.env.time_uuid(), job)
    }

    /// The last complete partition of an earlier build.
    fn progress(&self, hidden: &TableStore, store: &TableStore) -> Result<Option<DecoratedKey>> {
        let path = hidden.directory.join(PROGRESS_FILE);
        if !self.env.exists(&path) {
            return Ok(None);
        }
        let key = Bytes::from(self.env.read_all(&path, PROGRESS_BYTES_MAX)?);
        let partitioner = store.schema().partitioner(self.options.partitioner);
        Ok(Some(DecoratedKey::new(partitioner, key)))
    }

    pub(crate) fn forget_progress(&self, hidden: &TableStore) -> Result<()> {
        let path = hidden.directory.join(PROGRESS_FILE);
        match self.env.exists(&path) {
            true => {
                self.env.remove_file(&path)?;
                Ok(self.env.sync_dir(&hidden.directory)?)
            }
            false => Ok(()),
        }
    }

    /// The running builds.
    pub(crate) fn build_facts(&self) -> Vec<IndexBuildFacts> {
        let running = self.tasks.list();
        let builds = running.iter().filter(|task| task.job.kind == KIND);
        builds
            .map(|task| {
                let (table, index) = task.job.table.split_once('.').unwrap_or((&task.job.table, ""));
                IndexBuildFacts {
                    keyspace: task.job.keyspace.clone(),
                    table: table.to_owned(),
                    index: index.to_owned(),
                    done_bytes: task.done_bytes.load(Ordering::Relaxed).min(task.job.total_bytes),
                    total_bytes: task.job.total_bytes,
                }
            })
            .collect()
    }
}

/// Collects entries and writes them.
struct HiddenBuild<'a> {
    shared: &'a Shared,
    index: &'a dyn HiddenTable,
    hidden: &'a Arc<TableStore>,
    gathered: Arc<Memtable>,
    /// A buffer to reuse.
    scratch: Vec<u8>,
    /// The last complete partition.
    complete: Option<DecoratedKey>,
    /// The file where its key is saved.
    progress: Option<PathBuf>,
}

impl<'a> HiddenBuild<'a> {
    fn of(
        shared: &'a Shared,
        index: &'a dyn HiddenTable,
        hidden: &'a Arc<TableStore>,
        progress: Option<PathBuf>,
    ) -> Self {
        Self {
            shared,
            index,
            hidden,
            gathered: Arc::new(Memtable::new(hidden.schema(), 1)),
            scratch: Vec::new(),
            complete: None,
            progress,
        }
    }

    fn add(&mut self, key: &DecoratedKey, row: &Row) -> Result<()> {
        let change = RowChange {
            before: None,
            after: row,
        };
        let Self {
            gathered, scratch, ..
        } = self;
        let when = Writing {
            hidden: &**self.hidden,
            env: &*self.shared.env,
        };
        self.index.each_entry(key, change, &when, &mut |place, entries| {
            gathered.apply_entries(place, entries, scratch);
        });
        match self.gathered.size_bytes() >= GATHERED_BYTES_MAX {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Writes the collected entries as an SSTable, and then saves the progress.
    fn flush(&mut self) -> Result<()> {
        let next = Arc::new(Memtable::new(self.hidden.schema(), 1));
        // An empty stretch of the log at this moment, so that the replay of an earlier truncation keeps the SSTable.
        let now = self.shared.barrier();
        let frozen = Arc::new(Frozen {
            memtable: std::mem::replace(&mut self.gathered, next),
            indexes: None,
            since: now,
            upto: now,
            tablets_upto: Arc::new([]),
            tablets: Arc::default(),
        });
        {
            let _turn = self.hidden.maintenance.flush();
            if self.hidden.is_dropped.load(Ordering::Acquire) {
                return Err(Error::Read(ReadError::Aborted("the index was dropped")));
            }
            // The build's memtable was not counted in the budget before; the flush subtracts it.
            let bytes = frozen.size_bytes();
            self.shared.budget.grow(bytes.cast_signed());
            let pace = FlushPace::begin(self.shared, [&self.hidden.maintenance; 2], Haste::Now, bytes);
            self.shared
                .flush_frozen(self.hidden, self.hidden, &frozen, pace)?;
        }
        self.shared.background.send(Work::Compact(self.hidden.clone()));
        if let (Some(complete), Some(path)) = (&self.complete, &self.progress) {
            self.shared.env.write_atomically(path, &complete.key)?;
        }
        Ok(())
    }
}
