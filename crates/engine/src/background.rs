//! The background threads.
//!
//! | thread | what it does |
//! | --- | --- |
//! | `ilion-flush` | flushes memtables, one table after another |
//! | `ilion-compact-N` | compacts |
//! | `ilion-token-maps` | makes missing token maps and checksums, resamples index summaries |
//! | `ilion-views` | makes sorted views |
//! | `ilion-indexes` | builds indexes |
//! | `ilion-caches` | loads saved caches after the start, and saves them periodically |
//! | `ilion-remove` | removes files of obsolete SSTables that a read had open |
//! | `ilion-release` | frees the memory of flushed memtables |
//! | `ilion-tick` | each second: requests what is due by time, tries again what failed |
//!
//! Work is a value in a queue (`work`). A panic in a thread stops writes for good: reads go on, and the status shows the reason.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, unbounded};

use crate::releaser::Releaser;
use crate::remover::Remover;
use crate::saved_caches;
use crate::shared::Shared;
use crate::work::{Queues, Work};
use crate::{Engine, Error, Result};

/// Time between two ticks.
const TICK: Duration = Duration::from_secs(1);
/// Ticks between two checks for compactions that are due by time.
const TICKS_TO_COMPACT: u64 = 60;

/// Starts the threads, unless the engine runs without threads. Work that was sent before is lost.
pub(crate) fn start(shared: &Arc<Shared>) -> Result<()> {
    if shared.options.is_stepped {
        shared.background.begin_stepped();
        saved_caches::fill(shared);
        return Ok(());
    }
    let (flush, flush_queue) = unbounded();
    let (compact, compact_queue) = unbounded();
    let (token_maps, token_map_queue) = unbounded();
    let (views, view_queue) = unbounded();
    let (indexes, index_queue) = unbounded();
    let (tick, tick_queue) = unbounded();
    let removals = shared.remover.begin();
    let releases = shared.releaser.begin();
    let compactors = shared.options.compaction_threads.max(1);
    let queues = Queues {
        flush,
        compact,
        token_maps,
        views,
        indexes,
        tick,
        compact_queue: compact_queue.clone(),
    };
    let mut threads = vec![
        spawn(shared, "ilion-flush", move |shared| {
            work_through(shared, &flush_queue)
        })?,
        spawn(shared, "ilion-token-maps", move |shared| {
            shared.env.yield_to_others();
            work_through(shared, &token_map_queue);
        })?,
        // At the priority of reads, since reads need the view. The thread rests long after each view.
        spawn(shared, "ilion-views", move |shared| {
            work_through(shared, &view_queue)
        })?,
        spawn(shared, "ilion-indexes", move |shared| {
            work_through(shared, &index_queue)
        })?,
        spawn(shared, "ilion-caches", |shared| {
            guarded(shared, || saved_caches::run(shared));
        })?,
        spawn(shared, "ilion-remove", move |shared| {
            shared.env.yield_to_others();
            Remover::run(&removals);
        })?,
        // At the priority of writes; at a lower one, writers could fill memory faster than this thread frees it.
        spawn(shared, "ilion-release", move |_| Releaser::run(&releases))?,
        spawn(shared, "ilion-tick", move |shared| tick_on(shared, &tick_queue))?,
    ];
    for number in 1..=compactors {
        threads.push(spawn_compactor(shared, number, compact_queue.clone())?);
    }
    shared.background.begin(queues, threads, compactors);
    Ok(())
}

fn spawn_compactor(shared: &Arc<Shared>, number: usize, queue: Receiver<Work>) -> Result<JoinHandle<()>> {
    spawn(shared, &format!("ilion-compact-{number}"), move |shared| {
        shared.env.yield_to_others();
        work_through(shared, &queue);
    })
}

impl Engine {
    /// Changes how many compactions run at once. Surplus threads end after the work that is already in the
    /// queue. An engine without threads runs one at a time.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn set_compaction_threads(&self, threads: usize) -> Result<()> {
        let shared = &self.shared;
        if shared.options.is_stepped {
            return Ok(());
        }
        let start = |number, queue| spawn_compactor(shared, number, queue);
        shared.background.set_compactors(threads.max(1), start)
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
        do_guarded(shared, &work);
        if matches!(work, Work::Stop) {
            return;
        }
    }
}

fn do_guarded(shared: &Arc<Shared>, work: &Work) {
    guarded(shared, || match work {
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
}

impl Engine {
    /// Does one piece of background work that is due in an engine without threads (see [`crate::EngineOptions::is_stepped`]), or in
    /// its log. Returns false if no work was due.
    pub fn step(&self) -> bool {
        let shared = &self.shared;
        let work = match shared.options.is_stepped {
            true => shared.background.take(),
            false => None,
        };
        match work {
            Some(work) => {
                do_guarded(shared, &work);
                true
            }
            None => shared.log.get().is_some_and(|log| log.step()),
        }
    }

    /// Requests what is due by time, in an engine without threads. The caller does this once a second of the engine's clock.
    pub fn tick(&self) {
        if self.shared.options.is_stepped {
            guarded(&self.shared, || self.shared.tick());
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
    /// Requests a check of every table for due compactions: data expires, tombstones pass gc grace, and a compaction that failed may
    /// succeed now.
    pub(crate) fn look_for_compactions(&self) {
        let tables = self.tables.load_full();
        for store in tables.values() {
            let indexes = store.indexes();
            let with_files = indexes.hidden().chain([store]);
            let with_files = with_files.filter(|store| !store.view().sstables.is_empty());
            with_files.for_each(|store| self.background.send(Work::Compact(store.clone())));
        }
    }

    /// Requests flushes that are due by time (`memtable_flush_period_in_ms`), or because the log is too large.
    fn tick(&self) {
        self.retry_stalled();
        self.expire_snapshots();
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
