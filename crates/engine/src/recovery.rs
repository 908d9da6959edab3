//! Opening a data directory: its id, its tables, leftovers of a crash, the replay of the log.
//!
//! Everything is opened and checked before any file is changed. So a directory that is refused is unchanged, and the program
//! that wrote it can still open it.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ilion_commitlog::CommitLog;
use ilion_env::{Env, FileLock};
use ilion_schema::{Schema, SchemaFault, TableKind, TableSchema};
use ilion_sstable::{ListedSSTable, TableFiles, finish_transactions};
use ilion_types::{CqlType, Partitioner};
use uuid::Uuid;

use crate::affected::Affected;
use crate::live_sstable::LiveSSTable;
use crate::log_losses;
use crate::origin;
use crate::parallel::{in_parallel, thread_count};
use crate::purged::Purged;
use crate::reached::Reached;
use crate::replay::replay;
use crate::shared::{Shared, TableMap};
use crate::snapshots::BACKUPS_DIRECTORY;
use crate::table_store::{Left, TableStore};
use crate::work::Work;
use crate::write::record_bytes_max;
use crate::{EngineOptions, Error, Result};

/// The file that is locked while a process has the data directory open.
pub(crate) const LOCK_FILE: &str = "ilion.lock";
/// The file with the id that ties data directory and commit log to each other.
const ID_FILE: &str = "ilion.id";
const ID_BYTES_MAX: u64 = 64;

/// Opens the directory and replays the log; no thread is running yet when it returns.
pub(crate) fn open(env: Arc<dyn Env>, options: EngineOptions) -> Result<(Shared, Box<dyn FileLock>)> {
    env.create_dir_all(&options.data_dir)?;
    let lock = env.lock(&options.data_dir.join(LOCK_FILE)).map_err(|error| {
        if error.is_locked() {
            Error::InUse(options.data_dir.clone())
        } else {
            error.into()
        }
    })?;
    let stored_id = stored_id(&*env, &options.data_dir)?;
    let id = stored_id.unwrap_or_else(|| env.random_uuid());
    let mut shared = Shared::new(env, options, id);
    shared.is_ours = stored_id.is_some();
    shared.release = origin::release_of(&shared)?;
    let own = Schema::with_system_of(shared.release);
    shared.adopt_tables(&own, &Affected::All)?;
    shared.schema.store(Arc::new(own));
    let (stored, faults) = shared.load_schema()?;
    shared.faults.note(&faults);
    shared.adopt_tables(&stored, &Affected::All)?;
    shared.schema.store(Arc::new(stored));
    let reached = Reached::read(&*shared.env, &shared.options.data_dir)?;
    *shared.purged.lock() = Purged::read(&*shared.env, &shared.options.data_dir, id)?;
    let log = replay_log(&shared, id, reached, faults)?;
    // Cannot fail: recovery runs once.
    let _ = shared.log.set(log);
    Ok((shared, lock))
}

fn stored_id(env: &dyn Env, data_dir: &Path) -> Result<Option<Uuid>> {
    let path = data_dir.join(ID_FILE);
    if !env.exists(&path) {
        return Ok(None);
    }
    let bytes = env.read_all(&path, ID_BYTES_MAX)?;
    let text = String::from_utf8_lossy(&bytes);
    text.trim().parse().map(Some).map_err(|_| {
        Error::Refused(format!(
            "{} should hold the id of this node as a UUID, and holds {:?}; restore it",
            path.display(),
            text.trim()
        ))
    })
}

pub(crate) fn write_id(env: &dyn Env, data_dir: &Path, id: Uuid) -> Result<()> {
    Ok(env.write_atomically(&data_dir.join(ID_FILE), format!("{id}\n").as_bytes())?)
}

