//! Reads without io_uring: each thread of a pool carries out one read at a time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};

use crate::parking::{OnRead, Waiting};

/// Maximum number of reads at a time. Disks gain little from more.
const THREADS: usize = 32;
/// A read needs little stack.
const STACK_BYTES: usize = 128 << 10;

pub(super) struct Threads<T> {
    shared: Arc<Shared<T>>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared<T> {
    queue: Mutex<Queue<T>>,
    has_more: Condvar,
    on_read: OnRead<T>,
}

struct Queue<T> {
    reads: VecDeque<(T, Waiting)>,
    is_stopping: bool,
}

impl<T: Send + 'static> Threads<T> {
    pub(crate) fn start(on_read: OnRead<T>) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::new(Queue {
                reads: VecDeque::new(),
                is_stopping: false,
            }),
            has_more: Condvar::new(),
            on_read,
        });
        let start = |index| {
            let shared = shared.clone();
            let builder = std::thread::Builder::new().name(format!("ilion-disk-{index}"));
            builder
                .stack_size(STACK_BYTES)
                .spawn(move || shared.work_through())
        };
        let threads = (0..THREADS).map(start).collect::<std::io::Result<_>>()?;
        Ok(Self { shared, threads })
    }

    pub(crate) fn submit(&self, reads: Vec<(T, Waiting)>) {
        let count = reads.len();
        self.shared.queue.lock().reads.extend(reads);
        for _ in 0..count {
            self.shared.has_more.notify_one();
        }
    }

    pub(crate) fn stop(self) {
        self.shared.queue.lock().is_stopping = true;
        self.shared.has_more.notify_all();
        for thread in self.threads {
            // A panic was logged by the hook.
            let _ = thread.join();
        }
    }
}

impl<T> Shared<T> {
    fn work_through(&self) {
        while let Some((request, waiting)) = self.next() {
            (self.on_read)(vec![(request, waiting.read())]);
        }
    }

    fn next(&self) -> Option<(T, Waiting)> {
        let mut queue = self.queue.lock();
        loop {
            if let Some(read) = queue.reads.pop_front() {
                return Some(read);
            }
            if queue.is_stopping {
                return None;
            }
            self.has_more.wait(&mut queue);
        }
    }
}
