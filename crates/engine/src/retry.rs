//! Shortages: retries work that failed because disk space, file descriptors or memory are used up.
//!
//! A flush that fails for such a reason changes nothing: its files are removed and the memtable stays. The tick thread tries it
//! again, soon at first and then less and less often. Until it succeeds, writes are accepted as long as memtables have room, and
//! are refused (they do not wait) when memtables are full. Any other failure of a flush stops writes for good
//! ([`Shared::stop_writes`]), and so does a failed sync: see [`ilion_env::Error::is_shortage`].

use std::path::PathBuf;
use std::sync::Arc;

use ilion_sstable::{CommittedTransaction, Transaction, finish_transaction};

use crate::live_sstable::LiveSSTable;
use crate::shared::Shared;
use crate::stall::{LogHold, Removal};
use crate::table_store::TableStore;
use crate::work::Work;
use crate::{Error, Result};

impl Shared {
    /// Handles a failed flush: after a shortage it is retried, after any other error writes stop for good.
    pub(crate) fn flush_failed(&self, store: &Arc<TableStore>, error: &Error) {
        if !error.is_shortage() {
            return self.stop_writes(error);
        }
        let mut state = self.stall.lock();
        let is_known = state.tables.iter().any(|known| known.id == store.id);
        state.reason = error.to_string();
        if !is_known {
            state.tables.push(store.clone());
            tracing::error!(?store, %error, "a flush failed; it is tried again automatically, and no data is lost meanwhile");
        }
        drop(state);
        self.budget.stall();
    }

    /// Records that a flush of the table succeeded.
    pub(crate) fn flush_succeeded(&self, store: &Arc<TableStore>) {
        let mut state = self.stall.lock();
        let before = state.tables.len();
        state.tables.retain(|known| known.id != store.id);
        if state.tables.len() < before {
            tracing::info!(?store, "the flush that failed before has succeeded");
            if state.tables.is_empty() {
                self.budget.go_on();
            }
        }
    }

    /// Why flushes fail for now; `None` if they do not.
    pub(crate) fn stalled(&self) -> Option<String> {
        let state = self.stall.lock();
        (!state.tables.is_empty()).then(|| state.reason.clone())
    }

    /// Handles a failed build of an index; returns true if it is tried again.
    pub(crate) fn build_failed(&self, store: &Arc<TableStore>, index: &str, error: &Error) -> bool {
        let is_retried = error.is_shortage() && !self.background.is_stopping();
        if is_retried {
            let build = (store.clone(), index.to_owned());
            self.stall.lock().builds.push(build);
        }
        is_retried
    }

    /// Counts a tick, and retries stalled work if that is due.
    pub(crate) fn retry_stalled(&self) {
        let mut state = self.stall.lock();
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

    /// Removes the files of SSTables in a directory for good: now, or later if that fails.
    pub(crate) fn remove_one_by_one(
        &self,
        directory: PathBuf,
        mut left: Vec<Arc<LiveSSTable>>,
        hold: Option<Arc<LogHold>>,
    ) {
        left.retain(|live| !self.remove_now(live));
        let synced = self.env.sync_dir(&directory);
        // Without a synced directory, a power loss may bring the files back: then the log must not be trimmed.
        let may_come_back = hold.is_some() && synced.is_err_and(|error| !error.is_not_found());
        if !left.is_empty() || may_come_back {
            let removal = Removal {
                directory,
                left,
                hold,
            };
            self.stall.lock().removals.push(removal);
        }
    }

    /// Aborts a transaction. Files that cannot be removed now are removed later.
    pub(crate) fn abort(&self, transaction: Transaction) {
        let log = transaction.path().to_path_buf();
        let directory = log.parent().map(PathBuf::from).unwrap_or_default();
        if let Err(error) = transaction.abort() {
            tracing::warn!(%error, "files of a transaction that failed cannot be removed; this is tried again");
            self.stall.lock().transactions.push((directory, log));
        }
    }

    fn finish_aborted(&self, directory: PathBuf, log: PathBuf) {
        // The table may have been dropped.
        if self.env.exists(&log) && finish_transaction(&*self.env, &directory, &log).is_err() {
            self.stall.lock().transactions.push((directory, log));
        }
    }

    /// Commits a transaction, or aborts it if that fails. If it is unknown whether the COMMIT is on disk, writes stop for good: the
    /// next start finds the old files or the new ones, so no later change may depend on either.
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