fn replay_log(
    shared: &Shared,
    id: Uuid,
    reached: Option<Reached>,
    faults: Vec<SchemaFault>,
) -> Result<CommitLog> {
    let options = ilion_commitlog::Options {
        log_id: Some(id),
        known: reached.map(|reached| reached.log),
        record_bytes_max: Some(record_bytes_max(&shared.options)),
        is_stepped: shared.options.is_stepped,
        ..shared.options.commit_log.clone()
    };
    let replayed = replay(shared, faults, |replay| {
        let replay = RefCell::new(replay);
        Ok(CommitLog::open_if(
            shared.env.clone(),
            &shared.options.commitlog_dir,
            options,
            &mut |position, envelope| Ok(replay.borrow_mut().receive(position, &envelope)?),
            &mut || Ok(replay.borrow_mut().finish()?),
        )?)
    });
    let ((log, report), skipped) = replayed.inspect_err(|error| {
        if let Error::Log(ilion_commitlog::Error::Corrupt { .. }) = error {
            tracing::error!(
                "the commit log is damaged where it had been synced: restore the file, or let the setting \
                 commitlog_ignore_replay_errors skip what cannot be read, which is lost then"
            );
        }
    })?;
    let floors = [
        reached.map(|reached| reached.timestamp_micros),
        report.newest_micros,
    ];
    if let Some(floor_micros) = floors.into_iter().flatten().max() {
        shared.raise_clock(floor_micros);
    }
    if report.records > 0 {
        tracing::info!(
            records = report.records,
            bytes = report.bytes,
            skipped,
            "the commit log was replayed"
        );
    }
    // Cannot fail: recovery runs once.
    let _ = shared
        .log_losses
        .set(log_losses::tell(&report, &shared.options.commit_log));
    Ok(log)
}

impl Shared {
    /// Marks the directory as ours after all of it was read, and finishes the transactions that a crash left.
    pub(crate) fn take_over(&self) -> Result<()> {
        let data_dir = &self.options.data_dir;
        if !self.env.exists(&data_dir.join(ID_FILE)) {
            write_id(&*self.env, data_dir, self.id)?;
        }
        for store in self.tables.load().values() {
            if store.set_aside_reason().is_some() {
                continue;
            }
            let indexes = store.indexes();
            for store in indexes.hidden().chain([store]) {
                if std::mem::take(&mut store.left.lock().has_transactions) {
                    finish_transactions(&*self.env, &store.directory)?;
                }
            }
        }
        Ok(())
    }

    /// Makes stores for new tables of the schema, gives changed tables their new schema, and drops the stores of
    /// tables that the schema no longer has.
    pub(crate) fn adopt_tables(&self, schema: &Schema, affected: &Affected) -> Result<()> {
        let mut next = TableMap::default();
        let known = self.tables.load_full();
        let mut found = Vec::new();
        for keyspace in schema.keyspaces.values() {
            let stored = keyspace
                .tables
                .values()
                .filter(|table| table.kind != TableKind::Virtual);
            for table in stored {
                let store = match known.get(&table.id) {
                    Some(store) if !affected.has(table) => {
                        next.insert(table.id, store.clone());
                        continue;
                    }
                    None => self.find_table(table, &mut found)?,
                    Some(store) => {
                        if *store.schema() != **table {
                            store.alter(&*self.env, table.clone(), || self.barrier());
                            self.background.send(Work::Compact(store.clone()));
                            self.forget_cached_table(table.id);
                        }
                        store.clone()
                    }
                };
                if let Err(error) = self.adopt_indexes(keyspace, table, &store, &mut found) {
                    self.set_aside_or_refuse(&store, error)?;
                }
                store.is_logged.store(keyspace.durable_writes, Ordering::Relaxed);
                let is_captured = table.options.cdc && self.options.commit_log.capture.is_some();
                store.is_captured.store(is_captured, Ordering::Relaxed);
                next.insert(table.id, store);
            }
        }
        self.open_found(found)?;
        let gone: Vec<_> = known
            .values()
            .filter(|store| !next.contains_key(&store.id))
            .cloned()
            .collect();
        let (kept, gone): (Vec<_>, Vec<_>) = gone
            .into_iter()
            .partition(|store: &Arc<TableStore>| self.faults.has(&store.schema()));
        next.extend(kept.into_iter().map(|store| (store.id, store)));
        self.tables.store(Arc::new(next));
        for store in gone {
            // Only logged: the table is dropped even if its files cannot be removed.
            if let Err(error) = self.drop_table(&store) {
                let directory = store.directory().display();
                tracing::warn!(?store, %directory, %error, "files of a dropped table are left; remove its directory");
            }
        }
        Ok(())
    }

