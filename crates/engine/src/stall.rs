//! What cannot be done for now, since something is used up: space on the disk, file descriptors, memory.
//!
//! A flush that fails for such a reason changes nothing: its files are removed and the memtable stays. The tick thread tries it
//! again, soon at first and then ever less often. Until one succeeds, writes are taken as long as memtables have room, and
//! are refused (they do not wait) when they are full. Any other failure of a flush stops writes for good
//! ([`Shared::stop_writes`]), and so does a failed sync: see [`ilion_env::Error::is_shortage`].

use std::path::PathBuf;
use std::sync::Arc;

use ilion_commitlog::Position;
use ilion_sstable::{CommittedTransaction, Transaction, finish_transaction};
use parking_lot::Mutex;

use crate::background::Work;
use crate::engine::Shared;
use crate::table_store::TableStore;
use crate::view::LiveSSTable;
use crate::{Error, Result};

/// Ticks between two tries, at most.
const TICKS_MAX: u32 = 16;

/// What is to be tried again.
#[derive(Default)]
pub(crate) struct Stall(Mutex<State>, Holds);

/// Positions from which on the log is kept.
type Holds = Arc<Mutex<Vec<Position>>>;

/// Keeps a record of the log, and what follows, until files are gone of which only that record says that they are.
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
    pub(crate) fn hold_log(&self, from: Position) -> LogHold {
        self.1.lock().push(from);
        let holds = self.1.clone();
        LogHold { from, holds }
    }

    /// From where on the log must be kept, whatever is flushed.
    pub(crate) fn log_held_from(&self) -> Option<Position> {
        self.1.lock().iter().min().copied()
    }
}

/// SSTables of a table that was emptied or dropped, whose files are to be removed.
struct Removal {
    directory: PathBuf,
    left: Vec<Arc<LiveSSTable>>,
    /// The truncation that says so.
    hold: Option<Arc<LogHold>>,
}

#[derive(Default)]
struct State {
    /// Tables whose flush failed and has not succeeded since.
    tables: Vec<Arc<TableStore>>,
    /// Indexes whose build failed.
    builds: Vec<(Arc<TableStore>, String)>,
    /// Logs of transactions that could not be aborted, with their directories.
    transactions: Vec<(PathBuf, PathBuf)>,
    removals: Vec<Removal>,
    /// Why the last flush failed.
    reason: String,
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

    /// Counts a tick. True if everything is to be tried again now.
    fn is_due(&mut self) -> bool {
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

impl Shared {
    /// A flush failed: it is tried again if that may help, and else writes stop for good.
    pub(crate) fn flush_failed(&self, store: &Arc<TableStore>, error: &Error) {
        if !error.is_shortage() {
            return self.stop_writes(error);
        }
        let mut state = self.stall.0.lock();
        let is_known = state.tables.iter().any(|known| known.id == store.id);
        state.reason = error.to_string();
        if !is_known {
            state.tables.push(store.clone());
            tracing::error!(?store, %error, "a flush failed; it is tried again by itself, and nothing is lost meanwhile");
        }
        drop(state);
        self.budget.stall();
    }

    /// Everything of the table is on disk.
    pub(crate) fn flush_succeeded(&self, store: &Arc<TableStore>) {
        let mut state = self.stall.0.lock();
        let before = state.tables.len();
        state.tables.retain(|known| known.id != store.id);
        if state.tables.len() < before {
            tracing::info!(?store, "the flush that failed before has succeeded");
            if state.tables.is_empty() {
                self.budget.go_on();
            }
        }
    }

    /// Why flushes fail for now, if they do.
    pub(crate) fn stalled(&self) -> Option<String> {
        let state = self.stall.0.lock();
        (!state.tables.is_empty()).then(|| state.reason.clone())
    }

    /// A build of an index failed for lack of something; true if it is tried again.
    pub(crate) fn build_failed(&self, store: &Arc<TableStore>, index: &str, error: &Error) -> bool {
        let is_retried = error.is_shortage() && !self.background.is_stopping();
        if is_retried {
            let build = (store.clone(), index.to_owned());
            self.stall.0.lock().builds.push(build);
        }
        is_retried
    }

    /// Counts a tick, and tries again what is due.
    pub(crate) fn retry_stalled(&self) {
        let mut state = self.stall.0.lock();
        if !state.is_due() {
            return;
        }
        let tables = state.tables.clone();
        let builds = std::mem::take(&mut state.builds);
        let transactions = std::mem::take(&mut state.transactions);
        let removals = std::mem::take(&mut state.removals);
        drop(state);
        for removal in removals {
            self.remove_one_by_one(removal.directory, removal.left, removal.hold);
        }
        transactions
            .into_iter()
            .for_each(|(directory, log)| self.finish_aborted(directory, log));
        tables.iter().for_each(|store| self.ask_to_flush(store));
        for (store, index) in builds {
            self.background.send(Work::BuildIndex(store, index));
        }
    }

    /// Removes files of a directory for good, now or later.
    pub(crate) fn remove_one_by_one(
        &self,
        directory: PathBuf,
        mut left: Vec<Arc<LiveSSTable>>,
        hold: Option<Arc<LogHold>>,
    ) {
        left.retain(|live| !self.remove_now(live));
        let synced = self.env.sync_dir(&directory);
        // Whose log may be let go must not come back with a power loss.
        let may_come_back = hold.is_some() && synced.is_err_and(|error| !error.is_not_found());
        if !left.is_empty() || may_come_back {
            let removal = Removal {
                directory,
                left,
                hold,
            };
            self.stall.0.lock().removals.push(removal);
        }
    }

    /// Removes what the transaction has added. What cannot be removed now is removed later.
    pub(crate) fn abort(&self, transaction: Transaction) {
        let log = transaction.path().to_path_buf();
        let directory = log.parent().map(PathBuf::from).unwrap_or_default();
        if let Err(error) = transaction.abort() {
            tracing::warn!(%error, "files of a transaction that failed cannot be removed; this is tried again");
            self.stall.0.lock().transactions.push((directory, log));
        }
    }

    fn finish_aborted(&self, directory: PathBuf, log: PathBuf) {
        // The table may be dropped by now.
        if self.env.exists(&log) && finish_transaction(&*self.env, &directory, &log).is_err() {
            self.stall.0.lock().transactions.push((directory, log));
        }
    }

    /// Commits, or aborts what cannot be committed. If nobody knows whether it is committed, writes stop for good: what the
    /// next start finds is then decided by what is on disk, and nothing may be built on either answer.
    pub(crate) fn commit(&self, transaction: Transaction) -> Result<CommittedTransaction> {
        transaction.commit().map_err(|failed| {
            let error = Error::from(failed.error);
            match failed.transaction {
                Some(transaction) => self.abort(*transaction),
                None => self.stop_writes(&error),
            }
            error
        })
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
