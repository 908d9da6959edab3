//! The pace of compactions, and stopping them.
//!
//! After each stretch that is read of a source (`ilion_compaction::Watched`), the task's progress is counted, the [`Pacer`] may pause it,
//! and the read of a stopped task ends with an error.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ilion_compaction::Watch;
use ilion_env::Env;
use ilion_rows::ReadError;
use parking_lot::{Condvar, Mutex};

use crate::tasks::Task;

/// Unused time that a later read may use.
const CREDIT_NANOS: u64 = 100_000_000;
/// Longest pause, so that a change of the limit takes effect soon.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The limit that all compactions share.
pub(crate) struct Pacer {
    env: Arc<dyn Env>,
    /// Bytes a second; 0 is no limit.
    limit: AtomicU64,
    /// The limit is raised by this many thousandths; `u64::MAX` is no limit.
    raised: AtomicU64,
    state: Mutex<State>,
    stopping: Condvar,
}

#[derive(Default)]
struct State {
    /// When all bytes so far would have been read at the limited rate.
    free_nanos: u64,
    is_stopping: bool,
}

impl Pacer {
    pub(crate) fn new(env: Arc<dyn Env>, limit: Option<u64>) -> Self {
        Self {
            env,
            limit: AtomicU64::new(limit.unwrap_or(0)),
            raised: AtomicU64::new(0),
            state: Mutex::default(),
            stopping: Condvar::new(),
        }
    }

    /// Bytes a second; `None` is no limit.
    pub(crate) fn limit(&self) -> Option<u64> {
        Some(self.limit.load(Ordering::Relaxed)).filter(|limit| *limit > 0)
    }

    pub(crate) fn set_limit(&self, limit: Option<u64>) {
        self.limit.store(limit.unwrap_or(0), Ordering::Relaxed);
        self.state.lock().free_nanos = 0;
        self.stopping.notify_all();
    }

    /// Raises the limit because compactions are behind; `share` is their debt as a share of the highest tolerated debt.
    pub(crate) fn press(&self, share: f64) {
        self.raised.store(raise(share), Ordering::Relaxed);
    }

    /// Pauses the caller as the limit requires.
    fn take(&self, bytes: u64) {
        let limit = self.limit.load(Ordering::Relaxed);
        let raised = self.raised.load(Ordering::Relaxed);
        if limit == 0 || raised == u64::MAX {
            return;
        }
        let rate = u128::from(limit) * u128::from(1000 + raised) / 1000;
        let cost = u128::from(bytes) * 1_000_000_000 / rate.max(1);
        let now = self.env.monotonic_nanos();
        let mut state = self.state.lock();
        let start = state.free_nanos.max(now.saturating_sub(CREDIT_NANOS));
        state.free_nanos = start.saturating_add(u64::try_from(cost).unwrap_or(u64::MAX));
        let pause = Duration::from_nanos(state.free_nanos.saturating_sub(now)).min(PAUSE_MAX);
        if !state.is_stopping && !pause.is_zero() {
            self.stopping.wait_for(&mut state, pause);
        }
    }

    /// Stops all compactions for good.
    pub(crate) fn stop(&self) {
        self.state.lock().is_stopping = true;
        self.stopping.notify_all();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.state.lock().is_stopping
    }

    /// Ends all pauses, so that a stopped task ends soon.
    pub(crate) fn wake(&self) {
        self.stopping.notify_all();
    }
}

/// Thousandths by which the limit is raised: at half of the tolerated debt it is doubled, at all of it there is no limit.
fn raise(share: f64) -> u64 {
    if share >= 1.0 {
        return u64::MAX;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share below 1 gives a small positive number"
    )]
    let raised = (share.max(0.0) / (1.0 - share) * 1000.0) as u64;
    raised
}

/// Paces a source of a compaction, and ends it if the compaction was stopped.
pub(crate) struct Pace {
    pacer: Arc<Pacer>,
    task: Arc<Task>,
}

impl Pace {
    /// The pace of a source of a task.
    pub(crate) fn of(pacer: &Arc<Pacer>, task: &Arc<Task>) -> Self {
        Self {
            pacer: pacer.clone(),
            task: task.clone(),
        }
    }
}

impl Watch for Pace {
    fn look(&mut self, bytes: u64) -> Result<(), ReadError> {
        self.task.done_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.pacer.take(bytes);
        if self.task.is_stopped() || self.pacer.is_stopping() {
            return Err(ReadError::Aborted("the compaction was stopped"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_with_the_backlog_and_lifted_at_last() {
        assert_eq!(
            [raise(0.0), raise(0.5), raise(0.9)].map(|raised| raised / 100),
            [0, 10, 90]
        );
        assert_eq!(raise(1.0), u64::MAX);
    }
}
