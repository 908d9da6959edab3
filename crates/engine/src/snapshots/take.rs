//! Making snapshots: all links under a hidden name, synced, then renamed.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ilion_env::{Env, parent_of};
use ilion_schema::describe::{Internals, describe_table_elements, describe_type, sorted_types};
use ilion_schema::{Keyspace, Schema, TableSchema};
use ilion_sstable::{Component, Descriptor, TableFiles};
use ilion_types::{CqlType, UserType};

use super::frozen::FrozenTable;
use super::manifest::Manifest;
use super::{MAKING, MANIFEST_FILE, SCHEMA_FILE, SnapshotMemtables, directory_of_snapshots, subdirectory_of};
use crate::flush_pace::{FlushPace, Haste};
use crate::indexes::OlderRows;
use crate::link::copy;
use crate::live_sstable::LiveSSTable;
use crate::shared::Shared;
use crate::table_store::TableStore;
use crate::view::Frozen;
use crate::{Error, Result};

/// The SSTables of a table, or of the hidden table of an index.
struct SSTableSet {
    /// The directory of the SSTables.
    directory: PathBuf,
    /// The directory of their links below that of the snapshot; `None` for the snapshot's directory itself.
    subdirectory: Option<String>,
    descriptors: HashSet<Descriptor>,
    /// Keeps their files from being removed.
    _held: Vec<Arc<LiveSSTable>>,
}

impl SSTableSet {
    fn of(store: &TableStore, subdirectory: Option<String>) -> Self {
        let held = store.view().sstables.clone();
        Self {
            directory: store.directory.clone(),
            subdirectory,
            descriptors: held.iter().map(|live| live.descriptor().clone()).collect(),
            _held: held,
        }
    }
}

/// A snapshot of a table that does not have its tag yet.
pub(super) struct Making {
    /// The hidden directory in which it is made.
    hidden: PathBuf,
    /// Its final directory.
    place: PathBuf,
    manifest: Manifest,
}

impl Shared {
    /// Takes a snapshot of each table under its tag: of all tables, or of none. Returns the directories of the snapshots.
    ///
    /// Requires: `Snapshots::changing` is held.
    pub(super) fn take_snapshots(
        &self,
        tables: &[(&Arc<TableStore>, String)],
        ttl_secs: Option<u64>,
        memtables: SnapshotMemtables,
    ) -> Result<Vec<PathBuf>> {
        for (store, tag) in tables {
            if self
                .env
                .exists(&directory_of_snapshots(&store.directory).join(tag))
            {
                return Err(Error::Refused(format!("Snapshot {tag} already exists.")));
            }
        }
        let created_millis = self.env.now_micros().div_euclid(1000);
        let mut made = Vec::with_capacity(tables.len());
        let mut frozen = match memtables {
            SnapshotMemtables::Flushed if self.is_of_cluster() => {
                self.freeze_together(tables.iter().map(|(store, _)| *store))
            }
            SnapshotMemtables::Flushed | SnapshotMemtables::LeftOut => BTreeMap::new(),
        };
        for (store, tag) in tables {
            made.push(self.begin_snapshot(store, tag, created_millis, ttl_secs));
            let frozen = frozen.remove(&store.id);
            let result = made
                .last_mut()
                .map_or(Ok(()), |making| self.make(store, making, memtables, frozen));
            if let Err(error) = result {
                made.iter().for_each(|making| self.unmake(making));
                return Err(error);
            }
        }
        if let Err(error) = made.iter().try_for_each(|making| self.show(making)) {
            made.iter().for_each(|making| self.unmake(making));
            return Err(error);
        }
        Ok(made.into_iter().map(|making| making.place).collect())
    }

    /// Chooses the directories and times of a new snapshot. Creates no file.
    pub(super) fn begin_snapshot(
        &self,
        store: &TableStore,
        tag: &str,
        created_millis: i64,
        ttl_secs: Option<u64>,
    ) -> Making {
        let ttl_millis = ttl_secs.map(|ttl| i64::try_from(ttl).unwrap_or(i64::MAX).saturating_mul(1000));
        let snapshots = directory_of_snapshots(&store.directory);
        Making {
            hidden: snapshots.join(format!(".{tag}{MAKING}")),
            place: snapshots.join(tag),
            manifest: Manifest {
                created_millis: Some(created_millis),
                expires_millis: ttl_millis.map(|ttl| created_millis.saturating_add(ttl)),
                ..Manifest::default()
            },
        }
    }

    /// Gives a snapshot its tag by a rename: from now on it exists, also after a crash.
    pub(super) fn show(&self, making: &Making) -> Result<()> {
        let manifest = making.hidden.join(MANIFEST_FILE);
        self.env
            .write_atomically(&manifest, making.manifest.encode().as_bytes())?;
        self.env.rename(&making.hidden, &making.place)?;
        self.env.sync_dir(parent_of(&making.place))?;
        if let Some(millis) = making.manifest.expires_millis {
            self.snapshots.expires(millis);
        }
        tracing::info!(snapshot = %making.place.display(), "a snapshot was taken");
        Ok(())
    }

