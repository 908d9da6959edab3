//! Syncs the log, answers callbacks, and closes the log.

use std::time::Duration;

use parking_lot::MutexGuard;

use crate::state::{Shared, Spare, State};
use crate::{Error, Position, Result};

impl Shared {
    /// Requests a sync and returns when everything below the position is synced.
    pub(crate) fn wait_synced(&self, state: &mut MutexGuard<'_, State>, upto: Position) -> Result<()> {
        state.counts.waiters += 1;
        let failed_before = state.failed_writes;
        let outcome = loop {
            if state.synced >= upto {
                break Ok(());
            }
            if let Err(error) = self.check_open(state) {
                break Err(error);
            }
            if let Some(error) = &state.shortage
                && state.failed_writes > failed_before
                && state.written < upto
            {
                break Err(error.clone().into());
            }
            if self.options.is_stepped {
                // The next iteration sees the error in the state, as it would see one of the sync thread.
                let _ = MutexGuard::unlocked(state, || self.sync_once());
                continue;
            }
            if !state.is_sync_wanted {
                state.is_sync_wanted = true;
                self.sync_due.notify_one();
            }
            self.progress.wait(state);
        };
        state.counts.waiters -= 1;
        outcome
    }

    /// Compat: writers wait when a sync is late by half a period (`AbstractCommitLogService`, Cassandra 4
    /// and 5).
    pub(crate) fn is_sync_late(&self, state: &State, period_millis: u64) -> bool {
        let allowed = Duration::from_millis(period_millis.saturating_add(period_millis / 2));
        let since = self.env.monotonic_nanos().saturating_sub(state.last_sync_nanos);
        u128::from(since) > allowed.as_nanos()
    }

    /// Writes what is pending and syncs what is written. Only one thread does this at a time. Returns [`Error::Io`] if there is no
    /// space for all of it; even then it syncs the part that was written.
    pub(crate) fn sync_once(&self) -> Result<()> {
        let mut state = self.state.lock();
        if let Some(reason) = &state.poison {
            return Err(Error::Poisoned {
                reason: reason.to_string(),
            });
        }
        let started_nanos = self.env.monotonic_nanos();
        (state.is_sync_wanted, state.is_sync_planned) = (false, false);
        let end = state.end_position();
        let all_written = match self.write_up_to(&mut state, end) {
            held @ (Ok(()) | Err(Error::Io(_))) => held,
            stopped => return stopped,
        };
        let target = state.written;
        let segments = std::mem::take(&mut state.unsynced);
        // Oldest first, so that the durable records are a prefix of the log.
        let synced = MutexGuard::unlocked(&mut state, || {
            segments.iter().try_for_each(|segment| segment.sync())
        });
        match synced {
            Ok(()) => {
                state.synced = target;
                state.last_sync_nanos = started_nanos;
                state.counts.syncs += u64::from(!segments.is_empty());
                self.progress.notify_all();
                all_written
            }
            Err(error) => {
                let reason = error.to_string();
                self.poison(&mut state, &reason);
                Err(Error::Poisoned { reason })
            }
        }
    }

    /// Runs the callbacks whose outcome is known, without the lock.
    pub(crate) fn answer_callbacks(&self) {
        let mut state = self.state.lock();
        let synced = state.synced;
        let poison = state.poison.clone();
        let (shortage, written) = (state.shortage.clone(), state.written);
        let outcome = |position: &Position| match (&poison, &shortage) {
            _ if synced >= position.beyond() => Some(Ok(())),
            (Some(reason), _) => Some(Err(Error::Poisoned {
                reason: reason.to_string(),
            })),
            (None, Some(error)) if written < position.beyond() => Some(Err(error.clone().into())),
            (None, _) => None,
        };
        let mut ready = Vec::new();
        for (position, callback) in std::mem::take(&mut state.callbacks) {
            match outcome(&position) {
                Some(outcome) => ready.push((outcome, callback)),
                None => state.callbacks.push((position, callback)),
            }
        }
        // The records of the remaining callbacks may have been written since the last sync.
        state.is_sync_wanted |= !state.callbacks.is_empty();
        drop(state);
        for (outcome, callback) in ready {
            callback(outcome);
        }
    }

    /// Closes a log whose threads have ended: syncs, seals, runs all callbacks, removes the spare segment.
    pub(crate) fn finish(&self) -> Result<()> {
        let synced = self.sync_once();
        self.answer_callbacks();
        synced?;
        let mut state = self.state.lock();
        let spare = std::mem::replace(&mut state.spare, Spare::Wanted);
        // The records were synced above; the seal's `synced` states this.
        state.push_seal();
        drop(state);
        self.sync_once()?;
        if let Spare::Ready(segment) = spare {
            self.env.remove_file(&segment.path)?;
        }
        Ok(())
    }
}
