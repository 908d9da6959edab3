//! [`PendingWrite`]: a write whose records are on their way; [`PendingCommand`]: a command without an outcome; [`PendingRead`]: a read that
//! waits for its barrier; [`Overdue`]: those that take too long.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock, Weak};

use ilion_commitlog::AppendError;
use ilion_coordinator::{Applied, AppliedCallback, BarrierError};
use ilion_query::{Acknowledged, AcknowledgedCallback, Error, Executed, StoreError};
use parking_lot::Mutex;

#[derive(Default)]
struct State {
    /// Records that are not settled.
    left: usize,
    /// The first failure.
    failure: Option<StoreError>,
    is_over: bool,
    callback: Option<AcknowledgedCallback>,
}

/// See the module.
pub(crate) struct PendingWrite {
    state: Mutex<State>,
}

impl PendingWrite {
    /// A write of this many records.
    pub fn new(records: usize) -> Arc<Self> {
        let state = State {
            left: records,
            ..State::default()
        };
        Arc::new(Self {
            state: Mutex::new(state),
        })
    }

    /// Settles one of its records.
    pub fn settle(&self, result: Result<(), StoreError>) {
        let mut state = self.state.lock();
        state.left = state.left.saturating_sub(1);
        if let Err(error) = result {
            state.failure.get_or_insert(error);
        }
        if state.left == 0 {
            finish(state);
        }
    }
}

impl GiveUp for PendingWrite {
    /// Records that are settled later change nothing.
    fn give_up(&self) {
        let mut state = self.state.lock();
        if !state.is_over {
            state.failure.get_or_insert(StoreError::WriteTimeout {
                received: 0,
                block_for: 1,
            });
            finish(state);
        }
    }
}

/// See the module.
pub(crate) struct PendingRead(Mutex<Option<AppliedCallback>>);

impl PendingRead {
    pub fn new(done: AppliedCallback) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Some(done))))
    }

    /// Ends the wait, once.
    pub fn settle(&self, applied: Applied) {
        let done = self.0.lock().take();
        if let Some(done) = done {
            done(applied);
        }
    }
}

impl GiveUp for PendingRead {
    fn give_up(&self) {
        self.settle(Err(BarrierError::TimedOut));
    }
}

/// The outcome of a command of this process.
pub(crate) type Outcome = Result<Executed, Error>;

/// Receives the outcome of a command, or the error of the log.
pub(crate) type CommandDone = Box<dyn FnOnce(Result<Outcome, AppendError>) + Send>;

/// Commands of this process without an outcome, by tablet and number.
pub(crate) type PendingCommands = Mutex<BTreeMap<(u32, u64), Arc<PendingCommand>>>;

/// See the module.
pub(crate) struct PendingCommand {
    all: Weak<PendingCommands>,
    /// The tablet and number under which it is among all.
    place: OnceLock<(u32, u64)>,
    done: Mutex<Option<CommandDone>>,
}

impl PendingCommand {
    pub fn new(all: &Arc<PendingCommands>, done: CommandDone) -> Arc<Self> {
        Arc::new(Self {
            all: Arc::downgrade(all),
            place: OnceLock::new(),
            done: Mutex::new(Some(done)),
        })
    }

    /// Adds it to the others under this tablet and number. To be called once, before its record is sent.
    pub fn note(pending: &Arc<Self>, place: (u32, u64)) {
        let place = *pending.place.get_or_init(|| place);
        if let Some(all) = pending.all.upgrade() {
            all.lock().insert(place, pending.clone());
        }
    }

    /// Ends it, once.
    pub fn settle(&self, answered: Result<Outcome, AppendError>) {
        if let (Some(all), Some(place)) = (self.all.upgrade(), self.place.get()) {
            all.lock().remove(place);
        }
        let done = self.done.lock().take();
        if let Some(done) = done {
            done(answered);
        }
    }
}

impl GiveUp for PendingCommand {
    fn give_up(&self) {
        self.settle(Err(no_outcome()));
    }
}

/// The error for a command that may be executed later.
pub(crate) fn no_outcome() -> AppendError {
    AppendError::Unknown("no outcome in time".to_owned())
}

/// What ends when its time is over.
pub(crate) trait GiveUp: Send + Sync {
    /// Ends it because its time is over.
    fn give_up(&self);
}

fn finish(mut state: parking_lot::MutexGuard<'_, State>) {
    if std::mem::replace(&mut state.is_over, true) {
        return;
    }
    let Some(callback) = state.callback.take() else {
        return;
    };
    let result = state.failure.take().map_or(Ok(()), Err);
    drop(state);
    callback(result);
}

impl Acknowledged for PendingWrite {
    fn on_done(&self, callback: AcknowledgedCallback) {
        let mut state = self.state.lock();
        if !state.is_over {
            state.callback = Some(callback);
            return;
        }
        let result = state.failure.take().map_or(Ok(()), Err);
        drop(state);
        callback(result);
    }
}