    /// Removes a snapshot of a call that failed. If that fails, too, a hidden directory or a whole snapshot stays.
    pub(super) fn unmake(&self, making: &Making) {
        for directory in [&making.hidden, &making.place] {
            if self.env.exists(directory)
                && let Err(error) = self.remove_snapshot(directory)
            {
                tracing::warn!(directory = %directory.display(), %error, "a snapshot that failed cannot be removed");
            }
        }
        // Fails if the directory has other snapshots.
        let _ = self.env.remove_dir(parent_of(&making.place));
        self.snapshots.expires(0);
    }

    fn make(
        &self,
        store: &Arc<TableStore>,
        making: &mut Making,
        memtables: SnapshotMemtables,
        frozen: Option<FrozenTable<'_>>,
    ) -> Result<()> {
        let sets = self.sets_of(store, memtables, frozen)?;
        self.fill(store, making, &sets)
    }

    /// Links the current SSTables. Requires: no other thread flushes, imports or drops (`maintenance`).
    pub(super) fn link_now(&self, store: &Arc<TableStore>, making: &mut Making) -> Result<()> {
        let sets = self.sets_now(store)?;
        self.fill(store, making, &sets)
    }

    /// Makes all files of a snapshot but the manifest. They are durable when this returns.
    fn fill(&self, store: &Arc<TableStore>, making: &mut Making, sets: &[SSTableSet]) -> Result<()> {
        let env = &*self.env;
        let directory = &making.hidden;
        // The schema is read after the SSTables, so that it has all of their columns.
        let statements = statements_of(&self.schema.load(), &store.schema());
        if env.exists(directory) {
            env.remove_dir_all(directory)?;
        }
        env.create_dir_all(directory)?;
        for set in sets {
            let target = match &set.subdirectory {
                None => directory.clone(),
                Some(name) => directory.join(name),
            };
            env.create_dir_all(&target)?;
            self.link_set(store, set, &target)?;
            env.sync_dir(&target)?;
            let mut descriptors: Vec<&Descriptor> = set.descriptors.iter().collect();
            descriptors.sort_by_key(|descriptor| descriptor.id);
            for descriptor in descriptors {
                let name = name_in_manifest(set.subdirectory.as_deref(), descriptor);
                making.manifest.files.push(name);
            }
        }
        Ok(env.write_atomically(&directory.join(SCHEMA_FILE), statements.as_bytes())?)
    }

    /// Writes a memtable as an SSTable of the snapshot, and syncs it. Requires: no writes to the memtable.
    pub(super) fn write_rest(&self, store: &TableStore, making: &mut Making, rest: &Frozen) -> Result<()> {
        let is_hidden = store.schema().key_order.is_some();
        let subdirectory = is_hidden.then(|| subdirectory_of(store));
        let directory = match &subdirectory {
            None => making.hidden.clone(),
            Some(name) => making.hidden.join(name),
        };
        let named = store.next_descriptor(&*self.env, self.options.sstable_version);
        let descriptor = Descriptor::new(directory.as_path(), named.version, named.id, named.format);
        let maintenance = [&store.maintenance; 2];
        let pace = FlushPace::begin(self, maintenance, Haste::Now, rest.memtable.size_bytes());
        if self.write_frozen(&descriptor, rest, &store.indexes(), &OlderRows::ANY, pace)? {
            self.env.sync_dir(&directory)?;
            let name = name_in_manifest(subdirectory.as_deref(), &descriptor);
            making.manifest.files.push(name);
        }
        Ok(())
    }

    /// The SSTables of a table and of its hidden tables at one moment.
    fn sets_of(
        &self,
        store: &Arc<TableStore>,
        memtables: SnapshotMemtables,
        frozen: Option<FrozenTable<'_>>,
    ) -> Result<Vec<SSTableSet>> {
        // While the turn is held, no other flush adds an SSTable, neither to the table nor to the hidden tables of its indexes.
        let (_turn, frozen) = match frozen {
            Some(frozen) => (frozen.turn, Some(frozen.memtables)),
            None => (store.maintenance.flush(), None),
        };
        if store.is_dropped.load(Ordering::Acquire) {
            return Err(Error::Refused(format!(
                "table {} was dropped",
                store.schema().name
            )));
        }
        match (memtables, frozen) {
            (SnapshotMemtables::LeftOut, _) => {}
            (SnapshotMemtables::Flushed, None) => {
                self.flush_in_turn(store, || self.barrier(), Haste::Now)?;
            }
            (SnapshotMemtables::Flushed, Some(frozen)) => {
                let is_frozen = |next: &Arc<Frozen>| frozen.iter().any(|frozen| Arc::ptr_eq(frozen, next));
                self.flush_frozen_while(store, is_frozen, Haste::Now)?;
            }
        }
        self.sets_now(store)
    }

