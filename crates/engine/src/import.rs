//! Import: SSTables of another node or program are added to a table.
//!
//! Each SSTable is checked as by `ilion sstable verify`, and against the table's schema. Those that pass get names of the
//! table's own, under a transaction log: a crash leaves all of them or none. Their Statistics.db is rewritten, since it
//! describes another node's commit log, levels and repairs; the other files are links, or copies if requested.
//!
//! Imported SSTables cover an empty stretch of the commit log, at the moment of the import. So the replay of a truncation from before
//! the import keeps them, and that of a later one removes them.

pub(crate) mod fit;
mod placed;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ilion_env::Env;
use ilion_schema::{TableId, TableSchema, is_system_keyspace};
use ilion_sstable::{
    CommitLogInterval, Component, Descriptor, Statistics, Transaction, TransactionKind, verify,
    write_component,
};
use ilion_types::Partitioner;

use crate::link::{copy, link_or_copy};
use crate::live_sstable::LiveSSTable;
use crate::shared::Shared;
use crate::table_store::{TableIndexes, TableStore};
use crate::tablet_ends::tablet_of;
use crate::work::Work;
use crate::{Engine, Error, Result};

/// What happens to the source files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImportSource {
    /// They are removed after the import; they are not copied if they are on the same file system.
    #[default]
    Moved,
    /// They stay as they are.
    Copied,
    /// They are in the directory of the table itself, and the transaction of the import removes them.
    Placed,
}

/// The result of an import. Paths are those of Data.db.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// SSTables that are in the table now: old and new path.
    pub imported: Vec<(PathBuf, PathBuf)>,
    /// SSTables that were not imported, and why.
    pub refused: Vec<(PathBuf, String)>,
    /// SSTables that were imported, but whose source files could not be removed, and why. Importing them again is harmless.
    pub left: Vec<(PathBuf, String)>,
}

/// An SSTable that passed the checks.
pub(crate) struct Sound {
    pub descriptor: Descriptor,
    pub statistics: Statistics,
    /// Its intervals for logs that this node follows, too: those of the tablets that are copied.
    pub copied: Vec<CommitLogInterval>,
}

/// Where imported SSTables come from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bringer<'a> {
    /// An operator. Refused on a node of a cluster.
    Operator,
    /// Another replica of these tablets.
    Replica(&'a BTreeSet<u32>),
}

impl Bringer<'_> {
    fn copied(self, statistics: &Statistics) -> Vec<CommitLogInterval> {
        let Self::Replica(tablets) = self else {
            return Vec::new();
        };
        let covered = statistics.stats.covered_intervals().into_iter();
        let is_copied =
            |interval: &CommitLogInterval| tablet_of(interval).is_some_and(|of| tablets.contains(&of));
        covered.filter(is_copied).collect()
    }
}

impl Engine {
    /// Imports the SSTables of a directory into a table. The report names SSTables that are damaged or do not fit the table; all the
    /// others are imported together.
    ///
    /// # Errors
    /// The table does not exist or refuses writes, the directory belongs to a table, or the operating system returned an error.
    /// Then no SSTable is imported.
    pub fn import(&self, table: TableId, directory: &Path, source: ImportSource) -> Result<ImportReport> {
        self.import_by(Bringer::Operator, table, directory, source)
    }

    pub(crate) fn import_by(
        &self,
        bringer: Bringer<'_>,
        table: TableId,
        directory: &Path,
        source: ImportSource,
    ) -> Result<ImportReport> {
        self.check_bringer(bringer)?;
        let store = self.importing_store(table)?;
        if self.tables().iter().any(|store| store.directory() == directory) {
            return Err(Error::Refused(format!(
                "{} holds the SSTables of a table of this node; nodetool refresh takes those that were placed there",
                directory.display()
            )));
        }
        self.import_all(bringer, &store, sstables_in(&self.shared, directory)?, source)
    }

    /// Imports the SSTables that pass the checks.
    fn import_all(
        &self,
        bringer: Bringer<'_>,
        store: &Arc<TableStore>,
        found: Vec<Descriptor>,
        source: ImportSource,
    ) -> Result<ImportReport> {
        let shared = &self.shared;
        let mut report = ImportReport::default();
        let mut sound = Vec::new();
        let mut checking = shared.begin_check(store, "Import", found.iter());
        for descriptor in found {
            let bytes = verify::work_bytes(&*shared.env, &descriptor);
            let checked = check(shared, &store.schema(), &descriptor, &mut |bytes| {
                checking.at(bytes)
            })?;
            checking.pass(bytes);
            match checked {
                Ok(statistics) => sound.push(Sound {
                    descriptor,
                    copied: bringer.copied(&statistics),
                    statistics,
                }),
                Err(reason) => report.refused.push((descriptor.path(&Component::Data), reason)),
            }
        }
        if !sound.is_empty() {
            shared.take(store, sound, source, &mut report)?;
            shared.background.send(Work::Compact(store.clone()));
            shared.ask_for_token_maps();
        }
        Ok(report)
    }

