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
        let sharing = shared.topics.sharing;
        let arrivals = Arc::new(Arrivals::new(options.cluster, sharing, options.tail_bytes_max));
        let mut state = arrivals.state.lock();
        for (log, from) in from {
            state.follow(*log, *from);
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
        while !state.has_come() {
            if self.arrivals.come.wait_until(&mut state, deadline).timed_out() {
                break;
            }
        }
        // Checked also while other partitions have records: otherwise a silent one would not be noticed.
        let silent = state
            .following
            .unreachable(Instant::now(), self.unreachable_after);
        if let Some(silent) = silent {
            return Err(TailError::Unreachable(silent));
        }
        let taken = state.take();
        state.make_room();
        taken
    }

    fn follow(&mut self, log: u32, from: u64) {
        let mut state = self.arrivals.state.lock();
        state.follow(log, from);
        state.wake();
    }

    fn leave(&mut self, log: u32) {
        self.arrivals.state.lock().leave(log);
    }
}

impl<K> Drop for Tail<K> {
    fn drop(&mut self) {
        self.task.abort();
    }
}