    fn sets_now(&self, store: &Arc<TableStore>) -> Result<Vec<SSTableSet>> {
        let mut table = SSTableSet::of(store, None);
        if store.set_aside_reason().is_some() {
            // A table that is set aside has no SSTables in memory, and its files do not change: list them.
            let files = TableFiles::list(&*self.env, &store.directory)?.unwrap_or_default();
            table
                .descriptors
                .extend(files.sstables.into_iter().map(|found| found.descriptor));
        }
        let indexes = store.indexes();
        let hidden = indexes.hidden();
        let hidden = hidden.map(|hidden| SSTableSet::of(hidden, Some(subdirectory_of(hidden))));
        Ok([table].into_iter().chain(hidden.collect::<Vec<_>>()).collect())
    }

    /// Links the SSTables of `store`, or of one of its hidden tables.
    fn link_set(&self, store: &TableStore, set: &SSTableSet, target: &Path) -> Result<()> {
        if set.descriptors.is_empty() {
            return Ok(());
        }
        let env = &*self.env;
        let directory: Arc<Path> = set.directory.as_path().into();
        for entry in env.list(&set.directory)? {
            let Some((descriptor, component)) = Descriptor::parse(&directory, &entry.name) else {
                continue;
            };
            if entry.is_dir || !set.descriptors.contains(&descriptor) {
                continue;
            }
            let from = set.directory.join(&entry.name);
            match link(env, &from, &target.join(&entry.name)) {
                // The index was dropped, or is being rebuilt.
                Err(error) if error.is_not_found() && is_beside(&component) => {}
                linked => linked?,
            }
            if component == Component::Data {
                store.maintenance.add_linked();
            }
            if let Some(links) = self.adjusted.links_per_sec() {
                self.pause(Duration::from_secs(1) / links);
            }
        }
        Ok(())
    }
}

fn name_in_manifest(subdirectory: Option<&str>, descriptor: &Descriptor) -> String {
    let name = descriptor.file_name(&Component::Data);
    match subdirectory {
        None => name,
        Some(subdirectory) => format!("{subdirectory}/{name}"),
    }
}

/// Whether other programs read the SSTable without this component.
fn is_beside(component: &Component) -> bool {
    matches!(component, Component::Other(_))
}

/// Gives the file a second name, or copies it where hard links are not possible. Requires: the file is durable, as files of a live SSTable
/// are.
pub(crate) fn link(env: &dyn Env, from: &Path, to: &Path) -> ilion_env::Result<()> {
    match env.hard_link(from, to) {
        Err(error) if error.is_other_file_system() => copy(env, from, to),
        linked => linked,
    }
}

/// The CREATE statements of the table and of the user types that it uses, each with IF NOT EXISTS. Compat: `SchemaCQLHelper`.
pub(crate) fn statements_of(schema: &Schema, table: &Arc<TableSchema>) -> String {
    let Some(keyspace) = schema.keyspace(&table.keyspace) else {
        return String::new();
    };
    let types = types_of(keyspace, table);
    let types = types.into_iter().map(|of| describe_type(of));
    let elements = describe_table_elements(keyspace, table, Internals::Shown);
    let statements = types.chain(elements.into_iter().map(|element| element.create_statement));
    statements
        .map(|statement| format!("{}\n", unless_it_exists(&statement)))
        .collect()
}

/// The user types that the table uses, including types of dropped columns and types that other types use. Each type comes after those
/// that it uses.
fn types_of<'a>(keyspace: &'a Keyspace, table: &TableSchema) -> Vec<&'a Arc<UserType>> {
    let dropped = table.dropped.values().map(|column| &column.ty);
    let mut used: Vec<&CqlType> = table
        .every_column()
        .into_iter()
        .map(|column| &column.ty)
        .collect();
    used.extend(dropped);
    let mut types = Vec::new();
    // `sorted_types` puts a type after those that it uses. In reverse order, all users of a type come before it.
    for of in sorted_types(keyspace).into_iter().rev() {
        if used.iter().any(|ty| ty.references_udt(&keyspace.name, &of.name)) {
            used.extend(of.fields.iter().map(|(_, ty)| ty));
            types.push(of);
        }
    }
    types.reverse();
    types
}

fn unless_it_exists(statement: &str) -> String {
    const CREATED: [&str; 5] = ["TYPE", "TABLE", "MATERIALIZED VIEW", "INDEX", "CUSTOM INDEX"];
    let created = CREATED.iter().find_map(|kind| {
        let rest = statement.strip_prefix(&format!("CREATE {kind} "))?;
        Some(format!("CREATE {kind} IF NOT EXISTS {rest}"))
    });
    created.unwrap_or_else(|| statement.to_owned())
}
