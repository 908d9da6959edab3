//! [`Progress`]: how far this node has applied each tablet, and the callbacks that wait for that.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::facts::TabletFacts;

/// Called once: when a record is applied, or with the reason why it is not.
pub(crate) type AppliedCallback = Box<dyn FnOnce(Result<(), NotHere>) + Send>;

/// Why a record is not applied here: this node does not follow the tablet any more, or cannot apply records for now. Other replicas
/// apply it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotHere(pub String);

#[derive(Default)]
struct Tablet {
    /// The offset above the last record.
    end: u64,
    /// True once this node has applied all records that the log had when the node began to follow it, or resumed after a suspension.
    is_ready: bool,
    /// Why it is not followed any more.
    halted: Option<String>,
    /// Callbacks, by the offset that they wait for.
    waiting: BTreeMap<u64, Vec<AppliedCallback>>,
}

/// The tablets that this node follows.
#[derive(Default)]
pub(crate) struct Progress {
    all: Mutex<All>,
}

#[derive(Default)]
struct All {
    tablets: BTreeMap<u32, Tablet>,
    /// Why this node applies no records for now. `None`: it applies them.
    suspended: Option<String>,
    /// How often this node began to apply no records.
    suspensions: u64,
}

impl Progress {
    /// Notes that this node follows a tablet from this offset on.
    pub fn begin(&self, tablet: u32, end: u64) {
        self.all.lock().tablets.entry(tablet).or_default().end = end;
    }

    /// Notes that this node does not follow a tablet any more.
    pub fn leave(&self, tablet: u32) {
        let left = self.all.lock().tablets.remove(&tablet);
        if let Some(left) = left {
            answer(
                left.waiting,
                &Err(NotHere("this node is no replica of it any more".to_owned())),
            );
        }
    }

    /// Notes that everything below this offset is applied.
    pub fn reach(&self, tablet: u32, end: u64) {
        let reached = {
            let mut all = self.all.lock();
            let Some(tablet) = all.tablets.get_mut(&tablet) else {
                return;
            };
            tablet.end = end;
            let later = tablet.waiting.split_off(&end);
            std::mem::replace(&mut tablet.waiting, later)
        };
        answer(reached, &Ok(()));
    }

    /// Notes that no more records of a tablet are applied.
    pub fn halt(&self, tablet: u32, reason: &str) {
        let waiting = {
            let mut all = self.all.lock();
            let tablet = all.tablets.entry(tablet).or_default();
            tablet.halted = Some(reason.to_owned());
            std::mem::take(&mut tablet.waiting)
        };
        answer(waiting, &Err(NotHere(reason.to_owned())));
    }

    /// Notes that this node can apply no records for now: callbacks fail, and until [`Self::resume`] others are asked.
    pub fn suspend(&self, reason: &str) {
        let waiting: Vec<_> = {
            let mut all = self.all.lock();
            all.suspended = Some(reason.to_owned());
            all.suspensions += 1;
            let tablets = all.tablets.values_mut();
            tablets
                .map(|tablet| {
                    tablet.is_ready = false;
                    std::mem::take(&mut tablet.waiting)
                })
                .collect()
        };
        for waiting in waiting {
            answer(waiting, &Err(NotHere(reason.to_owned())));
        }
    }

    /// Notes that records are applied again. Tablets answer reads when they have caught up.
    pub fn resume(&self) {
        self.all.lock().suspended = None;
    }

    /// How often [`Self::suspend`] was called.
    pub fn suspensions(&self) -> u64 {
        self.all.lock().suspensions
    }

    /// Calls back when a record is applied. `None` returns the callback: this node does not follow the tablet.
    pub fn on_applied(&self, tablet: u32, offset: u64, callback: AppliedCallback) -> Option<AppliedCallback> {
        let answer = {
            let mut all = self.all.lock();
            let All {
                tablets, suspended, ..
            } = &mut *all;
            let Some(tablet) = tablets.get_mut(&tablet) else {
                return Some(callback);
            };
            match (&tablet.halted, &suspended) {
                // What it has applied before may be wrong.
                (Some(reason), _) => Err(NotHere(reason.clone())),
                _ if offset < tablet.end => Ok(()),
                (None, Some(reason)) => Err(NotHere(reason.clone())),
                (None, None) => {
                    tablet.waiting.entry(offset).or_default().push(callback);
                    return None;
                }
            }
        };
        callback(answer);
        None
    }