/// Writes or reads by the time at which they are given up. All wait about equally long, so the first one is over first.
#[derive(Default)]
pub(crate) struct Overdue {
    watched: Mutex<Watched>,
}

#[derive(Default)]
struct Watched {
    pending: VecDeque<(u64, Weak<dyn GiveUp>)>,
    /// True if no thread gives them up any more.
    is_closed: bool,
}

impl Overdue {
    /// Gives it up at this time, unless it is over.
    pub fn watch<T: GiveUp + 'static>(&self, ends_nanos: u64, pending: &Arc<T>) {
        let mut watched = self.watched.lock();
        if watched.is_closed {
            drop(watched);
            return pending.give_up();
        }
        let pending: Weak<T> = Arc::downgrade(pending);
        watched.pending.push_back((ends_nanos, pending));
    }

    /// Gives up all, also those that come later: nobody applies records any more.
    pub fn close(&self) {
        self.watched.lock().is_closed = true;
        self.give_up_until(u64::MAX);
    }

    /// Gives up those whose time is over.
    pub fn give_up_until(&self, now_nanos: u64) {
        loop {
            let first = self.watched.lock().pending.pop_front_if(|(ends, pending)| {
                // Most have ended long before.
                *ends <= now_nanos || pending.strong_count() == 0
            });
            match first {
                None => return,
                Some((_, pending)) => drop(pending.upgrade().map(|pending| pending.give_up())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    use super::*;

    fn count(write: &PendingWrite, failures: &Arc<AtomicU32>) {
        let failures = failures.clone();
        write.on_done(Box::new(move |done| {
            failures.fetch_add(if done.is_ok() { 1 } else { 100 }, SeqCst);
        }));
    }

    #[test]
    fn a_write_is_done_once_with_all_of_its_records() {
        let calls = Arc::new(AtomicU32::new(0));
        let write = PendingWrite::new(2);
        count(&write, &calls);
        write.settle(Ok(()));
        assert_eq!(calls.load(SeqCst), 0);
        write.settle(Ok(()));
        write.give_up();
        assert_eq!(calls.load(SeqCst), 1);
        // What is over before somebody waits is told at once.
        let failed = PendingWrite::new(1);
        failed.settle(Err(StoreError::Invalid("no".to_owned())));
        count(&failed, &calls);
        assert_eq!(calls.load(SeqCst), 101);
    }

    #[test]
    fn a_read_that_takes_too_long_is_given_up_and_ends_once() {
        let (seen, overdue) = (Arc::new(Mutex::new(Vec::new())), Overdue::default());
        let reads = [10, 20].map(|ends| {
            let seen = seen.clone();
            let read = PendingRead::new(Box::new(move |applied| seen.lock().push((ends, applied))));
            overdue.watch(ends, &read);
            read
        });
        reads[1].settle(Ok(Ok(())));
        overdue.give_up_until(30);
        reads[0].settle(Ok(Ok(())));
        let timed_out = Err(BarrierError::TimedOut);
        assert_eq!(*seen.lock(), [(20, Ok(Ok(()))), (10, timed_out)]);
    }

    #[test]
    fn a_command_ends_once_and_is_then_forgotten() {
        let (seen, overdue) = (Arc::new(Mutex::new(Vec::new())), Overdue::default());
        let all = Arc::<PendingCommands>::default();
        let commands = [1, 2, 3].map(|number| {
            let seen = seen.clone();
            let done =
                move |answered: Result<Outcome, AppendError>| seen.lock().push((number, answered.is_ok()));
            let command = PendingCommand::new(&all, Box::new(done));
            PendingCommand::note(&command, (7, number));
            overdue.watch(10, &command);
            command
        });
        let known = all.lock().remove(&(7, 1)).unwrap();
        known.settle(Ok(Err(Error::Overtaken)));
        commands[1].settle(Err(no_outcome()));
        assert_eq!(all.lock().keys().collect::<Vec<_>>(), [&(7, 3)]);
        overdue.give_up_until(10);
        commands[0].settle(Err(no_outcome()));
        assert_eq!(*seen.lock(), [(1, true), (2, false), (3, false)]);
        assert!(all.lock().is_empty());
    }

    #[test]
    fn a_write_that_takes_too_long_is_given_up() {
        let (calls, overdue) = (Arc::new(AtomicU32::new(0)), Overdue::default());
        let (slow, done) = (PendingWrite::new(1), PendingWrite::new(1));
        for (ends, write) in [(10, &slow), (20, &done)] {
            overdue.watch(ends, write);
            count(write, &calls);
        }
        done.settle(Ok(()));
        overdue.give_up_until(9);
        assert_eq!(calls.load(SeqCst), 1);
        overdue.give_up_until(30);
        assert_eq!(calls.load(SeqCst), 101);
        // A node that stops gives up what is on its way, and what comes.
        let (early, late) = (PendingWrite::new(1), PendingWrite::new(1));
        count(&early, &calls);
        overdue.watch(40, &early);
        overdue.close();
        overdue.watch(50, &late);
        count(&late, &calls);
        assert_eq!(calls.load(SeqCst), 301);
    }
}
