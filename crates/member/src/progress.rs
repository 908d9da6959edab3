//! [`Progress`]: how far this node has applied each tablet, and who waits for that.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::facts::TabletFacts;

/// Called once: when a record is applied, or with the reason why it is not.
pub(crate) type AppliedCallback = Box<dyn FnOnce(Result<(), NotHere>) + Send>;

/// Why a record is not applied here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotHere {
    /// On no replica: its client is to blame.
    Refused(String),
    /// This node does not follow the tablet any more; other replicas apply it.
    Halted(String),
}

/// Refused records that are remembered for writers that learn of their places later.
const REFUSED_MAX: usize = 1024;

#[derive(Default)]
struct Tablet {
    /// The offset above the last record.
    end: u64,
    /// Its answers are as new as the log was when this node began to follow it.
    is_ready: bool,
    /// Why it is not followed any more.
    halted: Option<String>,
    /// Records that were refused lately.
    refused: BTreeMap<u64, String>,
    /// By offset.
    waiting: BTreeMap<u64, Vec<AppliedCallback>>,
}

/// The tablets that this node follows.
#[derive(Default)]
pub(crate) struct Progress {
    tablets: Mutex<BTreeMap<u32, Tablet>>,
}

impl Progress {
    /// This node follows a tablet from here on.
    pub fn begin(&self, tablet: u32, end: u64) {
        let mut tablets = self.tablets.lock();
        tablets.entry(tablet).or_default().end = end;
    }

    /// This node does not follow a tablet any more.
    pub fn leave(&self, tablet: u32) {
        let left = self.tablets.lock().remove(&tablet);
        if let Some(left) = left {
            answer(
                left.waiting,
                &Err(NotHere::Halted(
                    "this node is no replica of it any more".to_owned(),
                )),
            );
        }
    }

    /// Everything below this offset is applied.
    pub fn reach(&self, tablet: u32, end: u64) {
        let reached = {
            let mut tablets = self.tablets.lock();
            let Some(tablet) = tablets.get_mut(&tablet) else {
                return;
            };
            tablet.end = end;
            let later = tablet.waiting.split_off(&end);
            std::mem::replace(&mut tablet.waiting, later)
        };
        answer(reached, &Ok(()));
    }

    /// A record is not applied, on any replica. [`Self::reach`] follows.
    pub fn refuse(&self, tablet: u32, offset: u64, reason: String) {
        let refused = {
            let mut tablets = self.tablets.lock();
            let Some(tablet) = tablets.get_mut(&tablet) else {
                return;
            };
            if tablet.refused.len() >= REFUSED_MAX {
                tablet.refused.pop_first();
            }
            tablet.refused.insert(offset, reason.clone());
            tablet.waiting.remove(&offset)
        };
        let of_offset = refused.map(|callbacks| (offset, callbacks));
        answer(of_offset.into_iter().collect(), &Err(NotHere::Refused(reason)));
    }

    /// No more records of a tablet are applied.
    pub fn halt(&self, tablet: u32, reason: &str) {
        let waiting = {
            let mut tablets = self.tablets.lock();
            let tablet = tablets.entry(tablet).or_default();
            tablet.halted = Some(reason.to_owned());
            std::mem::take(&mut tablet.waiting)
        };
        answer(waiting, &Err(NotHere::Halted(reason.to_owned())));
    }

    /// Calls back when a record is applied. `None` returns the callback: this node does not follow the tablet.
    pub fn on_applied(&self, tablet: u32, offset: u64, callback: AppliedCallback) -> Option<AppliedCallback> {
        let answer = {
            let mut tablets = self.tablets.lock();
            let Some(tablet) = tablets.get_mut(&tablet) else {
                return Some(callback);
            };
            match &tablet.halted {
                _ if offset < tablet.end => match tablet.refused.get(&offset) {
                    Some(reason) => Err(NotHere::Refused(reason.clone())),
                    None => Ok(()),
                },
                Some(reason) => Err(NotHere::Halted(reason.clone())),
                None => {
                    tablet.waiting.entry(offset).or_default().push(callback);
                    return None;
                }
            }
        };
        callback(answer);
        None
    }

    /// Notes that a tablet has caught up with its log.
    pub fn is_caught_up(&self, tablet: u32) {
        if let Some(tablet) = self.tablets.lock().get_mut(&tablet) {
            tablet.is_ready = true;
        }
    }

    /// Whether this node may answer reads of a tablet.
    pub fn is_ready(&self, tablet: u32) -> bool {
        let tablets = self.tablets.lock();
        tablets
            .get(&tablet)
            .is_some_and(|tablet| tablet.is_ready && tablet.halted.is_none())
    }

    /// How far this node is with each tablet.
    pub fn facts(&self) -> Vec<TabletFacts> {
        let tablets = self.tablets.lock();
        let facts = tablets.iter().map(|(number, tablet)| TabletFacts {
            tablet: *number,
            applied: tablet.end,
            is_ready: tablet.is_ready && tablet.halted.is_none(),
            is_halted: tablet.halted.is_some(),
        });
        facts.collect()
    }

    /// Whether a tablet is not followed any more.
    pub fn is_halted(&self, tablet: u32) -> bool {
        let tablets = self.tablets.lock();
        tablets.get(&tablet).is_some_and(|tablet| tablet.halted.is_some())
    }
}

fn answer(waiting: BTreeMap<u64, Vec<AppliedCallback>>, result: &Result<(), NotHere>) {
    for callback in waiting.into_values().flatten() {
        callback(result.clone());
    }
}