    /// Notes that a tablet has caught up with its log, as the log was after this many [`Self::suspensions`].
    pub fn is_caught_up(&self, tablet: u32, suspensions: u64) {
        let mut all = self.all.lock();
        let is_recent = all.suspensions == suspensions && all.suspended.is_none();
        if let (true, Some(tablet)) = (is_recent, all.tablets.get_mut(&tablet)) {
            tablet.is_ready = true;
        }
    }

    /// Whether this node may answer reads of a tablet.
    pub fn is_ready(&self, tablet: u32) -> bool {
        let all = self.all.lock();
        let tablet = all.tablets.get(&tablet);
        tablet.is_some_and(|tablet| tablet.is_ready && tablet.halted.is_none())
    }

    /// How far this node is with each tablet.
    pub fn facts(&self) -> Vec<TabletFacts> {
        let all = self.all.lock();
        let facts = all.tablets.iter().map(|(number, tablet)| TabletFacts {
            tablet: *number,
            applied: tablet.end,
            is_ready: tablet.is_ready && tablet.halted.is_none(),
            is_halted: tablet.halted.is_some(),
        });
        facts.collect()
    }

    /// A tablet that is not followed any more.
    pub fn any_halted(&self) -> Option<u32> {
        let all = self.all.lock();
        let mut halted = all.tablets.iter().filter(|(_, tablet)| tablet.halted.is_some());
        halted.next().map(|(number, _)| *number)
    }

    /// Whether a tablet is not followed any more.
    pub fn is_halted(&self, tablet: u32) -> bool {
        let all = self.all.lock();
        let tablet = all.tablets.get(&tablet);
        tablet.is_some_and(|tablet| tablet.halted.is_some())
    }
}

fn answer(waiting: BTreeMap<u64, Vec<AppliedCallback>>, result: &Result<(), NotHere>) {
    for callback in waiting.into_values().flatten() {
        callback(result.clone());
    }
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::{Receiver, bounded};

    use super::*;

    fn wait(progress: &Progress, offset: u64) -> Receiver<Result<(), NotHere>> {
        let (sender, receiver) = bounded(1);
        progress.on_applied(0, offset, Box::new(move |applied| drop(sender.send(applied))));
        receiver
    }

    #[test]
    fn nobody_waits_for_a_node_that_cannot_apply_records_for_now() {
        let progress = Progress::default();
        progress.begin(0, 5);
        progress.is_caught_up(0, 0);
        let early = wait(&progress, 5);
        progress.suspend("full");
        let full = Err(NotHere("full".to_owned()));
        assert_eq!(early.try_recv(), Ok(full.clone()));
        assert_eq!(wait(&progress, 6).try_recv(), Ok(full));
        assert_eq!(wait(&progress, 4).try_recv(), Ok(Ok(())), "it was applied before");
        assert!(!progress.is_ready(0));
        progress.resume();
        // What it had caught up with before says nothing.
        progress.is_caught_up(0, 0);
        assert!(!progress.is_ready(0));
        let late = wait(&progress, 6);
        progress.reach(0, 7);
        assert_eq!(late.try_recv(), Ok(Ok(())));
        progress.is_caught_up(0, progress.suspensions());
        assert!(progress.is_ready(0));
    }

    #[test]
    fn a_tablet_that_was_stopped_has_applied_nothing_that_counts() {
        let progress = Progress::default();
        progress.begin(0, 5);
        assert_eq!(wait(&progress, 4).try_recv(), Ok(Ok(())));
        progress.halt(0, "other outcomes");
        let stopped = Err(NotHere("other outcomes".to_owned()));
        assert_eq!(wait(&progress, 4).try_recv(), Ok(stopped));
    }
}
