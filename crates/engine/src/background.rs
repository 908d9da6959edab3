//! The threads of the background: one flushes, some compact, one makes missing token maps, one looks after what is due by time.
//!
//! Work is a value in a queue. A panic in a thread stops writes for good: reads go on, the reason is told.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use parking_lot::{Condvar, Mutex};

use crate::engine::Shared;
use crate::table_store::TableStore;
use crate::{Error, Result};

/// How often what is due by time is looked after.
const TICK: Duration = Duration::from_secs(1);
/// How often, in ticks, every table is looked at for compactions that time alone makes due.
const TICKS_TO_COMPACT: u64 = 60;

/// Something to do.
pub(crate) enum Work {
    /// Freeze and write the table's memtable.
    Flush(Arc<TableStore>),
    /// The same, since memtables fill their budget.
    Relieve(Arc<TableStore>),
    /// See whether the table's SSTables should be merged.
    Compact(Arc<TableStore>),
    /// Make the token maps that are missing.
    MakeTokenMaps,
    /// Make the table's sorted view.
    SortView(Arc<TableStore>),
    /// Bring the index summaries to what they may take.
    ResampleSummaries,
    /// Build the table's index of this name.
    BuildIndex(Arc<TableStore>, String),
    /// End the threads, after what was asked for before.
    Stop,
}

#[derive(Default)]
pub(crate) struct Background {
    queues: OnceLock<Queues>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Pieces of work asked for and not done.
    pending: Mutex<usize>,
    done: Condvar,
    /// How many wait for all of them.
    waiting: AtomicUsize,
    /// A flush that frees memory is asked for or going on.
    pub(crate) is_relieving: AtomicBool,
    /// Token maps are asked for.
    pub(crate) is_making_token_maps: AtomicBool,
    /// When index summaries were last looked after.
    pub(crate) summaries_resampled_nanos: AtomicU64,
    /// The threads were told to stop.
    is_stopping: Mutex<bool>,
    stopping: Condvar,
    are_caches_loaded: Mutex<bool>,
    caches_loaded: Condvar,
}

struct Queues {
    flush: Sender<Work>,
    compact: Sender<Work>,
    token_maps: Sender<Work>,
    indexes: Sender<Work>,
    tick: Sender<Work>,
    /// Threads that take from `compact`.
    compactors: usize,
}

impl Background {
    /// Starts the threads. Work that was sent before is not done.
    pub(crate) fn start(shared: &Arc<Shared>) -> Result<()> {
        let (flush, flush_queue) = unbounded();
        let (compact, compact_queue) = unbounded();
        let (token_maps, token_map_queue) = unbounded();
        let (indexes, index_queue) = unbounded();
        let (tick, tick_queue) = unbounded();
        let compactors = shared.options.compaction_threads.max(1);
        let queues = Queues {
            flush,
            compact,
            token_maps,
            indexes,
            tick,
            compactors,
        };
        let mut threads = vec![
            spawn(shared, "ilion-flush", move |shared| {
                work_through(shared, &flush_queue)
            })?,
            spawn(shared, "ilion-token-maps", move |shared| {
                shared.env.yield_to_others();
                work_through(shared, &token_map_queue);
            })?,
            spawn(shared, "ilion-indexes", move |shared| {
                work_through(shared, &index_queue)
            })?,
            spawn(shared, "ilion-caches", |shared| {
                guarded(shared, || crate::saved_caches::run(shared));
            })?,
            spawn(shared, "ilion-tick", move |shared| tick_on(shared, &tick_queue))?,
        ];
        for number in 1..=compactors {
            let queue: Receiver<Work> = compact_queue.clone();
            threads.push(spawn(
                shared,
                &format!("ilion-compact-{number}"),
                move |shared| {
                    shared.env.yield_to_others();
                    work_through(shared, &queue);
                },
            )?);
        }
        let background = &shared.background;
        *background.threads.lock() = threads;
        // Started once, by `Engine::open`.
        let _ = background.queues.set(queues);
        // What recovery asked for reached nobody.
        background.is_relieving.store(false, Ordering::Release);
        Ok(())
    }

    /// Asks for something. Nothing happens before the threads are started.
    pub(crate) fn send(&self, work: Work) {
        let Some(queues) = self.queues.get() else {
            return;
        };
        *self.pending.lock() += 1;
        let sent = match work {
            Work::Flush(_) | Work::Relieve(_) => queues.flush.send(work),
            Work::Compact(_) => queues.compact.send(work),
            Work::MakeTokenMaps | Work::SortView(_) | Work::ResampleSummaries => queues.token_maps.send(work),
            Work::BuildIndex(..) => queues.indexes.send(work),
            Work::Stop => {
                *self.is_stopping.lock() = true;
                self.stopping.notify_all();
                *self.pending.lock() += 3 + queues.compactors;
                let compactors = std::iter::repeat_n(&queues.compact, queues.compactors);
                let mut all = [&queues.flush, &queues.token_maps, &queues.indexes, &queues.tick]
                    .into_iter()
                    .chain(compactors);
                all.try_for_each(|queue| queue.send(Work::Stop))
            }
        };
        if sent.is_err() {
            self.finished();
        }
    }

    /// Flushes that were asked for and not begun.
    pub(crate) fn flushes_waiting(&self) -> usize {
        self.queues.get().map_or(0, |queues| queues.flush.len())
    }

