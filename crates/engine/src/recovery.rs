//! Opening a data directory: whose it is, what a crash left, what tables there are, what the log holds.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ilion_commitlog::{CommitLog, Position};
use ilion_env::{Env, FileLock};
use ilion_schema::{Schema, TableKind, TableSchema};
use ilion_sstable::{finish_transactions, list_directory};
use ilion_types::Partitioner;
use uuid::Uuid;

use crate::engine::{Shared, TableMap};
use crate::replay::Replay;
use crate::table_store::TableStore;
use crate::{EngineOptions, Error, Result};

/// Held while a process has the data directory open.
const LOCK_FILE: &str = "ilion.lock";
/// Holds the id that ties data directory and commit log to each other.
const ID_FILE: &str = "ilion.id";
const ID_BYTES_MAX: u64 = 64;

/// Opens the directory and replays the log; no thread is running yet when it returns.
pub(crate) fn open(env: Arc<dyn Env>, options: EngineOptions) -> Result<(Shared, Box<dyn FileLock>)> {
    env.create_dir_all(&options.data_dir)?;
    env.create_dir_all(&options.commitlog_dir)?;
    let lock = env.lock(&options.data_dir.join(LOCK_FILE)).map_err(|error| {
        if error.is_locked() {
            Error::InUse(options.data_dir.clone())
        } else {
            error.into()
        }
    })?;
    let id = node_id(&*env, &options.data_dir)?;
    let shared = Shared::new(env, options, id);
    let own = Schema::with_system();
    shared.adopt_tables(&own)?;
    let stored = shared.load_schema_in_part()?;
    shared.adopt_tables(&stored)?;
    shared.schema.store(Arc::new(stored));
    let log = replay_log(&shared, id)?;
    // Recovery runs once.
    let _ = shared.log.set(log);
    Ok((shared, lock))
}

fn node_id(env: &dyn Env, data_dir: &Path) -> Result<Uuid> {
    let path = data_dir.join(ID_FILE);
    if !env.exists(&path) {
        let id = env.random_uuid();
        env.write_atomically(&path, format!("{id}\n").as_bytes())?;
        return Ok(id);
    }
    let bytes = env.read_all(&path, ID_BYTES_MAX)?;
    let text = String::from_utf8_lossy(&bytes);
    text.trim().parse().map_err(|_| {
        Error::Refused(format!(
            "{} should hold the id of this node as a UUID, and holds {:?}; restore it",
            path.display(),
            text.trim()
        ))
    })
}

fn replay_log(shared: &Shared, id: Uuid) -> Result<CommitLog> {
    let options = ilion_commitlog::Options {
        log_id: Some(id),
        ..shared.options.commit_log.clone()
    };
    let mut replay = Replay::new(shared);
    let (log, report) = CommitLog::open(
        shared.env.clone(),
        &shared.options.commitlog_dir,
        options,
        &mut |position, envelope| Ok(replay.receive(position, &envelope)?),
    )?;
    let skipped = replay.finish()?;
    if report.records > 0 {
        tracing::info!(
            records = report.records,
            bytes = report.bytes,
            skipped,
            "the commit log was replayed"
        );
    }
    if let Some(torn) = report.torn_tail {
        tracing::info!(position = %torn.position, "the commit log ended in the middle of a record that was never acknowledged");
    }
    for (file, offset) in report.skipped {
        tracing::error!(file = %file.display(), offset, "damaged commit log records were skipped, as configured");
    }
    Ok(log)
}

impl Shared {
    /// Makes stores for the tables that the schema has and we do not, gives changed tables their new schema, and forgets
    /// those that are gone.
    pub(crate) fn adopt_tables(&self, schema: &Schema) -> Result<()> {
        let mut next = TableMap::default();
        let known = self.tables.load_full();
        for keyspace in schema.keyspaces.values() {
            let stored = keyspace
                .tables
                .values()
                .filter(|table| table.kind != TableKind::Virtual);
            for table in stored {
                let store = match known.get(&table.id) {
                    None => Arc::new(self.open_table(table)?),
                    Some(store) => {
                        if *store.schema() != **table {
                            store.alter(&*self.env, table.clone(), || self.barrier());
                        }
                        store.clone()
                    }
                };
                store.is_logged.store(keyspace.durable_writes, Ordering::Relaxed);
                next.insert(table.id, store);
            }
        }
        let gone: Vec<_> = known
            .values()
            .filter(|store| !next.contains_key(&store.id))
            .cloned()
            .collect();
        self.tables.store(Arc::new(next));
        gone.iter().try_for_each(|store| self.drop_table(store))
    }

    fn open_table(&self, table: &Arc<TableSchema>) -> Result<TableStore> {
        let since = self.barrier();
        let options = &self.options;
        let store = TableStore::new(
            &*self.env,
            &options.data_dir,
            table.clone(),
            options.memtable_shards,
            since,
        );
        // What Cassandra keeps in the order of a type (its batch log) is left alone.
        if table.partitioner(options.partitioner) == Partitioner::Local || !self.env.exists(&store.directory)
        {
            return Ok(store);
        }
        finish_transactions(&*self.env, &store.directory)?;
        let mut sstables = Vec::new();
        for found in list_directory(&*self.env, &store.directory)? {
            store.reserve_generation(found.descriptor.id);
            sstables.push(self.open_sstable(table, &found.descriptor)?);
        }
        store.add_sstables(sstables);
        Ok(store)
    }
}

/// True if an SSTable of the table holds the record already.
pub(crate) fn is_on_disk(intervals: &[ilion_sstable::CommitLogInterval], position: Position) -> bool {
    let place = (position.segment.0, position.offset);
    intervals
        .iter()
        .any(|(start, end)| *start <= place && place < *end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_on_disk_from_the_start_of_an_interval_to_before_its_end() {
        let intervals = [((1, 10), (2, 0)), ((3, 0), (3, 7))];
        let at = |segment, offset| is_on_disk(&intervals, Position::new(segment, offset));
        assert!(!at(1, 9) && at(1, 10) && at(1, 999) && !at(2, 0));
        assert!(at(3, 0) && at(3, 6) && !at(3, 7));
    }
}
