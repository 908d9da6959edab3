//! The threads that execute requests: one pool for statements that touch a few rows, one for those that may take long.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, unbounded};
use ilion_query::StatementWeight;

use crate::execute::{Executor, Worker};
use crate::queues::{Doing, Message, PoolSizes, Queues, thread_name};

/// The running threads.
pub(crate) struct Workers {
    pub queues: Queues,
    threads: Vec<JoinHandle<()>>,
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

    /// Executes what is queued, and ends the threads.
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

fn run(mut worker: Worker, messages: &Receiver<Message>, doing: &Doing) {
    while let Ok(Message::Task(task)) = messages.recv() {
        let number = doing.completed.load(Relaxed) + 1;
        doing.begun.store(number, Relaxed);
        worker.run(task);
        doing.completed.store(number, Relaxed);
    }
}
