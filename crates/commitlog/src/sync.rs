//! From the kernel to the disk, and the end of a log.

use std::time::Duration;

use parking_lot::MutexGuard;

use crate::state::{Shared, Spare, State};
use crate::{Error, Position, Result};

impl Shared {
    /// Asks for a sync and returns when everything below the position is synced.
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

    /// Writes what is pending and syncs what is written. Only one thread does this at a time. [`Error::Io`] if there is no room for
    /// all of it; what was written is synced then.
    pub(crate) fn sync_once(&self) -> Result<()> {
        let mut state = self.state.lock();
        if let Some(reason) = &state.poison {
            return Err(Error::Poisoned {
                reason: reason.to_string(),
            });
        }
        let started_nanos = self.env.monotonic_nanos();
        state.is_sync_wanted = false;
        let end = state.end_position();
        let all_written = match self.write_up_to(&mut state, end) {
            held @ (Ok(()) | Err(Error::Io(_))) => held,
            stopped => return stopped,
        };
        let target = state.written;
        let segments = std::mem::take(&mut state.unsynced);
        // Oldest first: what is durable is a prefix of the log.
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

    /// Runs the callbacks that have their answer, without the lock.
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
        // They may have been written since the sync that could not write them.
        state.is_sync_wanted |= !state.callbacks.is_empty();
        drop(state);
        for (outcome, callback) in ready {
            callback(outcome);
        }
    }

    /// The end of a log whose threads are gone: syncs, seals, answers everybody, removes the spare segment.
    pub(crate) fn finish(&self) -> Result<()> {
        let synced = self.sync_once();
        self.answer_callbacks();
        synced?;
        let mut state = self.state.lock();
        let spare = std::mem::replace(&mut state.spare, Spare::Wanted);
        // Synced before, so this seal claims the truth.
        state.push_seal();
        drop(state);
        self.sync_once()?;
        if let Spare::Ready(segment) = spare {
            self.env.remove_file(&segment.path)?;
        }
        Ok(())
    }
}