    /// True once the threads were told to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.is_stopping.lock()
    }

    /// Pauses the caller, unless or until the threads are told to stop.
    pub(crate) fn pause(&self, duration: Duration) {
        let mut is_stopping = self.is_stopping.lock();
        if !*is_stopping {
            self.stopping.wait_for(&mut is_stopping, duration);
        }
    }

    fn finished(&self) {
        let mut pending = self.pending.lock();
        *pending = pending.saturating_sub(1);
        self.done.notify_all();
    }

    /// Waits until everything that was asked for is done.
    pub(crate) fn wait_idle(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let mut pending = self.pending.lock();
        while *pending > 0 {
            self.done.wait(&mut pending);
        }
        drop(pending);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Somebody waits for the flush that goes on, or another one does.
    pub(crate) fn is_flush_awaited(&self) -> bool {
        let is_queued = |queues: &Queues| !queues.flush.is_empty();
        self.waiting.load(Ordering::Relaxed) > 0
            || self.queues.get().is_some_and(is_queued)
            || self.is_stopping()
    }

    /// Saved caches are loaded, as far as they will be.
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

    /// Waits for the threads to end. Requires: they were told to stop.
    pub(crate) fn join(&self) {
        for thread in self.threads.lock().drain(..) {
            // A panic in it was caught, told, and has stopped writes.
            let _ = thread.join();
        }
    }
}

fn spawn(
    shared: &Arc<Shared>,
    name: &str,
    run: impl FnOnce(&Arc<Shared>) + Send + 'static,
) -> Result<JoinHandle<()>> {
    let shared = shared.clone();
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread
        .spawn(move || run(&shared))
        .map_err(|error| Error::Refused(format!("cannot start a thread: {error}")))
}

fn work_through(shared: &Arc<Shared>, queue: &Receiver<Work>) {
    for work in queue {
        let is_last = matches!(work, Work::Stop);
        guarded(shared, || match &work {
            Work::Flush(store) => {
                // `flush_failed` has logged the error, and either tries again later or stops writes.
                let _ = shared.flush_table(store);
            }
            Work::Relieve(store) => {
                let flushed = shared.relieve(store);
                shared.background.is_relieving.store(false, Ordering::Release);
                if flushed.is_ok() && shared.budget.is_flush_due() {
                    shared.ask_for_flush();
                }
            }
            Work::Compact(store) => shared.compact_if_due(store),
            Work::MakeTokenMaps => shared.make_token_maps(),
            Work::SortView(store) => shared.make_sorted_view(store),
            Work::ResampleSummaries => shared.resample_summaries(),
            Work::BuildIndex(store, index) => shared.build_asked(store, index),
            Work::Stop => {}
        });
        shared.background.finished();
        if is_last {
            return;
        }
    }
}

fn tick_on(shared: &Arc<Shared>, queue: &Receiver<Work>) {
    let mut ticks: u64 = 0;
    while let Err(RecvTimeoutError::Timeout) = queue.recv_timeout(TICK) {
        ticks += 1;
        guarded(shared, || shared.tick());
        if ticks.is_multiple_of(TICKS_TO_COMPACT) {
            shared.look_for_compactions();
        }
    }
    shared.background.finished();
}

fn guarded(shared: &Arc<Shared>, run: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        shared.stop_writes(&Error::Refused(format!("a background thread panicked: {text}")));
    }
}

impl Shared {
    /// Expired data, tombstones that have become old enough, and what failed or had no space a while ago.
    pub(crate) fn look_for_compactions(&self) {
        let tables = self.tables.load_full();
        for store in tables.values() {
            let indexes = store.indexes();
            let with_files = indexes.hidden().chain([store]);
            let with_files = with_files.filter(|store| !store.view().sstables.is_empty());
            with_files.for_each(|store| self.background.send(Work::Compact(store.clone())));
        }
    }

    /// Has flushed what is due by time (`memtable_flush_period_in_ms`) or keeps the log too large.
    fn tick(&self) {
        self.retry_stalled();
        let now_nanos = self.env.monotonic_nanos();
        let tables = self.tables.load_full();
        // While flushes fail, more of them would only freeze more memtables.
        let is_stalled = self.budget.is_stalled();
        for store in tables.values().filter(|_| !is_stalled) {
            let period_nanos = u64::from(store.schema().options.memtable_flush_period_ms) * 1_000_000;
            let active = store.active.read();
            let age_nanos = now_nanos.saturating_sub(active.made_nanos);
            let is_due = period_nanos > 0 && age_nanos >= period_nanos && !active.memtable.is_empty();
            drop(active);
            if is_due {
                self.ask_to_flush(store);
            }
        }
        self.ask_for_token_maps();
        self.resample_summaries_if_due();
        let Some(log) = self.log.get() else {
            return;
        };
        if !is_stalled && log.stats().size_bytes > self.options.commit_log_bytes_max {
            let oldest = tables
                .values()
                .filter(|store| !store.is_flush_asked.load(Ordering::Acquire))
                .filter_map(|store| Some((store.first_unflushed()?, store)))
                .min_by_key(|(first, _)| *first);
            if let Some((_, store)) = oldest {
                self.ask_to_flush(store);
            }
        }
    }
}
