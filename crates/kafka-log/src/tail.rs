//! [`Tail`]: the records of some logs, for one caller.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ilion_commitlog::{Delivered, SharedTail, TailError};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::reading::Reading;

/// The records of some logs. Its tasks end when it is dropped.
pub(crate) struct Tail<K> {
    reading: Arc<Reading>,
    task: JoinHandle<()>,
    unreachable_after: Duration,
    /// Keeps the runtime alive.
    _keeper: K,
}

impl<K> Tail<K> {
    pub(crate) fn start(
        reading: Reading,
        from: &[(u32, u64)],
        unreachable_after: Duration,
        runtime: &Handle,
        keeper: K,
    ) -> Self {
        let reading = Arc::new(reading);
        let mut state = reading.state.lock();
        for (log, from) in from {
            state.following.follow(*log, *from, Instant::now());
        }
        drop(state);
        let task = runtime.spawn(Arc::clone(&reading).run());
        Self {
            reading,
            task,
            unreachable_after,
            _keeper: keeper,
        }
    }
}

impl<K: Send> SharedTail for Tail<K> {
    fn next(&mut self, wait: Duration) -> Result<Vec<Delivered>, TailError> {
        let deadline = Instant::now() + wait;
        let mut state = self.reading.state.lock();
        while !state.following.has_come() {
            if self.reading.come.wait_until(&mut state, deadline).timed_out() {
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
        let mut state = self.reading.state.lock();
        state.following.follow(log, from, Instant::now());
        state.wake();
    }

    fn leave(&mut self, log: u32) {
        self.reading.state.lock().following.leave(log);
    }
}

impl<K> Drop for Tail<K> {
    fn drop(&mut self) {
        self.task.abort();
    }
}