    /// Whether this is a node of a cluster: its tables have the data of tablets.
    pub fn is_of_cluster(&self) -> bool {
        self.shared.is_of_cluster()
    }

    /// Refuses SSTables for a node of a cluster that are not those of another replica.
    fn check_bringer(&self, bringer: Bringer<'_>) -> Result<()> {
        match bringer {
            Bringer::Operator if self.is_of_cluster() => Err(Error::Refused(
                "SSTables cannot be brought into a node of a cluster: its replicas would differ; ilion sstable load writes their rows to all replicas"
                    .to_owned(),
            )),
            _ => Ok(()),
        }
    }

    /// The store of a table that may take SSTables.
    pub(crate) fn importing_store(&self, table: TableId) -> Result<Arc<TableStore>> {
        self.shared.check_writable()?;
        let store = self.shared.table(table);
        let store = store.ok_or_else(|| Error::Refused(format!("table {table} does not exist")))?;
        store.check_usable()?;
        self.check_importable(&store)?;
        Ok(store)
    }

    fn check_importable(&self, store: &TableStore) -> Result<()> {
        let table = store.schema();
        let refuse = |reason: String| Err(Error::Refused(reason));
        if is_system_keyspace(&table.keyspace) {
            return refuse(format!("{} keyspace is not user-modifiable", table.keyspace));
        }
        let schema = self.schema();
        let keyspace = schema.keyspace(&table.keyspace);
        // An index of an unknown class would miss the imported rows.
        let indexes = store.indexes();
        let is_kept = |name: &str| indexes.named(name).is_some();
        let index = keyspace.and_then(|keyspace| {
            let mut names = keyspace.indexes_of(&table.name).map(|index| index.name.clone());
            names.find(|name| !is_kept(name))
        });
        let view = keyspace.and_then(|keyspace| Some(keyspace.views_of(&table.name).next()?.name.clone()));
        if let Some(name) = index.or(view) {
            return refuse(format!(
                "{}.{} cannot import: {name} would go stale; drop it first and make it again afterwards",
                table.keyspace, table.name
            ));
        }
        Ok(())
    }
}

/// The SSTables of a directory, whatever their version.
pub(crate) fn sstables_in(shared: &Shared, directory: &Path) -> Result<Vec<Descriptor>> {
    let entries = shared.env.list(directory)?;
    let directory: Arc<Path> = directory.into();
    let files = entries.iter().filter(|entry| !entry.is_dir);
    let parsed = files.filter_map(|entry| Descriptor::parse(&directory, &entry.name));
    let mut found: Vec<Descriptor> = parsed
        .filter(|(_, component)| *component == Component::Data)
        .map(|(descriptor, _)| descriptor)
        .collect();
    found.sort_by_key(|descriptor| descriptor.id);
    Ok(found)
}

