//! [`Workers`]: threads that run one task of a simulation after another, since a new thread for each takes longer than most tasks.

use std::cell::RefCell;
use std::io;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// What a worker runs.
pub(super) type Body = Box<dyn FnOnce() + Send>;

/// A body, and the worker that runs it. The thread puts the worker back among the idle ones afterwards.
type Job = (Body, Worker);

/// The sender to the thread of a worker. The thread ends when it is dropped.
struct Worker(Sender<Job>);

/// The idle workers. Their threads end when this is dropped.
#[derive(Default)]
pub(super) struct Workers(Mutex<Vec<Worker>>);

thread_local! {
    static OWN: RefCell<Arc<Workers>> = RefCell::default();
}

impl Workers {
    /// The workers of the calling thread: a scheduler uses them in all its simulations. A worker stays on the cores of the thread that
    /// started it.
    pub fn of_thread() -> Arc<Self> {
        OWN.with_borrow(Clone::clone)
    }

    /// Runs the body in an idle worker, or in a new one if there is none.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn run(self: &Arc<Self>, body: Body) -> io::Result<()> {
        let idle = self.0.lock().pop();
        let worker = match idle {
            Some(worker) => worker,
            None => Worker::start(Arc::downgrade(self))?,
        };
        let to = worker.0.clone();
        // A worker's thread waits for jobs as long as one of its senders is here.
        let _ = to.send((body, worker));
        Ok(())
    }
}

impl Worker {
    fn start(workers: Weak<Workers>) -> io::Result<Self> {
        let (sender, jobs) = channel::<Job>();
        let serve = move || {
            while let Ok((body, worker)) = jobs.recv() {
                body();
                if let Some(workers) = workers.upgrade() {
                    workers.0.lock().push(worker);
                }
            }
        };
        let builder = std::thread::Builder::new().name("task".to_owned());
        builder.spawn(serve)?;
        Ok(Self(sender))
    }
}