    /// The store of a table; its SSTables are added to `found`, without those that a crash left unfinished.
    fn find_table(&self, table: &Arc<TableSchema>, found: &mut Vec<FoundSSTable>) -> Result<Arc<TableStore>> {
        let since = self.barrier();
        let options = &self.options;
        let store = Arc::new(TableStore::new(
            &*self.env,
            &options.data_dir,
            table.clone(),
            options.memtable_shards,
            since,
            self.tablets.clone(),
        ));
        let types = check_types(
            format_args!("table {}.{}", table.keyspace, table.name),
            table.every_column().into_iter().map(|column| &column.ty),
        );
        if let Err(error) = types.and_then(|()| self.find_sstables(&store, found)) {
            self.set_aside_or_refuse(&store, error)?;
        }
        Ok(store)
    }

    /// Adds the SSTables in a table's directory to `found`, without those that a crash left unfinished.
    pub(crate) fn find_sstables(&self, store: &Arc<TableStore>, found: &mut Vec<FoundSSTable>) -> Result<()> {
        // Tables whose keys Cassandra orders by their type (its batch log) are not read.
        if store.schema().partitioner(self.options.partitioner) == Partitioner::Local {
            return Ok(());
        }
        let Some(files) = TableFiles::list(&*self.env, &store.directory)? else {
            return Ok(());
        };
        for descriptor in &files.unfinished {
            store.reserve_generation(descriptor.id);
        }
        for listed in files.sstables {
            store.reserve_generation(listed.descriptor.id);
            found.push(FoundSSTable {
                store: store.clone(),
                found: listed,
            });
        }
        if files.directories.iter().any(|name| name == BACKUPS_DIRECTORY) {
            self.reserve_names_of_backups(store)?;
        }
        *store.left.lock() = Left {
            has_transactions: files.has_transactions,
            directories: files.directories,
        };
        Ok(())
    }

    /// Opens SSTables, several at a time, and adds them to their tables.
    fn open_found(&self, found: Vec<FoundSSTable>) -> Result<()> {
        let opened = in_parallel(thread_count(&self.options), &found, |sstable| {
            self.open_found_sstable(&sstable.store.schema(), &sstable.found)
        });
        let mut by_table: Vec<(Arc<TableStore>, Vec<Arc<LiveSSTable>>)> = Vec::new();
        for (FoundSSTable { store, .. }, live) in found.into_iter().zip(opened) {
            let live = match live.and_then(|live| check_file_types(&live).map(|()| live)) {
                Ok(live) => live,
                // A damaged hidden table does not fail the start, since its index can be rebuilt.
                Err(error) if store.schema().key_order.is_some() && error.is_damage() => {
                    tracing::error!(?store, %error, "a file of an index cannot be used; the index is built anew");
                    store.is_damaged.store(true, Ordering::Release);
                    continue;
                }
                Err(error) => {
                    self.set_aside_or_refuse(&store, error)?;
                    continue;
                }
            };
            self.open_attached(&store.schema(), &store.indexes(), &live)?;
            match by_table.last_mut() {
                Some((last, sstables)) if last.id == store.id => sstables.push(live),
                _ => by_table.push((store, vec![live])),
            }
        }
        // A table that is set aside gets no SSTable at all: the missing one may have tombstones for the others.
        by_table.retain(|(store, _)| store.set_aside_reason().is_none());
        for (store, sstables) in by_table {
            store.add_sstables(sstables);
            self.found_debt(&store);
        }
        Ok(())
    }
}

/// An SSTable of a table that is being opened.
pub(crate) struct FoundSSTable {
    store: Arc<TableStore>,
    found: ListedSSTable,
}

pub(crate) fn check_file_types(live: &LiveSSTable) -> Result<()> {
    let header = live.sstable.header();
    let columns = header.statics.iter().chain(&header.regulars);
    let classes = columns
        .map(|column| &column.class)
        .chain(&header.clustering_types);
    check_types(live.sstable.descriptor(), classes.map(|class| &class.ty))
}

fn check_types<'a>(
    place: impl std::fmt::Display,
    mut types: impl Iterator<Item = &'a CqlType>,
) -> Result<()> {
    match types.find_map(CqlType::unknown_class) {
        None => Ok(()),
        Some(class) => Err(Error::Refused(format!(
            "{place} has values of {class}, a type that Ilion does not know; drop the table with the program that made it"
        ))),
    }
}
