//! Removing all data of a table: TRUNCATE, and DROP TABLE.
//!
//! If the settings require it, a snapshot is taken first (`snapshots`). A truncation is a record in the log with the names of the
//! removed SSTables. A replay repeats it: memtables are emptied, and the named SSTables are removed if they still exist.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ilion_commitlog::{Envelope, Kind, Position};
use ilion_schema::TableId;
use ilion_sstable::{Transaction, TransactionKind};
use uuid::Uuid;

use crate::intervals::intervals_of;
use crate::live_sstable::LiveSSTable;
use crate::shared::Shared;
use crate::stall::LogHold;
use crate::table_store::{Active, TableStore};
use crate::tablet_ends::is_of_tablet;
use crate::{Engine, Error, Result};

/// Encodes the body of a truncate record: table id, then the base names of its SSTables, each with a line feed. Names in hidden tables
/// begin with the name of their directory and a slash.
fn encode(table: TableId, gone: &[Arc<LiveSSTable>]) -> Vec<u8> {
    let mut body = table.0.as_bytes().to_vec();
    for live in gone {
        body.extend_from_slice(live.descriptor().base_name().as_bytes());
        body.push(b'\n');
    }
    body
}

fn decode(body: &[u8]) -> Result<(TableId, Vec<&str>)> {
    let malformed = || Error::Refused("a truncate record of the commit log does not decode".to_owned());
    let (id, names) = body.split_first_chunk::<16>().ok_or_else(malformed)?;
    let names = std::str::from_utf8(names).map_err(|_| malformed())?;
    Ok((TableId(Uuid::from_bytes(*id)), names.lines().collect()))
}

impl Engine {
    /// Whether a virtual table can be truncated.
    pub fn is_clearable(&self, table: TableId) -> bool {
        let provider = self.shared.virtual_tables.provider(table);
        provider.is_some_and(|table| table.is_clearable())
    }

    /// Removes all data of a table, and returns when that is durable.
    ///
    /// # Errors
    /// The table is gone, writes are refused, or the operating system returned an error.
    pub fn truncate(&self, table: TableId) -> Result<()> {
        let shared = &self.shared;
        if shared
            .virtual_tables
            .provider(table)
            .is_some_and(|table| table.clear())
        {
            return Ok(());
        }
        shared.check_writable()?;
        let store = shared
            .table(table)
            .ok_or_else(|| Error::Refused(format!("table {table} does not exist")))?;
        store.check_usable()?;
        let takes_snapshot = shared.prepare_truncated(&store)?;
        let _changing = takes_snapshot.then(|| shared.snapshots.changing.lock());
        let log = shared.log()?;
        // The record must stay in the log until the files are removed, which may be much later.
        let hold = Arc::new(shared.stall.hold_log(log.barrier()));
        let _maintenance = store.maintenance.alone();
        let indexes = store.indexes();
        let hidden: Vec<&Arc<TableStore>> = indexes.hidden().collect();
        let _of_hidden: Vec<_> = hidden.iter().map(|hidden| hidden.maintenance.alone()).collect();
        let snapshot = match takes_snapshot {
            true => shared.begin_truncated(&store)?,
            false => None,
        };
        let (position, gone) = {
            let mut active = store.active.write();
            let snapshot = match snapshot {
                // No thread writes to the table meanwhile, so the snapshot has exactly the data that is removed.
                Some(snapshot) => {
                    let of_hidden: Vec<_> = hidden.iter().map(|hidden| hidden.active.write()).collect();
                    let tables = hidden
                        .iter()
                        .zip(&of_hidden)
                        .map(|(hidden, active)| (&***hidden, &**active));
                    let tables: Vec<(&TableStore, &Active)> =
                        [(&*store, &*active)].into_iter().chain(tables).collect();
                    shared.finish_truncated(&store, snapshot, &tables)?
                }
                None => None,
            };
            let mut body = encode(table, &store.view().sstables);
            hidden.iter().for_each(|hidden| encode_hidden(hidden, &mut body));
            // Logged before it is applied: if the disk is full, the truncation must not take effect.
            let written = log.append_written(&Envelope {
                kind: Kind::Truncate,
                time_micros: shared.log_time_micros(),
                is_captured: store.is_captured.load(Ordering::Relaxed),
                ..Envelope::mutation(&body)
            });
            let position = written
                .map_err(|error| shared.capture_error(error, &store.schema().keyspace))
                .inspect_err(|error| {
                    if let Some(snapshot) = &snapshot {
                        shared.take_back_truncated(snapshot, error);
                    }
                })?;
            let barrier = log.barrier();
            let cleared = store.clear_locked(&*shared.env, &mut active, barrier);
            let mut gone = vec![(&store, cleared)];
            for hidden in hidden {
                let mut active = hidden.active.write();
                gone.push((hidden, hidden.clear_locked(&*shared.env, &mut active, barrier)));
            }
            (position, gone)
        };
        shared.forget_cached_table(table);
        shared.budget.free(gone.iter().map(|(_, (bytes, _))| bytes).sum());
        log.sync_upto(position)?;
        gone.iter()
            .try_for_each(|(store, (_, gone))| shared.remove_sstables(store, gone, Some(&hold)))
    }
}

/// Adds the names of a hidden table's SSTables, with its directory in front.
fn encode_hidden(hidden: &TableStore, body: &mut Vec<u8>) {
    let prefix = prefix_of(hidden);
    for live in &hidden.view().sstables {
        body.extend_from_slice(prefix.as_bytes());
        body.extend_from_slice(live.descriptor().base_name().as_bytes());
        body.push(b'\n');
    }
}

