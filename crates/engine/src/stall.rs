//! [`Stall`]: work that failed for a shortage and waits until `retry` tries it again.

use std::path::PathBuf;
use std::sync::Arc;

use ilion_commitlog::Position;
use parking_lot::{Mutex, MutexGuard};

use crate::live_sstable::LiveSSTable;
use crate::table_store::TableStore;

/// Maximum number of ticks between two tries.
const TICKS_MAX: u32 = 16;

/// Work to retry, and positions from which on the log is kept for it.
#[derive(Default)]
pub(crate) struct Stall {
    state: Mutex<State>,
    holds: Holds,
}

/// Positions from which on the log is kept.
type Holds = Arc<Mutex<Vec<Position>>>;

/// Keeps the log from a record on, until all files are removed that only this record marks as removed.
pub(crate) struct LogHold {
    from: Position,
    holds: Holds,
}

impl Drop for LogHold {
    fn drop(&mut self) {
        let mut holds = self.holds.lock();
        if let Some(place) = holds.iter().position(|from| *from == self.from) {
            holds.swap_remove(place);
        }
    }
}

impl Stall {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(crate) fn hold_log(&self, from: Position) -> LogHold {
        self.holds.lock().push(from);
        LogHold {
            from,
            holds: self.holds.clone(),
        }
    }

    /// The position from which on the log must not be trimmed.
    pub(crate) fn log_held_from(&self) -> Option<Position> {
        self.holds.lock().iter().min().copied()
    }
}

/// SSTables of a truncated or dropped table, whose files must be removed.
pub(crate) struct Removal {
    pub directory: PathBuf,
    pub left: Vec<Arc<LiveSSTable>>,
    /// Keeps the record of the truncation in the log.
    pub hold: Option<Arc<LogHold>>,
}

/// The work to retry.
#[derive(Default)]
pub(crate) struct State {
    /// Tables whose flush failed and has not succeeded since.
    pub tables: Vec<Arc<TableStore>>,
    /// Indexes whose build failed.
    pub builds: Vec<(Arc<TableStore>, String)>,
    /// Logs of transactions that could not be aborted, with their directories.
    pub transactions: Vec<(PathBuf, PathBuf)>,
    pub removals: Vec<Removal>,
    /// Why the last flush failed.
    pub reason: String,
    /// Ticks until the next try, and between tries.
    ticks_left: u32,
    ticks_between: u32,
}

impl State {
    fn is_empty(&self) -> bool {
        self.tables.is_empty()
            && self.builds.is_empty()
            && self.transactions.is_empty()
            && self.removals.is_empty()
    }

    /// Counts a tick. Returns true if all work must be retried now.
    pub(crate) fn is_due(&mut self) -> bool {
        if self.is_empty() {
            (self.ticks_left, self.ticks_between) = (0, 0);
            return false;
        }
        self.ticks_left = self.ticks_left.saturating_sub(1);
        if self.ticks_left > 0 {
            return false;
        }
        self.ticks_between = (self.ticks_between * 2).clamp(1, TICKS_MAX);
        self.ticks_left = self.ticks_between;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_become_rarer_and_begin_anew_when_all_is_done() {
        let mut state = State::default();
        assert!(!state.is_due());
        state.transactions.push(Default::default());
        let due: Vec<u32> = (1..=64).filter(|_| state.is_due()).collect();
        assert_eq!(due, [1, 2, 4, 8, 16, 32, 48, 64]);
        state.transactions.clear();
        assert!(!state.is_due());
        state.transactions.push(Default::default());
        assert!(state.is_due());
    }
}
