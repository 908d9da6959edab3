//! The threads that execute requests: one pool for statements that touch a few rows, one for those that may take long.
//!
//! A read of one row does not block its thread while it waits for the disk: it is parked, and executed again when its bytes are there
//! ([`ilion_env::parking`]).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;

use ilion_env::DiskReads;
use ilion_query::StatementWeight;

use crate::execute::{Executor, Worker};
use crate::queues::{Doing, Message, Parked, PoolSizes, Queues, thread_name};
use crate::task_queue::{Sleeper, TaskQueue};

/// The running threads.
pub(crate) struct Workers {
    pub queues: Queues,
    executor: Arc<Executor>,
    disk: Arc<DiskReads<Parked>>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts the threads.
    pub fn start(sizes: PoolSizes, executor: &Arc<Executor>) -> std::io::Result<Self> {
        let queues = Queues {
            point: Arc::default(),
            heavy: Arc::default(),
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
            disk: Arc::new(disk),
            threads: Vec::new(),
        };
        for index in 0..sizes.point {
            workers.start_thread(StatementWeight::Point, index)?;
        }
        for index in 0..sizes.heavy {
            workers.start_thread(StatementWeight::Heavy, index)?;
        }
        Ok(workers)
    }

    fn start_thread(&mut self, pool: StatementWeight, index: usize) -> std::io::Result<()> {
        let name = thread_name(pool, index);
        let doing = Arc::<Doing>::default();
        let disk = (pool == StatementWeight::Point).then(|| self.disk.clone());
        let (executor, queues) = (self.executor.clone(), self.queues.clone());
        self.queues.doing.lock().push((pool, doing.clone()));
        let messages = queues.queue(pool).clone();
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
            self.queues.point.put(Message::Stop);
        }
        for _ in 0..self.queues.sizes.heavy {
            self.queues.heavy.put(Message::Stop);
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
        let queues = self.queues;
        let mut last = Worker::new(
            self.executor,
            queues.clone(),
            StatementWeight::Point,
            Arc::default(),
            None,
        );
        while let Some(message) = queues.point.try_take() {
            last.run(message);
        }
    }
}

fn run(mut worker: Worker, messages: &TaskQueue<Message>, doing: &Doing) {
    let own = Sleeper::here();
    loop {
        let message = messages.take(&own);
        if matches!(message, Message::Stop) {
            return;
        }
        let number = doing.completed.load(Relaxed) + 1;
        doing.begun.store(number, Relaxed);
        worker.run(message);
        doing.completed.store(number, Relaxed);
    }
}
