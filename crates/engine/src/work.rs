//! [`Background`]: the queues of background work, and waiting until work is done. The threads are in `background`.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};
use parking_lot::{Condvar, Mutex};

use crate::Result;
use crate::table_store::TableStore;

/// A piece of background work.
pub(crate) enum Work {
    /// Freeze and write the table's memtable.
    Flush(Arc<TableStore>),
    /// The same as `Flush`, to free memory of the budget.
    Relieve(Arc<TableStore>),
    /// Compact the table if a compaction is due.
    Compact(Arc<TableStore>),
    /// Make the token maps that are missing.
    MakeTokenMaps,
    /// Make the table's sorted view.
    SortView(Arc<TableStore>),
    /// Resample the index summaries to fit their memory budget.
    ResampleSummaries,
    /// Build the table's index of this name.
    BuildIndex(Arc<TableStore>, String),
    /// End the threads after all work that was sent before.
    Stop,
}

#[derive(Default)]
pub(crate) struct Background {
    queues: OnceLock<Queues>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Number of threads that take compactions.
    compactors: Mutex<usize>,
    /// Number of pieces of work that were sent and are not done.
    pending: Mutex<usize>,
    done: Condvar,
    /// Number of callers in [`Self::wait_idle`].
    waiting: AtomicUsize,
    /// A flush that frees memory is requested or running.
    pub(crate) is_relieving: AtomicBool,
    /// Missing token maps are requested or being made.
    pub(crate) is_making_token_maps: AtomicBool,
    /// When index summaries were last resampled, by the monotonic clock.
    pub(crate) summaries_resampled_nanos: AtomicU64,
    /// The threads must stop.
    is_stopping: Mutex<bool>,
    stopping: Condvar,
    are_caches_loaded: Mutex<bool>,
    caches_loaded: Condvar,
}

/// The queues of the threads.
pub(crate) struct Queues {
    pub flush: Sender<Work>,
    pub compact: Sender<Work>,
    pub token_maps: Sender<Work>,
    pub views: Sender<Work>,
    pub indexes: Sender<Work>,
    pub tick: Sender<Work>,
    /// The other end of `compact`: read by the threads of compactions, or by the steps of an engine without threads.
    pub compact_queue: Receiver<Work>,
}

impl Background {
    /// Sets the queues of the threads that were started.
    pub(crate) fn begin(&self, queues: Queues, threads: Vec<JoinHandle<()>>, compactors: usize) {
        *self.threads.lock() = threads;
        *self.compactors.lock() = compactors;
        // Cannot fail: called once, by `Engine::open`.
        let _ = self.queues.set(queues);
        // A flush that recovery requested was lost, since no thread was running.
        self.is_relieving.store(false, Ordering::Release);
    }

    /// Keeps all work in one queue until [`Self::take`] is called, since there are no threads.
    pub(crate) fn begin_stepped(&self) {
        let (queue, compact_queue) = crossbeam_channel::unbounded();
        let queues = Queues {
            flush: queue.clone(),
            compact: queue.clone(),
            token_maps: queue.clone(),
            views: queue.clone(),
            indexes: queue.clone(),
            tick: queue,
            compact_queue,
        };
        self.begin(queues, Vec::new(), 0);
    }

    /// Takes the next piece of work. Requires: the engine has no threads.
    pub(crate) fn take(&self) -> Option<Work> {
        self.queues.get()?.compact_queue.try_recv().ok()
    }

