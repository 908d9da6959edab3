//! Threads for long calls, so that a caller need not wait beyond its deadline.
//!
//! A call ends by itself soon after its deadline, since everything that it does is metered (`fuel`). If a call did not end, it would
//! block one of these threads and no other: callers do not wait for it, the number of threads is bounded, and the process exits
//! without waiting for them.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// Largest number of threads. Further calls wait until a thread is free.
const THREADS_MAX: usize = 64;
/// An idle thread ends after this time.
const IDLE_TIME: Duration = Duration::from_secs(10);
/// Stack of a thread in bytes. Scripts may nest functions of the library, each of which takes stack.
const STACK_BYTES: usize = 8 << 20;

type Work = Box<dyn FnOnce() + Send>;

/// Why a call has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The deadline came first.
    Late,
    /// The call panicked, or no thread could be started.
    Broken,
}

/// Threads that are started when they are needed.
pub(crate) struct Threads {
    state: Mutex<State>,
    arrived: Condvar,
    count_max: usize,
}

struct State {
    waiting: VecDeque<Work>,
    idle: usize,
    count: usize,
}

/// The threads of this process.
static THREADS: Threads = Threads::new(THREADS_MAX);

/// Runs `work` on a thread of its own; waits for its result until `deadline`.
pub(crate) fn run_until<T: Send + 'static>(
    deadline: Instant,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Lost> {
    THREADS.run_until(deadline, work)
}

impl Threads {
    const fn new(count_max: usize) -> Self {
        Self {
            state: Mutex::new(State {
                waiting: VecDeque::new(),
                idle: 0,
                count: 0,
            }),
            arrived: Condvar::new(),
            count_max,
        }
    }

    fn run_until<T: Send + 'static>(
        &'static self,
        deadline: Instant,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Lost> {
        let (sender, result) = sync_channel(1);
        self.put(Box::new(move || {
            // If the deadline has passed while the work was in the queue, it is dropped: its caller no longer waits.
            if Instant::now() < deadline {
                let _ = sender.send(work());
            }
        }))?;
        let left = deadline.saturating_duration_since(Instant::now());
        result.recv_timeout(left).map_err(|missing| match missing {
            RecvTimeoutError::Timeout => Lost::Late,
            RecvTimeoutError::Disconnected if Instant::now() >= deadline => Lost::Late,
            RecvTimeoutError::Disconnected => Lost::Broken,
        })
    }

    fn put(&'static self, work: Work) -> Result<(), Lost> {
        let mut state = self.state.lock();
        if state.idle <= state.waiting.len() && state.count < self.count_max {
            let thread = std::thread::Builder::new()
                .name("ilion-function".to_owned())
                .stack_size(STACK_BYTES)
                .spawn(|| self.serve());
            match thread {
                Ok(_) => state.count += 1,
                Err(_) if state.count == 0 => return Err(Lost::Broken),
                // One of the running threads will take the work.
                Err(_) => {}
            }
        }
        state.waiting.push_back(work);
        drop(state);
        self.arrived.notify_one();
        Ok(())
    }

    fn serve(&self) {
        while let Some(work) = self.take() {
            // A panic drops the sender, which the caller notices. The thread goes on with other work.
            let _ = catch_unwind(AssertUnwindSafe(work));
        }
    }

    fn take(&self) -> Option<Work> {
        let mut state = self.state.lock();
        loop {
            if let Some(work) = state.waiting.pop_front() {
                return Some(work);
            }
            state.idle += 1;
            let waited = self.arrived.wait_for(&mut state, IDLE_TIME);
            state.idle -= 1;
            if waited.timed_out() && state.waiting.is_empty() {
                state.count -= 1;
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};
    use std::time::{Duration, Instant};

    use super::{Lost, Threads};

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(600)
    }

    /// Keeps a thread busy until the sender is used or dropped. Work that no thread started in time is dropped, so this retries
    /// until a thread has started it.
    fn occupy(threads: &'static Threads) -> Sender<()> {
        loop {
            let (begin, begun) = channel::<()>();
            let (end, ends) = channel::<()>();
            let soon = Instant::now() + Duration::from_millis(5);
            let lost = threads.run_until(soon, move || {
                begin.send(()).unwrap();
                ends.recv()
            });
            assert!(matches!(lost, Err(Lost::Late)));
            if begun.recv().is_ok() {
                return end;
            }
        }
    }

    #[test]
    fn the_caller_leaves_at_the_deadline_though_the_thread_is_busy() {
        static THREADS: Threads = Threads::new(2);
        let end = occupy(&THREADS);
        assert_eq!(
            THREADS.run_until(later(), || 5),
            Ok(5),
            "the other thread is free"
        );
        end.send(()).unwrap();
    }

    #[test]
    fn no_more_threads_are_started_than_may_be() {
        static THREADS: Threads = Threads::new(1);
        let end = occupy(&THREADS);
        let soon = Instant::now() + Duration::from_millis(1);
        assert_eq!(THREADS.run_until(soon, || 5), Err(Lost::Late));
        assert_eq!(THREADS.state.lock().count, 1);
        end.send(()).unwrap();
        assert_eq!(THREADS.run_until(later(), || 6), Ok(6));
    }

    #[test]
    fn a_panic_is_told_and_costs_no_thread() {
        static THREADS: Threads = Threads::new(1);
        let lost = THREADS.run_until(later(), || -> i32 { panic!("on purpose") });
        assert_eq!(lost, Err(Lost::Broken));
        assert_eq!(THREADS.run_until(later(), || 7), Ok(7));
    }
}
