//! Making snapshots: all links under a hidden name, synced, then renamed.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ilion_env::Env;
use ilion_schema::describe::{Internals, describe_table_elements, describe_type, sorted_types};
use ilion_schema::{Schema, TableSchema};
use ilion_sstable::{Component, Descriptor, TableFiles};

use super::manifest::Manifest;
use super::{MAKING, MANIFEST_FILE, SCHEMA_FILE, SnapshotMemtables, directory_of_snapshots, subdirectory_of};
use crate::flush_pace::Haste;
use crate::link::copy;
use crate::live_sstable::LiveSSTable;
use crate::shared::Shared;
use crate::table_store::TableStore;
use crate::{Error, Result};

/// The SSTables of a table, or of the hidden table of an index.
struct Part {
    /// Where they are.
    directory: PathBuf,
    /// Where their links go, below the snapshot.
    subdirectory: Option<String>,
    descriptors: HashSet<Descriptor>,
    /// Keeps their files from being removed.
    _held: Vec<Arc<LiveSSTable>>,
}

impl Part {
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

/// A snapshot that does not have its tag yet.
struct Made {
    hidden: PathBuf,
    place: PathBuf,
}

impl Shared {
    /// Takes a snapshot of each table under its tag: of all, or of none. Returns their directories.
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
        let ttl_millis = ttl_secs.map(|ttl| i64::try_from(ttl).unwrap_or(i64::MAX).saturating_mul(1000));
        let expires_millis = ttl_millis.map(|ttl| created_millis.saturating_add(ttl));
        let mut made = Vec::with_capacity(tables.len());
        for (store, tag) in tables {
            let snapshots = directory_of_snapshots(&store.directory);
            let next = Made {
                hidden: snapshots.join(format!(".{tag}{MAKING}")),
                place: snapshots.join(tag),
            };
            let manifest = Manifest {
                created_millis: Some(created_millis),
                expires_millis,
                ..Manifest::default()
            };
            let result = self.make(store, &next.hidden, manifest, memtables);
            made.push(next);
            if let Err(error) = result {
                self.unmake(&made);
                return Err(error);
            }
        }
        for snapshot in &made {
            if let Err(error) = self.show(snapshot) {
                self.unmake(&made);
                return Err(error);
            }
        }
        if let Some(millis) = expires_millis {
            self.snapshots.expires(millis);
        }
        for (store, tag) in tables {
            tracing::info!(?store, %tag, "a snapshot was taken");
        }
        Ok(made.into_iter().map(|made| made.place).collect())
    }

    /// Gives a snapshot its tag.
    fn show(&self, made: &Made) -> Result<()> {
        self.env.rename(&made.hidden, &made.place)?;
        let snapshots = made.place.parent().unwrap_or(Path::new("."));
        Ok(self.env.sync_dir(snapshots)?)
    }

    /// Removes snapshots of a call that failed. What cannot be removed now has a hidden name, or is a whole snapshot.
    fn unmake(&self, made: &[Made]) {
        for Made { hidden, place } in made {
            for directory in [hidden, place] {
                if self.env.exists(directory)
                    && let Err(error) = self.remove_snapshot(directory)
                {
                    tracing::warn!(directory = %directory.display(), %error, "a snapshot that failed cannot be removed");
                }
            }
            // Fails if there are other snapshots.
            let _ = self.env.remove_dir(place.parent().unwrap_or(Path::new(".")));
        }
        self.snapshots.expires(0);
    }

    /// Makes a snapshot of one table in `directory`; everything in it is durable.
    fn make(
        &self,
        store: &Arc<TableStore>,
        directory: &Path,
        mut manifest: Manifest,
        memtables: SnapshotMemtables,
    ) -> Result<()> {
        let env = &*self.env;
        let parts = self.parts_of(store, memtables)?;
        // Read behind the SSTables, so that it has each of their columns.
        let statements = statements_of(&self.schema.load(), &store.schema());
        if env.exists(directory) {
            env.remove_dir_all(directory)?;
        }
        env.create_dir_all(directory)?;
        for part in &parts {
            let target = match &part.subdirectory {
                None => directory.to_path_buf(),
                Some(name) => directory.join(name),
            };
            env.create_dir_all(&target)?;
            self.link_part(part, &target)?;
            env.sync_dir(&target)?;
            let mut ids: Vec<&Descriptor> = part.descriptors.iter().collect();
            ids.sort_by_key(|descriptor| descriptor.id);
            let names = ids.into_iter().map(|descriptor| {
                let name = descriptor.file_name(&Component::Data);
                match &part.subdirectory {
                    None => name,
                    Some(subdirectory) => format!("{subdirectory}/{name}"),
                }
            });
            manifest.files.extend(names);
        }
        env.write_atomically(&directory.join(SCHEMA_FILE), statements.as_bytes())?;
        env.write_atomically(&directory.join(MANIFEST_FILE), manifest.encode().as_bytes())?;
        Ok(())
    }