    /// Sends work to its thread. Work that is sent before the threads are started is lost.
    pub(crate) fn send(&self, work: Work) {
        let Some(queues) = self.queues.get() else {
            return;
        };
        *self.pending.lock() += 1;
        let sent = match work {
            Work::Flush(_) | Work::Relieve(_) => queues.flush.send(work),
            Work::Compact(_) => queues.compact.send(work),
            Work::MakeTokenMaps | Work::ResampleSummaries => queues.token_maps.send(work),
            Work::SortView(_) => queues.views.send(work),
            Work::BuildIndex(..) => queues.indexes.send(work),
            Work::Stop => {
                *self.is_stopping.lock() = true;
                self.stopping.notify_all();
                let count = std::mem::take(&mut *self.compactors.lock());
                let single = [
                    &queues.flush,
                    &queues.token_maps,
                    &queues.views,
                    &queues.indexes,
                    &queues.tick,
                ];
                // `Stop` itself is already counted.
                *self.pending.lock() += single.len() - 1 + count;
                let compactors = std::iter::repeat_n(&queues.compact, count);
                let mut all = single.into_iter().chain(compactors);
                all.try_for_each(|queue| queue.send(Work::Stop))
            }
        };
        if sent.is_err() {
            self.finished();
        }
    }

    /// Number of threads that take compactions.
    pub(crate) fn compactors(&self) -> usize {
        *self.compactors.lock()
    }

    /// Changes the number of these threads: `start` starts the thread with a given number. Surplus threads end after the work
    /// that is already in the queue.
    pub(crate) fn set_compactors(
        &self,
        wanted: usize,
        start: impl Fn(usize, Receiver<Work>) -> Result<JoinHandle<()>>,
    ) -> Result<()> {
        let Some(queues) = self.queues.get() else {
            return Ok(());
        };
        let mut compactors = self.compactors.lock();
        if self.is_stopping() {
            return Ok(());
        }
        while *compactors > wanted {
            *self.pending.lock() += 1;
            if queues.compact.send(Work::Stop).is_err() {
                self.finished();
            }
            *compactors -= 1;
        }
        while *compactors < wanted {
            let thread = start(*compactors + 1, queues.compact_queue.clone())?;
            self.threads.lock().push(thread);
            *compactors += 1;
        }
        Ok(())
    }

    /// Number of flushes that are requested and not running.
    pub(crate) fn flushes_waiting(&self) -> usize {
        self.queues.get().map_or(0, |queues| queues.flush.len())
    }

    /// True once the threads must stop.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.is_stopping.lock()
    }

    /// Pauses the caller, at most until the threads must stop.
    pub(crate) fn pause(&self, duration: Duration) {
        let mut is_stopping = self.is_stopping.lock();
        if !*is_stopping {
            self.stopping.wait_for(&mut is_stopping, duration);
        }
    }

    /// Counts a piece of work as done.
    pub(crate) fn finished(&self) {
        let mut pending = self.pending.lock();
        *pending = pending.saturating_sub(1);
        self.done.notify_all();
    }

    /// Waits until all work is done.
    pub(crate) fn wait_idle(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let mut pending = self.pending.lock();
        while *pending > 0 {
            self.done.wait(&mut pending);
        }
        drop(pending);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// True if a caller waits for the running flush, or another flush waits for its turn.
    pub(crate) fn is_flush_awaited(&self) -> bool {
        let is_queued = |queues: &Queues| !queues.flush.is_empty();
        self.waiting.load(Ordering::Relaxed) > 0
            || self.queues.get().is_some_and(is_queued)
            || self.is_stopping()
    }

    /// Records that loading saved caches has ended, and wakes the callers of [`Self::wait_caches_loaded`].
    pub(crate) fn tell_caches_loaded(&self) {
        *self.are_caches_loaded.lock() = true;
        self.caches_loaded.notify_all();
    }

    /// Waits for [`Self::tell_caches_loaded`].
    pub(crate) fn wait_caches_loaded(&self) {
        let mut are_loaded = self.are_caches_loaded.lock();
        while !*are_loaded {
            self.caches_loaded.wait(&mut are_loaded);
        }
    }

    /// Waits for the threads to end. Requires: [`Work::Stop`] was sent.
    pub(crate) fn join(&self) {
        for thread in self.threads.lock().drain(..) {
            // A panic of the thread was caught and logged, and has stopped writes.
            let _ = thread.join();
        }
    }
}
