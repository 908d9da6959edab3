//! The threads that check logins, and the order in which they take them: [`LoginTurns`].
//!
//! A thread begins a new login at once. This decides logins with a certificate, or with a password that was right before. Other logins
//! wait in a [`LoginQueue`] until their passwords are hashed, as far as the [`FailureShare`] allows. If there are several threads, one of
//! them never hashes, so that known passwords do not wait for the hashes of others.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use ilion_auth::{FailureShare, LoginQueue, RunningCheck, Standing};
use ilion_env::Env;
use parking_lot::{Condvar, Mutex};

/// Most logins that wait to be begun.
const ARRIVED_MAX: usize = 1024;

/// What a thread does next.
pub(crate) enum Step<T> {
    /// Begins a login.
    Begin(T),
    /// Checks a password against its slow hash, then calls [`LoginTurns::finish`].
    Hash(T, RunningCheck),
    /// Refuses logins that have waited for too long.
    GiveUp(Vec<T>),
}

/// Logins that wait for a thread.
pub(crate) struct LoginTurns<T> {
    /// Locked only while logins are added or removed.
    waiting: Mutex<Waiting<T>>,
    changed: Condvar,
    clock: Arc<dyn Env>,
    thread_count: usize,
}

struct Waiting<T> {
    arrived: VecDeque<T>,
    to_hash: LoginQueue<T>,
    share: FailureShare,
    /// Number of threads that are hashing.
    hashing: usize,
    is_closed: bool,
}

impl<T> LoginTurns<T> {
    /// Creates an empty queue. `thread_count` is the number of threads that `start_threads` will start.
    pub fn new(clock: Arc<dyn Env>, thread_count: usize) -> Arc<Self> {
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
        Arc::new(Self {
            waiting: Mutex::new(Waiting {
                arrived: VecDeque::new(),
                to_hash: LoginQueue::default(),
                share: FailureShare::new(processors),
                hashing: 0,
                is_closed: false,
            }),
            changed: Condvar::new(),
            clock,
            thread_count: thread_count.max(1),
        })
    }

    /// Adds a new login. Returns the login if too many wait, else `None`.
    pub fn arrive(&self, login: T) -> Option<T> {
        let mut waiting = self.waiting.lock();
        if waiting.arrived.len() >= ARRIVED_MAX {
            return Some(login);
        }
        waiting.arrived.push_back(login);
        drop(waiting);
        self.changed.notify_one();
        None
    }

    /// Adds a login whose password must be hashed. If the queue is full, returns the login to refuse: this one or another.
    pub fn wait(&self, from: IpAddr, standing: Standing, login: T) -> Option<T> {
        let now = self.clock.monotonic_nanos();
        let refused = self.waiting.lock().to_hash.push(from, standing, login, now);
        self.changed.notify_one();
        refused
    }

    /// Ends a check; `cost_nanos` is the processor time that it took.
    pub fn finish(&self, check: RunningCheck, cost_nanos: u64, has_failed: bool) {
        let mut waiting = self.waiting.lock();
        waiting.hashing -= 1;
        waiting.share.finish(check, cost_nanos, has_failed);
        drop(waiting);
        self.changed.notify_one();
    }

    /// Ends the threads.
    pub fn close(&self) {
        self.waiting.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Waits for the next step; returns `None` after [`LoginTurns::close`].
    fn next(&self) -> Option<Step<T>> {
        let mut waiting = self.waiting.lock();
        loop {
            if waiting.is_closed {
                return None;
            }
            if let Some(login) = waiting.arrived.pop_front() {
                return Some(Step::Begin(login));
            }
            let now = self.clock.monotonic_nanos();
            let late = waiting.to_hash.take_late(now);
            if !late.is_empty() {
                return Some(Step::GiveUp(late));
            }
            let Some(to_late) = waiting.to_hash.time_to_late(now) else {
                self.changed.wait(&mut waiting);
                continue;
            };
            let wait = match waiting.hashing < (self.thread_count - 1).max(1) {
                true => waiting.share.wait(now),
                false => to_late,
            };
            if !wait.is_zero() {
                self.changed.wait_for(&mut waiting, wait.min(to_late));
            } else if let Some(login) = waiting.to_hash.pop() {
                waiting.hashing += 1;
                return Some(Step::Hash(login, waiting.share.begin()));
            }
        }
    }
}

impl<T: Send + 'static> LoginTurns<T> {
    /// Starts the threads, which run all steps until [`LoginTurns::close`].
    pub fn start_threads(
        self: Arc<Self>,
        run: impl Fn(Step<T>) + Clone + Send + 'static,
    ) -> std::io::Result<LoginThreads> {
        let mut threads = LoginThreads::default();
        for index in 0..self.thread_count {
            let (turns, run) = (self.clone(), run.clone());
            let run_all = move || {
                turns.clock.yield_to_others();
                while let Some(step) = turns.next() {
                    run(step);
                }
            };
            let name = format!("ilion-login-{index}");
            threads
                .0
                .push(std::thread::Builder::new().name(name).spawn(run_all)?);
        }
        Ok(threads)
    }
}

/// The threads that check logins.
#[derive(Default)]
pub(crate) struct LoginThreads(Vec<JoinHandle<()>>);

impl LoginThreads {
    /// Waits until the threads have ended.
    pub fn join(self) {
        for thread in self.0 {
            if thread.join().is_err() {
                tracing::error!("a thread of logins has panicked");
            }
        }
    }
}
