//! The threads that execute requests: one pool for statements that touch a few rows, one for those that may take long.
//!
//! A read of one row does not block its thread while it waits for the disk: it is parked, and executed again when its bytes are there
//! ([`ilion_env::parking`]).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, unbounded};
use ilion_env::DiskReads;
use ilion_query::StatementWeight;

use crate::execute::{Executor, Worker};
use crate::queues::{Doing, Message, Parked, PoolSizes, Queues, thread_name};

/// The running threads.
pub(crate) struct Workers {
    pub queues: Queues,
    executor: Arc<Executor>,
    point: Receiver<Message>,
    disk: Arc<DiskReads<Parked>>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts the threads.
    pub fn start(sizes: PoolSizes, executor: &Arc<Executor>) -> std::io::Result<Self> {
        let (point, point_messages) = unbounded();
        let (heavy, heavy_messages) = unbounded();
        let queues = Queues {
            point,
            heavy,
            sizes,
            doing: Arc::default(),
            waiting: Arc::default(),
            resumed: Arc::default(),
        };
        let resuming = queues.clone();
        let disk = DiskReads::start(Box::new(move |read| resuming.resume(read)))?;
        tracing::debug!(
            way = disk.way(),
            "reads of rows do not hold a thread while they wait for the disk"
        );
        let mut workers = Self {
            queues,
            executor: executor.clone(),
            point: point_messages.clone(),
            disk: Arc::new(disk),
            threads: Vec::new(),
        };
        for index in 0..sizes.point {
            workers.start_thread(StatementWeight::Point, index, &point_messages)?;
        }
        for index in 0..sizes.heavy {
            workers.start_thread(StatementWeight::Heavy, index, &heavy_messages)?;
        }
        Ok(workers)
    }

    fn start_thread(
        &mut self,
        pool: StatementWeight,
        index: usize,
        messages: &Receiver<Message>,
    ) -> std::io::Result<()> {
        let name = thread_name(pool, index);
        let doing = Arc::<Doing>::default();
        let disk = (pool == StatementWeight::Point).then(|| self.disk.clone());
        let (executor, queues) = (self.executor.clone(), self.queues.clone());
        self.queues.doing.lock().push((pool, doing.clone()));
        let messages = messages.clone();
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            let worker = Worker::new(executor, queues, pool, doing.clone(), disk);
            run(worker, &messages, &doing);
        })?;
        self.threads.push(thread);
        Ok(())
    }

    /// Executes the queued requests, and ends the threads.
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
        let Some(disk) = Arc::into_inner(self.disk) else {
            return;
        };
        disk.stop();
        // Executes requests that were parked when their threads ended.
        let mut last = Worker::new(
            self.executor,
            self.queues,
            StatementWeight::Point,
            Arc::default(),
            None,
        );
        while let Ok(message) = self.point.try_recv() {
            last.run(message);
        }
    }
}

fn run(mut worker: Worker, messages: &Receiver<Message>, doing: &Doing) {
    while let Ok(message) = messages.recv() {
        if matches!(message, Message::Stop) {
            return;
        }
        let number = doing.completed.load(Relaxed) + 1;
        doing.begun.store(number, Relaxed);
        worker.run(message);
        doing.completed.store(number, Relaxed);
    }
}
