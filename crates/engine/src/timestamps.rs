//! Ensures that the timestamps that the node gives never step back, although the clock may.
//!
//! A clock may be set back while the process is down. The node's timestamps after that must be above those from before, or a
//! change would be older than the data that it changes. The newest timestamp from before is known as follows:
//!
//! - each record of the log has the time at which it was appended ([`Shared::log_time_micros`]), which is never below the timestamps
//!   that the node gave so far;
//! - before segments of the log are deleted, and before a memtable that is not logged becomes an SSTable, the newest timestamp is
//!   written to a file (`reached`);
//! - timestamps of clients do not count.

use ilion_commitlog::{CommitLog, Position};

use crate::reached::Reached;
use crate::shared::Shared;

/// A smaller lag of the clock is normal and not logged: many timestamps in one microsecond, or corrections by a time server.
const BEHIND_MICROS_TOLD: i64 = 1_000_000;

impl Shared {
    /// Updates the file, so that the newest timestamp survives the loss of all log segments below the position. A failure is only
    /// logged: it matters only if the clock is set back before the next update.
    pub(crate) fn save_reached(&self, log: &CommitLog, below: Position) {
        let reached = Reached {
            timestamp_micros: self.env.last_unique_micros(),
            log: log.stretch(below),
        };
        let mut saved = self.reached.lock();
        if *saved == Some(reached) {
            return;
        }
        match reached.write(&*self.env, &self.options.data_dir) {
            Ok(()) => *saved = Some(reached),
            Err(error) => tracing::warn!(%error, "the newest timestamp that this node gave was not saved"),
        }
    }

    /// Updates the file when the engine closes.
    pub(crate) fn save_reached_at_end(&self) {
        if let Some(log) = self.log.get()
            && log.sync().is_ok()
        {
            self.save_reached(log, Position::START);
        }
    }

    /// The time of a record that is appended now: the clock's time, or the newest timestamp given so far if that is later.
    pub(crate) fn log_time_micros(&self) -> i64 {
        self.env.now_micros().max(self.env.last_unique_micros())
    }

    /// Raises the timestamps that are given from now on above `floor_micros`, and so above those of earlier processes.
    pub(crate) fn raise_clock(&self, floor_micros: i64) {
        self.env.raise_unique_micros(floor_micros);
        let behind_micros = self.clock_behind_micros();
        if behind_micros >= BEHIND_MICROS_TOLD {
            tracing::warn!(
                behind_secs = behind_micros / 1_000_000,
                "the clock stands before the newest timestamp that this node gave: it was set back, or was ahead before. Timestamps \
                 that the node gives continue above that one; those of clients are not changed. Times to live and \
                 the removal of tombstones follow the clock. Correct the clock if it is wrong"
            );
        }
    }

    /// By how many microseconds the clock is behind the newest timestamp given so far; 0 if the clock is ahead.
    pub(crate) fn clock_behind_micros(&self) -> i64 {
        let last_micros = self.env.last_unique_micros();
        last_micros.saturating_sub(self.env.now_micros()).max(0)
    }
}