    /// The SSTables of a table and of its hidden tables at one moment.
    fn parts_of(&self, store: &Arc<TableStore>, memtables: SnapshotMemtables) -> Result<Vec<Part>> {
        // Meanwhile no other flush adds an SSTable, neither to the table nor to the hidden tables of its indexes.
        let _turn = store.maintenance.flush();
        if store.is_dropped.load(Ordering::Acquire) {
            return Err(Error::Refused(format!(
                "table {} was dropped",
                store.schema().name
            )));
        }
        if memtables == SnapshotMemtables::Flushed {
            self.flush_in_turn(store, || self.barrier(), Haste::Now)?;
        }
        let mut table = Part::of(store, None);
        if store.set_aside_reason().is_some() {
            // It has no SSTables in memory, and its files stay as they are.
            let files = TableFiles::list(&*self.env, &store.directory)?.unwrap_or_default();
            table
                .descriptors
                .extend(files.sstables.into_iter().map(|found| found.descriptor));
        }
        let indexes = store.indexes();
        let hidden = indexes.hidden();
        let hidden = hidden.map(|hidden| Part::of(hidden, Some(subdirectory_of(hidden))));
        Ok([table].into_iter().chain(hidden.collect::<Vec<_>>()).collect())
    }

    fn link_part(&self, part: &Part, target: &Path) -> Result<()> {
        if part.descriptors.is_empty() {
            return Ok(());
        }
        let env = &*self.env;
        let pause = self.options.snapshots.links_per_sec.filter(|links| *links > 0);
        let pause = pause.map(|links| Duration::from_secs(1) / links);
        let directory: Arc<Path> = part.directory.as_path().into();
        for entry in env.list(&part.directory)? {
            let Some((descriptor, component)) = Descriptor::parse(&directory, &entry.name) else {
                continue;
            };
            if entry.is_dir || !part.descriptors.contains(&descriptor) {
                continue;
            }
            let from = part.directory.join(&entry.name);
            match link(env, &from, &target.join(&entry.name)) {
                // An index was dropped, or is being built anew.
                Err(error) if error.is_not_found() && is_beside(&component) => {}
                linked => linked?,
            }
            if let Some(pause) = pause {
                self.background.pause(pause);
            }
        }
        Ok(())
    }
}

/// Whether other programs read the SSTable without this component.
fn is_beside(component: &Component) -> bool {
    matches!(component, Component::Other(_))
}

/// Gives the file a second name, or copies it where there are no links. Requires: the file is durable, as all of a live SSTable.
pub(crate) fn link(env: &dyn Env, from: &Path, to: &Path) -> ilion_env::Result<()> {
    match env.hard_link(from, to) {
        Err(error) if error.is_other_file_system() => copy(env, from, to),
        linked => linked,
    }
}

/// The statements that create the table, with its types; they pass over what is there already. Compat: `SchemaCQLHelper`.
pub(crate) fn statements_of(schema: &Schema, table: &Arc<TableSchema>) -> String {
    let Some(keyspace) = schema.keyspace(&table.keyspace) else {
        return String::new();
    };
    let types = sorted_types(keyspace).into_iter().map(|of| describe_type(of));
    let elements = describe_table_elements(keyspace, table, Internals::Shown);
    let statements = types.chain(elements.into_iter().map(|element| element.create_statement));
    statements
        .map(|statement| format!("{}\n", unless_it_exists(&statement)))
        .collect()
}

fn unless_it_exists(statement: &str) -> String {
    const CREATED: [&str; 5] = ["TYPE", "TABLE", "MATERIALIZED VIEW", "INDEX", "CUSTOM INDEX"];
    let created = CREATED.iter().find_map(|kind| {
        let rest = statement.strip_prefix(&format!("CREATE {kind} "))?;
        Some(format!("CREATE {kind} IF NOT EXISTS {rest}"))
    });
    created.unwrap_or_else(|| statement.to_owned())
}
