//! [`Tail`]: the records of some logs, for one caller.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ilion_commitlog::{Delivered, SharedTail, TailError};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::arrivals::Arrivals;
use crate::reading::Reading;
use crate::shared::Shared;

/// The records of some logs. Its tasks end when it is dropped.
pub(crate) struct Tail<K> {
    arrivals: Arc<Arrivals>,
    task: JoinHandle<()>,
    unreachable_after: Duration,
    /// Keeps the runtime alive.
    _keeper: K,
}

impl<K> Tail<K> {
    pub(crate) fn start(shared: &Arc<Shared>, from: &[(u32, u64)], runtime: &Handle, keeper: K) -> Self {
        let options = &shared.options;
        let arrivals = Arc::new(Arrivals::new(options.cluster, options.tail_bytes_max));
        let mut state = arrivals.state.lock();
        for (log, from) in from {
            state.following.follow(*log, *from, Instant::now());
        }
        drop(state);
        shared.tails.add(&arrivals);
        let reading = Reading::new(Arc::clone(shared), Arc::clone(&arrivals));
        Self {
            arrivals,
            task: runtime.spawn(Arc::new(reading).run()),
            unreachable_after: options.unreachable_after,
            _keeper: keeper,
        }
    }
}

impl<K: Send> SharedTail for Tail<K> {
    fn next(&mut self, wait: Duration) -> Result<Vec<Delivered>, TailError> {
        let deadline = Instant::now() + wait;
        let mut state = self.arrivals.state.lock();
        while !state.following.has_come() {
            if self.arrivals.come.wait_until(&mut state, deadline).timed_out() {
                break;
            }
        }
        // Checked also while other logs have records: otherwise a silent log would not be noticed.
        let silent = state
            .following
            .unreachable(Instant::now(), self.unreachable_after);
        if let Some(silent) = silent {
            return Err(silent);
        }
        let taken = state.following.take();
        state.make_room();
        taken
    }

    fn follow(&mut self, log: u32, from: u64) {
        let mut state = self.arrivals.state.lock();
        state.following.follow(log, from, Instant::now());
        state.wake();
    }

    fn leave(&mut self, log: u32) {
        self.arrivals.state.lock().following.leave(log);
    }
}

impl<K> Drop for Tail<K> {
    fn drop(&mut self) {
        self.task.abort();
    }
}
