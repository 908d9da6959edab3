//! The two threads of the log: one syncs, one creates segments ahead of need.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use parking_lot::MutexGuard;

use crate::frame::{Header, before_tag};
use crate::segment::Segment;
use crate::state::{Shared, Spare, State};
use crate::{Error, Mode, Result, SegmentId};

/// Maximum time until records are synced for which nobody waits.
const UNAWAITED_MAX: Duration = Duration::from_millis(100);

pub(crate) fn spawn(shared: &Arc<Shared>) -> Result<Vec<JoinHandle<()>>> {
    let sync = start(shared, "commitlog-sync", run_sync)?;
    match start(shared, "commitlog-spare", run_spare) {
        Ok(spare) => Ok(vec![sync, spare]),
        Err(error) => {
            shared.state.lock().is_closing = true;
            shared.sync_due.notify_all();
            let _ = sync.join();
            Err(error)
        }
    }
}

fn start(shared: &Arc<Shared>, name: &str, run: fn(&Shared)) -> Result<JoinHandle<()>> {
    let of_thread = Arc::clone(shared);
    let spawned = Builder::new().name(name.to_owned()).spawn(move || {
        let _guard = PoisonOnPanic(&of_thread);
        run(&of_thread);
    });
    spawned.map_err(|source| Error::Io(ilion_env::Error::new("start a thread for", &shared.dir, source)))
}

/// Poisons the log if its thread panics, so that no caller waits for ever.
struct PoisonOnPanic<'a>(&'a Shared);

impl Drop for PoisonOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0
                .poison(&mut self.0.state.lock(), "a thread of the commit log panicked");
        }
    }
}

/// Syncs when the mode says so, until the log closes or is poisoned.
fn run_sync(shared: &Shared) {
    loop {
        let mut state = shared.state.lock();
        wait_until_due(shared, &mut state);
        if state.is_closing {
            return;
        }
        drop(state);
        if matches!(sync(shared), Err(Error::Poisoned { .. })) {
            return wait_for_close(shared);
        }
    }
}

fn sync(shared: &Shared) -> Result<()> {
    let synced = shared.sync_once();
    shared.answer_callbacks();
    if !matches!(synced, Err(Error::Poisoned { .. })) {
        shared.archive_sealed();
        shared.keep_captured();
    }
    synced
}

/// Syncs a log without threads if a sync is due, as its sync thread would; returns whether one was due.
pub(crate) fn step(shared: &Shared) -> bool {
    let state = shared.state.lock();
    let is_period_over = match shared.options.mode {
        Mode::Periodic { period_millis } => {
            let since_nanos = shared.env.monotonic_nanos().saturating_sub(state.last_sync_nanos);
            state.synced < state.end_position() && since_nanos / 1_000_000 >= period_millis
        }
        Mode::Batch | Mode::Group { .. } => false,
    };
    let is_requested = state.is_sync_wanted || !state.callbacks.is_empty();
    let is_planned = state.is_sync_planned && !matches!(shared.options.mode, Mode::Periodic { .. });
    let is_due = is_requested || is_planned || is_period_over;
    drop(state);
    if is_due {
        // The error reaches the callers that wait for the sync.
        let _ = sync(shared);
    }
    is_due
}

fn wait_until_due(shared: &Shared, state: &mut MutexGuard<'_, State>) {
    let is_due = |state: &State| state.is_sync_wanted || state.is_closing;
    match shared.options.mode {
        Mode::Periodic { period_millis } => {
            let period = Duration::from_millis(period_millis);
            shared
                .sync_due
                .wait_while_for(state, |state| !is_due(state), period);
        }
        Mode::Batch => wait_for_request(shared, state, is_due),
        Mode::Group { window_millis } => {
            wait_for_request(shared, state, is_due);
            let window = Duration::from_millis(window_millis);
            shared
                .sync_due
                .wait_while_for(state, |state| !state.is_closing, window);
        }
    }
}

/// Returns when a sync is due, or some time after one was planned.
fn wait_for_request(
    shared: &Shared,
    state: &mut MutexGuard<'_, State>,
    is_due: impl Fn(&State) -> bool + Copy,
) {
    shared
        .sync_due
        .wait_while(state, |state| !is_due(state) && !state.is_sync_planned);
    shared
        .sync_due
        .wait_while_for(state, |state| !is_due(state), UNAWAITED_MAX);
}

/// Keeps answering callbacks with the error of a poisoned log, until the log closes.
fn wait_for_close(shared: &Shared) {
    loop {
        let mut state = shared.state.lock();
        shared.sync_due.wait_while(&mut state, |state| {
            state.callbacks.is_empty() && !state.is_closing
        });
        let is_closing = state.is_closing;
        drop(state);
        shared.answer_callbacks();
        if is_closing {
            return;
        }
    }
}

/// Keeps one spare segment ready.
fn run_spare(shared: &Shared) {
    loop {
        let mut state = shared.state.lock();
        shared.spare_changed.wait_while(&mut state, |state| {
            !state.is_closing && (state.poison.is_some() || !matches!(state.spare, Spare::Wanted))
        });
        if state.is_closing {
            return;
        }
        shared.make_spare(&mut state);
        drop(state);
        shared.spare_changed.notify_all();
    }
}

impl Shared {
    /// Creates the spare segment, or stores the error in the state.
    pub(crate) fn make_spare(&self, state: &mut MutexGuard<'_, State>) {
        let segment = state.next_segment;
        state.next_segment = SegmentId(segment.0 + 1);
        // The log continues in the spare segment when the active one is full.
        let before = match state.active.has_file() {
            true => Some(state.active.id),
            false => state.sealed.back().map(|(id, _)| *id),
        };
        let created = MutexGuard::unlocked(state, || create(self, segment, before));
        state.spare_tries += 1;
        let has_failed_before = std::mem::replace(&mut state.is_spare_missing, created.is_err());
        state.spare = match created {
            Ok(segment) => {
                if has_failed_before {
                    tracing::info!("there is a new commit log segment again");
                }
                Spare::Ready(Arc::new(segment))
            }
            Err(error) => {
                // Each write that needs a segment tries again; log only the first failure.
                if !has_failed_before {
                    tracing::error!(%error, "no new commit log segment: writes are refused as long as there is none");
                }
                // The number is used again, so that numbers have no gap; unless a file with this number is left.
                if !error.is_already_exists() {
                    state.next_segment = segment;
                }
                Spare::Failed(error)
            }
        };
    }
}

fn create(
    shared: &Shared,
    segment: SegmentId,
    before: Option<SegmentId>,
) -> std::result::Result<Segment, ilion_env::Error> {
    let header = Header {
        segment,
        log_id: shared.log_id,
        segment_bytes: shared.options.segment_bytes,
        created_micros: shared.env.now_micros(),
        before: before_tag(before),
    };
    Segment::create(&*shared.env, &shared.dir, &header, shared.options.mode)
}
