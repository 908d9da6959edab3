//! Change data capture: writes to tables with `cdc = true` are marked in the log, which keeps their segments for consumers.

use std::path::Path;
use std::time::Duration;

use ilion_commitlog::{Capture, CaptureStats, Changes, Error as LogError, Position, SegmentId};

use crate::shared::Shared;
use crate::{Engine, Error, Result};

impl Shared {
    /// Refuses a write to a table with change data capture while the space for changes is used up.
    pub(crate) fn admit_captured(&self, keyspace: &str) -> Result<()> {
        let admitted = self.log()?.admit_captured();
        admitted.map_err(|error| self.capture_error(error, keyspace))
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
