//! Change data capture: writes to tables with `cdc = true` are marked in the log, which keeps their segments for consumers.
//!
//! Records of a cluster are in shared logs. A node copies what they change in such tables to its local log, where consumers read it. A
//! replay passes over the copies: a record that was not flushed before a crash is read again from its own log, and is then copied again.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ilion_commitlog::{
    Capture, CaptureStats, Changes, Envelope, Error as LogError, Kind, Position, SegmentId,
};
use ilion_rows::{Mutation, encode_mutation};
use ilion_schema::TableId;

use crate::shared::Shared;
use crate::table_store::TableStore;
use crate::tablet_ends::TabletPosition;
use crate::{Engine, Error, Result};

impl Shared {
    /// Whether mutations change a table with change data capture.
    ///
    /// # Errors
    /// They do, and the space for changes is used up.
    pub(crate) fn admit_captured(&self, mutations: &[Mutation], stores: &[Arc<TableStore>]) -> Result<bool> {
        let mut all = mutations.iter().zip(stores);
        let Some((captured, _)) = all.find(|(_, store)| store.is_captured.load(Ordering::Relaxed)) else {
            return Ok(false);
        };
        self.admit_captured_of(&captured.table.keyspace).map(|()| true)
    }

    /// Refuses changes of tables with change data capture while the space for changes is used up; the error names their keyspace.
    fn admit_captured_of(&self, keyspace: &str) -> Result<()> {
        let admitted = self.log()?.admit_captured();
        admitted.map_err(|error| self.capture_error(error, keyspace))
    }

    /// Copies what a record of a shared log changes in tables with change data capture to the local log, except in tables that have the record
    /// on disk. Requires: `active` of the tables is held.
    pub(crate) fn copy_captured(
        &self,
        position: TabletPosition,
        mutations: &[Mutation],
        stores: &[Arc<TableStore>],
    ) -> Result<()> {
        let is_captured = |store: &TableStore| store.is_captured.load(Ordering::Relaxed);
        let mut captured = mutations
            .iter()
            .zip(stores)
            .filter(|(_, store)| is_captured(store) && !store.has_on_disk(position, self.id))
            .map(|(mutation, _)| mutation)
            .peekable();
        let Some(first) = captured.peek() else {
            return Ok(());
        };
        let keyspace = &first.table.keyspace;
        let mut body = position.offset.to_be_bytes().to_vec();
        captured.for_each(|mutation| encode_mutation(mutation, &mut body));
        let log = self.log()?;
        // The record is in the log of the cluster, so it is applied even if the space is used up, as long as it is not exceeded by far.
        log.find_capture_space();
        let appended = log.append(&Envelope {
            kind: Kind::Applied,
            tablet: position.tablet,
            schema_epoch: self.schema.load().epoch,
            time_micros: self.log_time_micros(),
            is_captured: true,
            ..Envelope::mutation(&body)
        });
        appended.map_err(|error| self.capture_error(error, keyspace))?;
        log.sync_later();
        Ok(())
    }

    /// Syncs the copies of the records that a flush is about to put on disk: they are not read again afterwards. Also for a table whose changes
    /// are captured no more: its memtable may have such records.
    pub(crate) fn sync_copies(&self) -> Result<()> {
        match self.tablets.is_used() && self.options.commit_log.capture.is_some() {
            true => Ok(self.log()?.sync()?),
            false => Ok(()),
        }
    }

    /// The error of the log, as a writer to this keyspace gets it.
    pub(crate) fn capture_error(&self, error: LogError, keyspace: &str) -> Error {
        let LogError::CaptureFull { used_bytes } = error else {
            return error.into();
        };
        let capture = self.options.commit_log.capture.as_ref();
        let dir = capture.map_or(Path::new(""), |capture| &capture.dir);
        // Compat: Cassandra's message.
        Error::CaptureFull(format!(
            "Rejecting mutation to keyspace {keyspace}. Free up space in {} by processing CDC logs. Total CDC bytes on disk is \
             {used_bytes}.",
            dir.display()
        ))
    }
}

impl Engine {
    /// Refuses a change of a table with change data capture while the space for changes is used up: before the change is logged in a cluster.
    ///
    /// # Errors
    /// [`Error::CaptureFull`].
    pub fn admit_capture(&self, table: TableId) -> Result<()> {
        match self.shared.table(table) {
            Some(store) if store.is_captured.load(Ordering::Relaxed) => {
                self.shared.admit_captured_of(&store.schema().keyspace)
            }
            _ => Ok(()),
        }
    }

    /// How changes are captured; `None` if change data capture is off.
    pub fn capture(&self) -> Option<&Capture> {
        self.shared.options.commit_log.capture.as_ref()
    }

    /// The captured records from a position on; see [`ilion_commitlog::CommitLog::changes`].
    ///
    /// # Errors
    /// Change data capture is off, or changes after the position were dropped.
    pub fn changes(&self, from: Position) -> Result<Changes> {
        Ok(self.shared.log()?.changes(from)?)
    }

    /// The position up to which captured records can be read now.
    ///
    /// # Errors
    /// The log is still being replayed.
    pub fn end_of_changes(&self) -> Result<Position> {
        Ok(self.shared.log()?.synced())
    }

    /// Returns when there may be changes beyond the position, or after `at_most`.
    ///
    /// # Errors
    /// The log is still being replayed.
    pub fn wait_for_changes(&self, beyond: Position, at_most: Duration) -> Result<()> {
        self.shared.log()?.wait_for_changes(beyond, at_most);
        Ok(())
    }

    /// Removes captured segments below `before`; see [`ilion_commitlog::CommitLog::release_captured`].
    ///
    /// # Errors
    /// Change data capture is off, or a file cannot be removed.
    pub fn release_changes(&self, before: SegmentId) -> Result<(u64, u64)> {
        Ok(self.shared.log()?.release_captured(before)?)
    }

    /// Counts of captured segments; `None` if change data capture is off.
    pub fn capture_stats(&self) -> Option<CaptureStats> {
        self.shared.log.get()?.capture_stats()
    }
}