fn prefix_of(hidden: &TableStore) -> String {
    let name = hidden.directory.file_name().unwrap_or_default();
    format!("{}/", name.to_string_lossy())
}

impl Shared {
    /// Removes the files of SSTables that no view has any more: in one transaction, or one by one if there is no space for a transaction
    /// log. Requires: the log or the schema already marks them as removed, so that a start ignores them; `hold` keeps that record in the
    /// log.
    pub(crate) fn remove_sstables(
        &self,
        store: &TableStore,
        gone: &[Arc<LiveSSTable>],
        hold: Option<&Arc<LogHold>>,
    ) -> Result<()> {
        match self.retire_sstables(store, gone) {
            Err(error) if error.is_shortage() => {
                tracing::warn!(?store, %error, "files are removed one by one");
                // Files of SSTables to which only the caller refers are removed at once.
                let of_others = gone.iter().filter(|live| !self.remove_now(live));
                let left = of_others.cloned().collect();
                self.remove_one_by_one(store.directory.clone(), left, hold.cloned());
                Ok(())
            }
            retired => retired,
        }
    }

    /// Removes the files of an SSTable. Returns false if a reader uses them, or if they cannot be removed now.
    pub(crate) fn remove_now(&self, live: &Arc<LiveSSTable>) -> bool {
        Arc::strong_count(live) == 1 && live.descriptor().remove_files(&*self.env).is_ok()
    }

    fn retire_sstables(&self, store: &TableStore, gone: &[Arc<LiveSSTable>]) -> Result<()> {
        if gone.is_empty() {
            return Ok(());
        }
        let mut transaction =
            Transaction::begin(self.env.clone(), &store.directory, TransactionKind::Compaction)?;
        for live in gone {
            transaction.remove(live.descriptor())?;
        }
        let committed = Arc::new(self.commit(transaction)?);
        for live in gone {
            live.retire(committed.clone());
        }
        Ok(())
    }

    /// Drops a table that the schema no longer has, and removes its files.
    pub(crate) fn drop_table(&self, store: &TableStore) -> Result<()> {
        let indexes = store.indexes();
        indexes
            .0
            .iter()
            .try_for_each(|live| self.close_index(store, live))?;
        let _maintenance = store.maintenance.alone();
        store.is_dropped.store(true, Ordering::Release);
        let (bytes, gone) = {
            let mut active = store.active.write();
            store.clear_locked(&*self.env, &mut active, self.barrier())
        };
        self.forget_cached_table(store.id);
        self.budget.free(bytes);
        self.remove_sstables(store, &gone, None)?;
        drop(gone);
        if store.set_aside_reason().is_some() {
            self.remove_unopened(&store.directory)?;
        }
        // Fails if a reader uses files, or if there are snapshots.
        let _ = self.env.remove_dir(&store.directory);
        Ok(())
    }

    /// Removes the SSTables of a dropped table that were never opened.
    pub(crate) fn remove_unopened(&self, directory: &Path) -> Result<()> {
        if !self.env.exists(directory) {
            return Ok(());
        }
        for entry in self.env.list(directory)? {
            // Directories are left, since snapshots stay.
            if !entry.is_dir {
                self.env.remove_file_if_any(&directory.join(&entry.name))?;
            }
        }
        Ok(())
    }

    /// Repeats a truncation. Requires: all records before it are applied.
    pub(crate) fn replay_truncate(&self, position: Position, body: &[u8]) -> Result<()> {
        let (table, names) = decode(body)?;
        let Some(store) = self.table(table) else {
            return Ok(());
        };
        let indexes = store.indexes();
        for hidden in indexes.hidden() {
            let prefix = prefix_of(hidden);
            let names: Vec<&str> = names
                .iter()
                .filter_map(|name| name.strip_prefix(&prefix))
                .collect();
            self.truncate_again(hidden, &names, position)?;
        }
        self.truncate_again(&store, &names, position)
    }

    fn truncate_again(&self, store: &Arc<TableStore>, names: &[&str], position: Position) -> Result<()> {
        let doomed: Vec<Arc<LiveSSTable>> = store
            .view()
            .sstables
            .iter()
            .filter(|live| is_doomed(live, self.id, names, position))
            .cloned()
            .collect();
        let _maintenance = store.maintenance.alone();
        let bytes = store.forget_memtables(&*self.env);
        self.budget.free(bytes);
        store.change_view(|view| {
            let is_kept = |live: &&Arc<LiveSSTable>| !doomed.iter().any(|gone| Arc::ptr_eq(gone, live));
            view.with_sstables(view.sstables.iter().filter(is_kept).cloned().collect())
        });
        let hold = Arc::new(self.stall.hold_log(position));
        self.remove_sstables(store, &doomed, Some(&hold))
    }
}

/// True if all records of an SSTable are older than the truncation. An SSTable that covers no record of the log (it was imported)
/// is removed if the record of the truncation names it.
fn is_doomed(live: &LiveSSTable, id: Uuid, names: &[&str], position: Position) -> bool {
    let place = (position.segment.0, position.offset);
    let mut intervals = intervals_of(&live.sstable, id);
    intervals.retain(|interval| !is_of_tablet(interval));
    if intervals.is_empty() {
        return names.contains(&live.descriptor().base_name().as_str());
    }
    intervals.iter().all(|(_, end)| *end <= place)
}
