//! A consistent moment of the whole node, for a backup: a snapshot of every table, and the stretch of the commit log that makes them
//! consistent.
//!
//! The snapshots are taken one after another. A record that was logged between the first and the last of them may be in some and
//! missing in others; so the log from before the first one up to behind the last one belongs to the backup. A replay of that stretch
//! over the snapshots gives every table as it was at its end. This is the same replay as after a crash: the intervals of the
//! SSTables, and the file `ilion.purged`, show which records they contain.
//!
//! ```text
//! <commit log>/backup/ilion-1-<n>.log     links of the stretch
//! <table>/snapshots/ilion-backup/         links of the SSTables
//! ```
//! Only one such moment exists at a time. It stays until it is ended, or until the next one begins, so that tools that are killed
//! leave at most one.

use std::path::PathBuf;

use ilion_commitlog::{CommitLog, Position, SegmentId};
use ilion_schema::TableId;
use ilion_schema::describe::describe_keyspace;
use uuid::Uuid;

use crate::snapshots::{SnapshotChoice, SnapshotMemtables, SnapshotOrder};
use crate::{Engine, Error, Result};

/// Tag of the snapshots.
const TAG: &str = "ilion-backup";
/// Directory of the links, inside the directory of the commit log.
const LOG_DIRECTORY: &str = "backup";
/// Number of tries if tables are dropped while the snapshots are taken.
const TRIES_MAX: usize = 5;

/// A moment of the whole node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupPoint {
    /// The id of the node; its log and its SSTables have the same id.
    pub id: Uuid,
    /// Class of the partitioner.
    pub partitioner: &'static str,
    /// The first segment of the stretch.
    pub log_from: SegmentId,
    /// The end of the stretch, which is the moment.
    pub log_to: Position,
    /// The time of the moment, microseconds since 1970: no record of the stretch was logged later.
    pub at_micros: i64,
    /// All writes that were acknowledged before this time, microseconds since 1970, are in the backup.
    pub covered_micros: i64,
    /// The directory with the segments of the stretch.
    pub log_directory: PathBuf,
    /// The contents of `ilion.purged`: what a replay of the segments leaves out. For [`crate::continue_log`].
    pub purged: String,
    /// The directory in which sealed segments are archived; `None` without an archive.
    pub archive_directory: Option<PathBuf>,
    /// The keyspaces, without those of the system.
    pub keyspaces: Vec<BackupKeyspace>,
    /// The tables, those of the system included.
    pub tables: Vec<BackupTable>,
}

/// A keyspace of a [`BackupPoint`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupKeyspace {
    /// Its name.
    pub name: String,
    /// The statement that creates it.
    pub statement: String,
}

/// A table of a [`BackupPoint`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupTable {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: TableId,
    /// The directory of the snapshot.
    pub directory: PathBuf,
}

/// The result of [`Engine::archive_log`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedLog {
    /// The id of the node; its log has the same id.
    pub id: Uuid,
    /// The directory of the archive.
    pub directory: PathBuf,
    /// All writes that were acknowledged before this time, microseconds since 1970, are in a segment of the archive, or were in one
    /// that was removed from the archive.
    pub covered_micros: i64,
}

/// The end of the log, which is now the start of a segment.
struct SegmentEnd {
    to: Position,
    /// All writes that were acknowledged before this time are below `to`.
    covered_micros: i64,
    /// No record below `to` was logged after this time.
    at_micros: i64,
}

impl Engine {
    /// Takes a moment of the whole node. Everything that was acknowledged before the call is in it. Ends the previous moment, if there
    /// is one.
    ///
    /// # Errors
    /// A table is set aside, writes are refused, or the operating system returned an error.
    pub fn begin_backup(&self) -> Result<BackupPoint> {
        let shared = &self.shared;
        shared.check_writable()?;
        if let Some(table) = self.set_aside().first() {
            return Err(Error::Refused(format!(
                "a backup would not be whole: {table}; repair or drop it, or take snapshots of the other tables"
            )));
        }
        self.end_backup()?;
        let log = shared.log()?;
        let from = log.barrier();
        shared.snapshots.hold_log(Some(from));
        let point = self.take_point(log, from);
        shared.snapshots.hold_log(None);
        // Trims the segments that were held back meanwhile.
        shared.trim_log()?;
        point.inspect_err(|_| {
            if let Err(error) = self.end_backup() {
                tracing::warn!(%error, "what a failed backup left cannot be removed; the next one removes it");
            }
        })
    }