/// Returns the Statistics.db of an SSTable that is sound and fits the table, or the reason why it is refused.
pub(crate) fn check(
    shared: &Shared,
    table: &TableSchema,
    descriptor: &Descriptor,
    on_progress: verify::OnProgress<'_>,
) -> Result<std::result::Result<Statistics, String>> {
    match statistics_of(shared, table, descriptor, on_progress) {
        Ok(statistics) => Ok(Ok(statistics)),
        Err(Error::Refused(reason) | Error::SSTable(ilion_sstable::Error::Refused(reason))) => {
            Ok(Err(reason))
        }
        Err(Error::SSTable(error @ ilion_sstable::Error::Corrupt { .. })) => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}

/// Returns the Statistics.db of an SSTable whose columns fit the table. No rows are read. `partitioner` is that of the node.
///
/// # Errors
/// The SSTable is one of another table or version, its Statistics.db is damaged, or the operating system returned an error.
pub fn check_fit(
    env: &dyn Env,
    descriptor: &Descriptor,
    table: &TableSchema,
    partitioner: Partitioner,
) -> Result<Statistics> {
    descriptor.version.check_readable()?;
    let statistics = Statistics::read(env, descriptor)?.ok_or_else(|| {
        let path = descriptor.path(&Component::Statistics);
        Error::Refused(format!("{} is not there", path.display()))
    })?;
    fit::check(&statistics, table, table.partitioner(partitioner)).map_err(Error::Refused)?;
    Ok(statistics)
}

fn statistics_of(
    shared: &Shared,
    table: &TableSchema,
    descriptor: &Descriptor,
    on_progress: verify::OnProgress<'_>,
) -> Result<Statistics> {
    let env = &*shared.env;
    // Checked first, since the next check reads all rows.
    let statistics = check_fit(env, descriptor, table, shared.options.partitioner)?;
    let verification = verify::verify(env, descriptor, on_progress)?;
    let findings = &verification.findings;
    if let Some(first) = findings.kept().first() {
        let others = findings.kept().len() as u64 - 1 + findings.more();
        return Err(Error::Refused(match others {
            0 => first.to_string(),
            _ => format!("{first} (and {others} more findings; ilion sstable verify lists them)"),
        }));
    }
    Ok(statistics)
}

impl Shared {
    /// Adds sound SSTables to the table, all or none.
    fn take(
        &self,
        store: &Arc<TableStore>,
        sound: Vec<Sound>,
        source: ImportSource,
        report: &mut ImportReport,
    ) -> Result<()> {
        let _maintenance = store.maintenance.alone();
        if store.is_dropped.load(Ordering::Acquire) {
            return Err(Error::Refused("the table was dropped".to_owned()));
        }
        let table = store.schema();
        for file in &sound {
            // The table may have been altered since the files were checked.
            fit::check(
                &file.statistics,
                &table,
                table.partitioner(self.options.partitioner),
            )
            .map_err(Error::Refused)?;
        }
        self.env.create_dir_all(&store.directory)?;
        let mut transaction = Transaction::begin(self.env.clone(), &store.directory, TransactionKind::Flush)?;
        let importing = store.begin_import();
        // All steps that can fail come before the COMMIT.
        let linked = self
            .link_all(store, &sound, source, &mut transaction)
            .and_then(|taken| {
                self.index_imported(store, &taken)?;
                for sstable in &taken {
                    self.attach(store, &TableIndexes::default(), sstable)?;
                }
                Ok(taken)
            });
        let marked = linked.and_then(|taken| {
            if source == ImportSource::Placed {
                let mut placed = sound.iter();
                placed.try_for_each(|file| transaction.remove(&file.descriptor))?;
            }
            Ok(taken)
        });
        let taken = match marked {
            Ok(taken) => taken,
            Err(error) => {
                self.abort(transaction);
                return Err(error);
            }
        };
        for sstable in &taken {
            self.back_up(store, sstable.descriptor());
        }
        let committed = self.commit(transaction)?;
        store.add_sstables(taken.clone());
        store.forget_tablet_ends();
        self.forget_cached_table(table.id);
        drop(importing);
        self.found_debt(store);
        for (file, taken) in sound.iter().zip(&taken) {
            let from = file.descriptor.path(&Component::Data);
            let taken = taken.descriptor();
            tracing::info!(from = %file.descriptor, sstable = %taken, "imported");
            let removed = match source {
                ImportSource::Moved => file.descriptor.remove_files(&*self.env),
                ImportSource::Placed => committed.remove_files(&file.descriptor),
                ImportSource::Copied => Ok(()),
            };
            if let Err(error) = removed {
                report.left.push((from.clone(), error.to_string()));
            }
            report.imported.push((from, taken.path(&Component::Data)));
        }
        Ok(())
    }

    fn link_all(
        &self,
        store: &TableStore,
        sound: &[Sound],
        source: ImportSource,
        transaction: &mut Transaction,
    ) -> Result<Vec<Arc<LiveSSTable>>> {
        let taken = self.link_sound(store, sound, source, transaction)?;
        let table = store.schema();
        taken
            .iter()
            .map(|descriptor| self.open_sstable(&table, descriptor))
            .collect()
    }

    /// Links or copies the files under names of the table, within the transaction.
    pub(crate) fn link_sound(
        &self,
        store: &TableStore,
        sound: &[Sound],
        source: ImportSource,
        transaction: &mut Transaction,
    ) -> Result<Vec<Descriptor>> {
        let mut taken = Vec::with_capacity(sound.len());
        for file in sound {
            let descriptor = store.next_descriptor(&*self.env, file.descriptor.version);
            transaction.add(&descriptor)?;
            self.link_sstable(file, &descriptor, source)?;
            taken.push(descriptor);
        }
        self.env.sync_dir(&store.directory)?;
        Ok(taken)
    }

    fn link_sstable(&self, file: &Sound, to: &Descriptor, source: ImportSource) -> Result<()> {
        let env = &*self.env;
        let directory = &file.descriptor.directory;
        for path in file.descriptor.files(env)? {
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            // Temporary files have no component name.
            let Some((_, component)) = Descriptor::parse(directory, name) else {
                continue;
            };
            if component == Component::Statistics {
                continue;
            }
            match source {
                ImportSource::Moved | ImportSource::Placed => link_or_copy(env, &path, &to.path(&component))?,
                ImportSource::Copied => copy(env, &path, &to.path(&component))?,
            }
        }
        let statistics = self.own_statistics(file);
        let bytes = statistics.encode(to.version);
        Ok(write_component(env, to, &Component::Statistics, &bytes)?)
    }

    /// The Statistics.db without the fields that are only true on the node that wrote it.
    fn own_statistics(&self, file: &Sound) -> Statistics {
        let mut statistics = file.statistics.clone();
        let now = self.barrier();
        let now = (now.segment.0, now.offset);
        let stats = &mut statistics.stats;
        stats.originating_host = Some(self.id);
        stats.cover([(now, now)].iter().chain(&file.copied));
        stats.level = 0;
        stats.repaired_at_millis = 0;
        stats.pending_repair = None;
        stats.is_transient = false;
        statistics
    }
}
