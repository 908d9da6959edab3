//! Where requests wait for the threads that execute them: one queue for statements that touch a few rows, one for those that may take
//! long.
//!
//! Invariant: a queue never holds more than its sessions allow to be in flight, so queues need no bound of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crossbeam_channel::Sender;
use ilion_query::StatementWeight;
use parking_lot::Mutex;

use crate::session::{Session, Work};

/// Requests of one session, to be answered together.
pub(crate) struct Task {
    pub session: Arc<Session>,
    pub work: Vec<Work>,
}

/// What a thread takes from its queue.
pub(crate) enum Message {
    Task(Task),
    /// Ends one thread.
    Stop,
}

/// Where tasks go.
#[derive(Clone)]
pub(crate) struct Queues {
    pub point: Sender<Message>,
    pub heavy: Sender<Message>,
    pub sizes: PoolSizes,
    pub doing: Arc<Mutex<Vec<OfThread>>>,
}

/// A thread's pool, and what it does.
pub(crate) type OfThread = (StatementWeight, Arc<Doing>);

/// What one thread does: it alone writes here, so that counting waits for nobody.
#[derive(Debug, Default)]
pub(crate) struct Doing {
    /// Tasks that it has begun.
    pub begun: AtomicU64,
    /// Tasks that it has completed.
    pub completed: AtomicU64,
    /// The request that it executes, if that may take long.
    request: Mutex<Option<RunningRequest>>,
}

/// A request that is being executed. Times are nanoseconds of the clock that never steps back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunningRequest {
    /// What it is.
    pub text: String,
    /// When its last byte had come.
    pub received_nanos: u64,
    /// When the thread took it.
    pub started_nanos: u64,
}

impl Doing {
    /// Tells of a request until the value is dropped.
    pub fn request(&self, request: RunningRequest) -> impl Drop {
        struct Told<'d>(&'d Doing);
        impl Drop for Told<'_> {
            fn drop(&mut self) {
                *self.0.request.lock() = None;
            }
        }
        *self.request.lock() = Some(request);
        Told(self)
    }
}

/// How many threads each pool has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolSizes {
    pub point: usize,
    pub heavy: usize,
}

impl Queues {
    /// Hands a task over. Nothing is executed any more once the threads have stopped.
    pub fn put(&self, weight: StatementWeight, task: Task) {
        // An error means that the threads are gone; the session ends with them.
        let _ = self.queue(weight).send(Message::Task(task));
    }

    /// How many tasks wait in a queue.
    pub fn waiting(&self, weight: StatementWeight) -> usize {
        self.queue(weight).len()
    }

    /// Tasks that are being done, and those that were since the start.
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

    /// The threads that execute what may take long, with the requests that they are at.
    pub fn running(&self) -> Vec<(String, RunningRequest)> {
        let threads = self.doing.lock();
        let heavy = threads.iter().filter(|(pool, _)| *pool == StatementWeight::Heavy);
        let running = heavy.enumerate().filter_map(|(index, (pool, doing))| {
            let request = doing.request.lock().clone()?;
            Some((thread_name(*pool, index), request))
        });
        running.collect()
    }

    /// How many threads take from a queue.
    pub fn thread_count(&self, weight: StatementWeight) -> usize {
        match weight {
            StatementWeight::Point => self.sizes.point,
            StatementWeight::Heavy => self.sizes.heavy,
        }
    }

    fn queue(&self, weight: StatementWeight) -> &Sender<Message> {
        match weight {
            StatementWeight::Point => &self.point,
            StatementWeight::Heavy => &self.heavy,
        }
    }
}

/// The name of one of the threads of a pool.
pub(crate) fn thread_name(pool: StatementWeight, index: usize) -> String {
    match pool {
        StatementWeight::Point => format!("ilion-request-{index}"),
        StatementWeight::Heavy => format!("ilion-heavy-{index}"),
    }
}