    /// Removes the snapshots and links of [`Self::begin_backup`].
    ///
    /// # Errors
    /// The operating system returned an error.
    pub fn end_backup(&self) -> Result<()> {
        let shared = &self.shared;
        self.clear_snapshots(&SnapshotChoice {
            tag: Some(TAG.to_owned()),
            ..SnapshotChoice::default()
        })?;
        let directory = shared.options.commitlog_dir.join(LOG_DIRECTORY);
        if shared.env.exists(&directory) {
            shared.env.remove_dir_all(&directory)?;
        }
        Ok(())
    }

    /// Ends the active segment of the log and archives all segments before the new one.
    ///
    /// # Errors
    /// The log has no archive, or a segment cannot be archived.
    pub fn archive_log(&self) -> Result<ArchivedLog> {
        let log = self.shared.log()?;
        let Some(directory) = log.archive_dir() else {
            return Err(Error::Refused(
                "the commit log has no archive: name one with the setting commitlog_archive_directory"
                    .to_owned(),
            ));
        };
        let end = self.end_segment(log)?;
        log.archive()?;
        Ok(ArchivedLog {
            id: self.shared.id,
            directory: directory.to_path_buf(),
            covered_micros: end.covered_micros,
        })
    }

    /// Ends the active segment.
    fn end_segment(&self, log: &CommitLog) -> Result<SegmentEnd> {
        // A write that is acknowledged before this time is already appended.
        let covered_micros = self.shared.log_time_micros();
        log.rotate()?;
        log.sync()?;
        Ok(SegmentEnd {
            to: Position {
                segment: log.barrier().segment,
                offset: 0,
            },
            covered_micros,
            at_micros: self.shared.log_time_micros(),
        })
    }

    fn take_point(&self, log: &CommitLog, from: Position) -> Result<BackupPoint> {
        // While this lock is held, a compaction that would leave no SSTable waits. So the list has what was purged before the first snapshot,
        // and nothing that is purged between two of them: a restore must replay such deletions, since the rows may be in a snapshot.
        let purged = self.shared.purged.lock();
        let tables = self.snapshot_all()?;
        self.link_log(log, from, tables, purged.print(self.shared.id))
    }

    fn snapshot_all(&self) -> Result<Vec<BackupTable>> {
        let mut tries = 1;
        loop {
            let tables = self.tables();
            let order = SnapshotOrder {
                tag: TAG.to_owned(),
                tables: tables.iter().map(|store| store.schema().id).collect(),
                ttl_secs: None,
                memtables: SnapshotMemtables::Flushed,
            };
            match self.snapshot(&order) {
                Ok(()) => {}
                // A table was dropped between the list of tables and its snapshot.
                Err(Error::Refused(_)) if tries < TRIES_MAX => {
                    tries += 1;
                    continue;
                }
                Err(error) => return Err(error),
            }
            let taken = self.snapshots()?.into_iter().filter(|facts| facts.tag == TAG);
            return Ok(taken
                .map(|facts| BackupTable {
                    keyspace: facts.keyspace,
                    name: facts.table,
                    id: facts.table_id,
                    directory: facts.directory,
                })
                .collect());
        }
    }

    fn link_log(
        &self,
        log: &CommitLog,
        from: Position,
        tables: Vec<BackupTable>,
        purged: String,
    ) -> Result<BackupPoint> {
        let shared = &self.shared;
        let env = &*shared.env;
        let end = self.end_segment(log)?;
        let log_to = end.to;
        let log_directory = shared.options.commitlog_dir.join(LOG_DIRECTORY);
        env.create_dir_all(&log_directory)?;
        for entry in env.list(&shared.options.commitlog_dir)? {
            let id = SegmentId::of_file_name(&entry.name);
            if id.is_some_and(|id| id >= from.segment && id < log_to.segment) {
                let segment = shared.options.commitlog_dir.join(&entry.name);
                env.hard_link(&segment, &log_directory.join(&entry.name))?;
            }
        }
        env.sync_dir(&log_directory)?;
        if log.archive_dir().is_some() {
            log.archive()?;
        }
        let schema = self.schema();
        let keyspaces = schema.keyspaces.values();
        let keyspaces = keyspaces.filter(|keyspace| !ilion_schema::is_system_keyspace(&keyspace.name));
        Ok(BackupPoint {
            id: shared.id,
            partitioner: shared.options.partitioner.class_name(),
            log_from: from.segment,
            log_to,
            covered_micros: end.covered_micros,
            at_micros: end.at_micros,
            log_directory,
            purged,
            archive_directory: log.archive_dir().map(ToOwned::to_owned),
            keyspaces: keyspaces
                .map(|keyspace| BackupKeyspace {
                    name: keyspace.name.clone(),
                    statement: describe_keyspace(keyspace),
                })
                .collect(),
            tables,
        })
    }
}
