//! Reads by io_uring. One thread submits the reads of all others and takes their results, many with one system call.
//!
//! The thread sleeps in the kernel until a read is done. [`Inbox::wake`] writes to an eventfd; the thread always keeps a read of that
//! eventfd under way.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Instant;

use io_uring::{IoUring, opcode, squeue, types};
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};

use crate::parking::{Given, OnRead, Waiting};

/// Maximum number of reads under way.
const DEPTH: u32 = 256;
/// `user_data` of the read of the eventfd.
const WAKE: u64 = u64::MAX;

pub(super) struct Ring<T> {
    inbox: Arc<Inbox<T>>,
    thread: JoinHandle<()>,
}

/// Reads on their way to the thread.
struct Inbox<T> {
    reads: Mutex<Vec<(T, Waiting)>>,
    /// True if the thread sleeps: then it looks into the inbox only after it is woken.
    is_asleep: AtomicBool,
    is_stopping: AtomicBool,
    wake: OwnedFd,
}

impl<T> Inbox<T> {
    fn wake(&self) {
        if self.is_asleep.swap(false, SeqCst) {
            // The write fails only if the counter is at its maximum: then the thread is woken anyway.
            let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        }
    }

    /// Marks the thread as asleep. Returns false, and takes the mark back, if there is work for it.
    fn may_sleep(&self) -> bool {
        self.is_asleep.store(true, SeqCst);
        let is_empty = self.reads.lock().is_empty() && !self.is_stopping.load(SeqCst);
        if !is_empty {
            self.is_asleep.store(false, SeqCst);
        }
        is_empty
    }
}

impl<T: Send + 'static> Ring<T> {
    /// Starts the thread. Returns `on_read` where io_uring is not available.
    pub(crate) fn start(on_read: OnRead<T>) -> std::io::Result<Result<Self, OnRead<T>>> {
        let Ok(wake) = eventfd(0, EventfdFlags::CLOEXEC) else {
            return Ok(Err(on_read));
        };
        let inbox = Arc::new(Inbox {
            reads: Mutex::default(),
            is_asleep: AtomicBool::new(false),
            is_stopping: AtomicBool::new(false),
            wake,
        });
        let (sender, started) = mpsc::channel();
        let of_thread = inbox.clone();
        // The ring is made by the thread that uses it, as the kernel requires.
        let thread = std::thread::Builder::new()
            .name("ilion-disk".to_owned())
            .spawn(move || match ring() {
                Ok(ring) => {
                    let _ = sender.send(None);
                    Thread::new(ring, of_thread, on_read).run();
                }
                Err(_) => drop(sender.send(Some(on_read))),
            })?;
        match started.recv() {
            Ok(None) => Ok(Ok(Self { inbox, thread })),
            Ok(Some(on_read)) => Ok(Err(on_read)),
            Err(_) => Err(std::io::Error::other("the thread that reads has panicked")),
        }
    }

    pub(crate) fn submit(&self, reads: Vec<(T, Waiting)>) {
        self.inbox.reads.lock().extend(reads);
        self.inbox.wake();
    }

    pub(crate) fn stop(self) {
        self.inbox.is_stopping.store(true, SeqCst);
        self.inbox.wake();
        // A panic was logged by the hook.
        let _ = self.thread.join();
    }
}

fn ring() -> std::io::Result<IoUring> {
    let cheap = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .build(DEPTH);
    // Linux before 6.1 does not know these flags.
    cheap.or_else(|_| IoUring::new(DEPTH))
}

/// A read that the kernel carries out. Meanwhile the kernel writes into the buffer.
struct UnderWay<T> {
    request: T,
    waiting: Waiting,
    buffer: Vec<u8>,
    began: Instant,
}

struct Thread<T> {
    ring: IoUring,
    inbox: Arc<Inbox<T>>,
    on_read: OnRead<T>,
    /// The reads under way, indexed by `user_data`.
    under_way: Vec<Option<UnderWay<T>>>,
    free: Vec<usize>,
    /// Reads that wait, since too many are under way.
    queued: VecDeque<(T, Waiting)>,
    /// Where the kernel writes the counter of the eventfd.
    woken: Box<[u8; 8]>,
    is_wake_armed: bool,
}

