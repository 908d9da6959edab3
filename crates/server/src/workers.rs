//! The threads that execute requests: one pool for statements that touch a few rows, one for those that may take long.
//!
//! Invariant: a queue never holds more than its sessions allow to be in flight, so queues need no bound of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, unbounded};
use ilion_query::StatementWeight;
use parking_lot::Mutex;

use crate::execute::{Executor, Worker};
use crate::session::{Session, Work};

/// Requests of one session, to be answered together.
pub(crate) struct Task {
    pub session: Arc<Session>,
    pub work: Vec<Work>,
}

enum Message {
    Task(Task),
    /// Ends one thread.
    Stop,
}

/// Where tasks go.
#[derive(Clone)]
pub(crate) struct Queues {
    point: Sender<Message>,
    heavy: Sender<Message>,
    sizes: PoolSizes,
    doing: Arc<Mutex<Vec<OfThread>>>,
}

/// A thread's pool, and what it does.
type OfThread = (StatementWeight, Arc<Doing>);

/// What one thread does: it alone writes here, so that counting waits for nobody.
#[derive(Debug, Default)]
pub(crate) struct Doing {
    /// Tasks that it has begun.
    begun: AtomicU64,
    completed: AtomicU64,
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

/// The running threads.
pub(crate) struct Workers {
    pub queues: Queues,
    threads: Vec<JoinHandle<()>>,
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

impl Workers {
    /// Starts the threads.
    pub fn start(sizes: PoolSizes, executor: &Arc<Executor>) -> std::io::Result<Self> {
        let (point, point_messages) = unbounded();
        let (heavy, heavy_messages) = unbounded();
        let mut workers = Self {
            queues: Queues {
                point,
                heavy,
                sizes,
                doing: Arc::default(),
            },
            threads: Vec::new(),
        };
        for index in 0..sizes.point {
            workers.start_thread(StatementWeight::Point, index, &point_messages, executor)?;
        }
        for index in 0..sizes.heavy {
            workers.start_thread(StatementWeight::Heavy, index, &heavy_messages, executor)?;
        }
        Ok(workers)
    }

    fn start_thread(
        &mut self,
        pool: StatementWeight,
        index: usize,
        messages: &Receiver<Message>,
        executor: &Arc<Executor>,
    ) -> std::io::Result<()> {
        let name = thread_name(pool, index);
        let doing = Arc::<Doing>::default();
        let worker = Worker::new(executor.clone(), self.queues.clone(), pool, doing.clone());
        self.queues.doing.lock().push((pool, doing.clone()));
        let messages = messages.clone();
        let thread = std::thread::Builder::new()
            .name(name)
            .spawn(move || run(worker, &messages, &doing))?;
        self.threads.push(thread);
        Ok(())
    }

    /// Lets what is queued be executed, and ends the threads.
    pub fn stop(self) {
        for _ in 0..self.queues.sizes.point {
            let _ = self.queues.point.send(Message::Stop);
        }
        for _ in 0..self.queues.sizes.heavy {
            let _ = self.queues.heavy.send(Message::Stop);
        }
        for thread in self.threads {
            if thread.join().is_err() {
                tracing::error!("a request thread has panicked");
            }
        }
    }
}

fn thread_name(pool: StatementWeight, index: usize) -> String {
    match pool {
        StatementWeight::Point => format!("ilion-request-{index}"),
        StatementWeight::Heavy => format!("ilion-heavy-{index}"),
    }
}

fn run(mut worker: Worker, messages: &Receiver<Message>, doing: &Doing) {
    while let Ok(Message::Task(task)) = messages.recv() {
        let number = doing.completed.load(Relaxed) + 1;
        doing.begun.store(number, Relaxed);
        worker.run(task);
        doing.completed.store(number, Relaxed);
    }
}
