//! The two queues between connections and the threads that execute requests: one for statements that touch a few rows, one for
//! those that may take long.
//!
//! The queues have no bound of their own: each session limits its requests in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use ilion_env::parking::Given;
use ilion_protocol::Frame;
use ilion_query::StatementWeight;
use parking_lot::Mutex;

use crate::session::{Begun, Session, Work};
use crate::task_queue::TaskQueue;

/// A thread takes at most this many requests whose events have happened.
const RESUMED_MAX: usize = 32;

/// A request that waits for the disk, or for an event.
pub(crate) struct Parked {
    pub session: Arc<Session>,
    pub frame: Frame,
    pub received_nanos: u64,
    /// When a thread first took it, in nanoseconds of the monotonic clock.
    pub started_nanos: u64,
}

/// Requests of one session that are answered together.
pub(crate) struct Task {
    pub session: Arc<Session>,
    pub work: Vec<Work>,
}

/// An item of a queue.
pub(crate) enum Message {
    Task(Task),
    /// Requests whose events have happened.
    Resumed,
    /// Ends one thread.
    Stop,
}

/// The two queues, and the state of the threads that take from them.
#[derive(Clone)]
pub(crate) struct Queues {
    pub point: Arc<TaskQueue<Message>>,
    pub heavy: Arc<TaskQueue<Message>>,
    pub sizes: PoolSizes,
    pub doing: Arc<Mutex<Vec<OfThread>>>,
    /// Number of threads for point statements that currently may wait for the disk.
    pub waiting: Arc<AtomicUsize>,
    /// Requests whose events have happened. While there are some, `point` has a message for them.
    pub resumed: Arc<Mutex<Vec<(Parked, Given)>>>,
}

/// The pool of a thread, and its state.
pub(crate) type OfThread = (StatementWeight, Arc<Doing>);

/// The state of one thread. Only that thread writes it, so counting needs no lock.
#[derive(Debug, Default)]
pub(crate) struct Doing {
    /// Number of tasks begun.
    pub begun: AtomicU64,
    /// Number of tasks completed.
    pub completed: AtomicU64,
    /// The current request, on threads for heavy statements.
    request: Mutex<Option<RunningRequest>>,
}

/// A running request. Times are nanoseconds of the monotonic clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunningRequest {
    /// The request as text.
    pub text: String,
    /// When its last byte arrived.
    pub received_nanos: u64,
    /// When the thread took it.
    pub started_nanos: u64,
}

impl Doing {
    /// Shows a request as running until the returned guard is dropped.
    pub fn request(&self, request: RunningRequest) -> impl Drop {
        struct HideOnDrop<'d>(&'d Doing);
        impl Drop for HideOnDrop<'_> {
            fn drop(&mut self) {
                *self.0.request.lock() = None;
            }
        }
        *self.request.lock() = Some(request);
        HideOnDrop(self)
    }
}

/// Number of threads of each pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolSizes {
    pub point: usize,
    pub heavy: usize,
}

impl Queues {
    /// Queues a task.
    pub fn put(&self, weight: StatementWeight, task: Task) {
        self.queue(weight).put(Message::Task(task));
    }

    /// Decides whether the calling thread may wait for the disk instead of parking its request, which takes longer. Returns a guard, and
    /// the thread may wait until it drops the guard, if `work` is one new request, no task is queued, and fewer than half of the threads
    /// wait. Returns `None` if the request must be parked.
    pub fn may_wait(&self, work: &[Work]) -> Option<impl Drop + use<>> {
        struct Waiting(Arc<AtomicUsize>);
        impl Drop for Waiting {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Relaxed);
            }
        }
        // A request that was parked has already waited for the disk.
        let [Work::Frame { begun: None, .. }] = work else {
            return None;
        };
        if !self.point.is_empty() {
            return None;
        }
        let before = self.waiting.fetch_add(1, Relaxed);
        let waiting = Waiting(self.waiting.clone());
        (before < self.sizes.point / 2).then_some(waiting)
    }

    /// Queues requests that have what they waited for.
    pub fn resume(&self, parked: Vec<(Parked, Given)>) {
        for task in by_session(parked) {
            self.put(StatementWeight::Point, task);
        }
    }

    /// Queues a request whose event has happened. Those that come before a thread takes them are taken together.
    pub fn resume_after_event(&self, parked: Parked, given: Given) {
        let mut resumed = self.resumed.lock();
        resumed.push((parked, given));
        if resumed.len() == 1 {
            self.point.put(Message::Resumed);
        }
    }

    /// Takes requests whose events have happened.
    pub fn take_resumed(&self) -> Vec<Task> {
        let mut resumed = self.resumed.lock();
        let count = resumed.len().min(RESUMED_MAX);
        let taken: Vec<_> = resumed.drain(..count).collect();
        if !resumed.is_empty() {
            self.point.put(Message::Resumed);
        }
        drop(resumed);
        by_session(taken)
    }

    /// Number of tasks in a queue.
    pub fn waiting(&self, weight: StatementWeight) -> usize {
        self.queue(weight).len()
    }

    /// Number of running tasks, and of completed ones since the start.
    pub fn done(&self, weight: StatementWeight) -> (usize, u64) {
        let (mut active, mut completed) = (0, 0);
        let threads = self.doing.lock();
        for (_, doing) in threads.iter().filter(|(pool, _)| *pool == weight) {
            let done = doing.completed.load(Relaxed);
            active += usize::from(doing.begun.load(Relaxed) > done);
            completed += done;
        }
        (active, completed)
    }

    /// The running requests of the threads for heavy statements, with the names of the threads.
    pub fn running(&self) -> Vec<(String, RunningRequest)> {
        let threads = self.doing.lock();
        let heavy = threads.iter().filter(|(pool, _)| *pool == StatementWeight::Heavy);
        let running = heavy.enumerate().filter_map(|(index, (pool, doing))| {
            let request = doing.request.lock().clone()?;
            Some((thread_name(*pool, index), request))
        });
        running.collect()
    }

    /// Number of threads that take from a queue.
    pub fn thread_count(&self, weight: StatementWeight) -> usize {
        match weight {
            StatementWeight::Point => self.sizes.point,
            StatementWeight::Heavy => self.sizes.heavy,
        }
    }

    pub fn queue(&self, weight: StatementWeight) -> &Arc<TaskQueue<Message>> {
        match weight {
            StatementWeight::Point => &self.point,
            StatementWeight::Heavy => &self.heavy,
        }
    }
}

fn by_session(parked: Vec<(Parked, Given)>) -> Vec<Task> {
    let mut tasks: Vec<Task> = Vec::new();
    for (parked, given) in parked {
        let Parked {
            session,
            frame,
            received_nanos,
            started_nanos,
        } = parked;
        let work = Work::Frame {
            frame,
            received_nanos,
            begun: Some(Box::new(Begun { started_nanos, given })),
        };
        match tasks.iter_mut().find(|task| Arc::ptr_eq(&task.session, &session)) {
            Some(task) => task.work.push(work),
            None => tasks.push(Task {
                session,
                work: vec![work],
            }),
        }
    }
    tasks
}

/// The name of a thread.
pub(crate) fn thread_name(pool: StatementWeight, index: usize) -> String {
    match pool {
        StatementWeight::Point => format!("ilion-request-{index}"),
        StatementWeight::Heavy => format!("ilion-heavy-{index}"),
    }
}