impl<T> Thread<T> {
    fn new(ring: IoUring, inbox: Arc<Inbox<T>>, on_read: OnRead<T>) -> Self {
        let count = DEPTH as usize - 1;
        Self {
            ring,
            inbox,
            on_read,
            under_way: (0..count).map(|_| None).collect(),
            free: (0..count).rev().collect(),
            queued: VecDeque::new(),
            woken: Box::new([0; 8]),
            is_wake_armed: false,
        }
    }

    fn run(mut self) {
        loop {
            let taken = std::mem::take(&mut *self.inbox.reads.lock());
            self.queued.extend(taken);
            self.arm_wake();
            let mut done = self.push_queued();
            let is_idle = self.free.len() == self.under_way.len();
            if is_idle && self.queued.is_empty() && done.is_empty() && self.inbox.is_stopping.load(SeqCst) {
                if self.inbox.reads.lock().is_empty() {
                    return;
                }
                continue;
            }
            let wanted = usize::from(done.is_empty() && self.inbox.may_sleep());
            if self.ring.submit_and_wait(wanted).is_err() {
                // A signal, or the kernel is short of memory. The rest is submitted next time.
                std::thread::yield_now();
            }
            self.inbox.is_asleep.store(false, SeqCst);
            self.take_results(&mut done);
            if !done.is_empty() {
                // The buffers of other reads must outlive a panic.
                let _ = catch_unwind(AssertUnwindSafe(|| (self.on_read)(done)));
            }
        }
    }

    /// Keeps a read of the eventfd under way.
    fn arm_wake(&mut self) {
        if self.is_wake_armed {
            return;
        }
        let file = types::Fd(self.inbox.wake.as_raw_fd());
        let entry = opcode::Read::new(file, self.woken.as_mut_ptr(), 8)
            .build()
            .user_data(WAKE);
        // Safety: `woken` is used by no other operation, and lives as long as the ring.
        self.is_wake_armed = push(&mut self.ring, &entry);
    }

    /// Passes as many reads to the kernel as there is room for. Files without a descriptor are read on this thread; returns these reads.
    fn push_queued(&mut self) -> Vec<(T, Given)> {
        let mut done = Vec::new();
        while let Some(slot) = self.free.last().copied() {
            let Some((request, waiting)) = self.queued.pop_front() else {
                break;
            };
            let Some(file) = waiting.file.descriptor() else {
                done.push((request, waiting.read()));
                continue;
            };
            let mut buffer = vec![0; waiting.len];
            let length = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
            let entry = opcode::Read::new(types::Fd(file.as_raw_fd()), buffer.as_mut_ptr(), length)
                .offset(waiting.offset)
                .build()
                .user_data(slot as u64);
            if !push(&mut self.ring, &entry) {
                self.queued.push_front((request, waiting));
                break;
            }
            self.free.pop();
            self.under_way[slot] = Some(UnderWay {
                request,
                waiting,
                buffer,
                began: Instant::now(),
            });
        }
        done
    }

    fn take_results(&mut self, done: &mut Vec<(T, Given)>) {
        let Self {
            ring,
            under_way,
            free,
            is_wake_armed,
            ..
        } = self;
        for result in ring.completion() {
            if result.user_data() == WAKE {
                *is_wake_armed = false;
                continue;
            }
            let slot = usize::try_from(result.user_data()).unwrap_or(usize::MAX);
            let Some(read) = under_way.get_mut(slot).and_then(Option::take) else {
                continue;
            };
            free.push(slot);
            let UnderWay {
                request,
                waiting,
                buffer,
                began,
            } = read;
            let given = if usize::try_from(result.result()) == Ok(buffer.len()) {
                waiting.file.count_read(began, waiting.offset, buffer.len());
                waiting.done(Ok(buffer), began)
            } else {
                // An error, or too few bytes: a read on this thread returns all bytes, or the error with its path.
                waiting.read()
            };
            done.push((request, given));
        }
    }
}

/// Adds an operation; false if the queue is full. Requires: its file and its buffer live until its result is there.
fn push(ring: &mut IoUring, entry: &squeue::Entry) -> bool {
    #[expect(unsafe_code, reason = "the kernel writes into a buffer that it was told of")]
    // Safety: the caller keeps file and buffer.
    unsafe {
        ring.submission().push(entry).is_ok()
    }
}
