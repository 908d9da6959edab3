//! Applying what was read of the logs of tablets.

use std::sync::atomic::Ordering::Relaxed;

use ilion_commitlog::{ENVELOPE_BYTES, Record as LogRecord};
use ilion_engine::TabletPosition;
use ilion_replica::{Applied, NotApplied, Replica};

use super::{Follower, gap};
use crate::facts::add_one;

impl Follower {
    /// Whether what was read of a tablet's log is for this node, and new to it: records that were on their way when the log was left or
    /// begun anew are dropped. `from` and `to`: what was read begins and ends there. Stops following the tablet if records are missing.
    fn wants(&mut self, tablet: u32, from: u64, to: u64) -> bool {
        let Some(replica) = &self.replica else {
            return false;
        };
        let is_read = self.followed.contains(&tablet) && !self.blocked.contains(&tablet);
        let next = replica.end(tablet);
        if !is_read || replica.halted(tablet).is_some() || to <= next {
            return false;
        }
        if from <= next {
            return true;
        }
        // While the node stops, records before it may not have been applied any more.
        if !self.shared.is_stopping.load(Relaxed) {
            let reason = gap(&format!("log of tablet {tablet}"), next, from);
            tracing::error!(tablet, %reason, "a tablet is not followed any more");
            self.tail.leave(tablet);
            self.shared.progress.halt(tablet, &reason);
        }
        false
    }

    /// Applies a record. `from`: the log has no others from this offset on.
    pub(super) fn apply(&mut self, from: u64, position: TabletPosition, record: &LogRecord) {
        let TabletPosition { tablet, offset } = position;
        if !self.wants(tablet, from, offset + 1) {
            return;
        }
        let Some(applied) = self.on_replica(tablet, |replica| {
            replica.apply(position, record.time_micros, record)
        }) else {
            return;
        };
        self.unsaved_bytes += (record.body.len() + ENVELOPE_BYTES) as u64;
        let origin = (Some(record.origin.node), Some(record.origin.incarnation));
        if let Applied::Executed(outcome) = applied
            && origin == (self.meta.node, self.meta.incarnation)
        {
            let waiting = self.shared.commands.lock().remove(&(tablet, record.origin.seq));
            if let Some(waiting) = waiting {
                waiting.settle(Ok(outcome));
            }
        }
        add_one(&self.shared.counting.applied);
        self.shared.progress.reach(tablet, offset + 1);
    }

    /// Notes that a tablet's log has no records from one offset up to another.
    pub(super) fn pass(&mut self, tablet: u32, from: u64, to: u64) {
        if !self.wants(tablet, from, to) {
            return;
        }
        if self
            .on_replica(tablet, |replica| replica.pass(tablet, to))
            .is_some()
        {
            // So that it is saved, and the log can be trimmed.
            self.unsaved_bytes += 1;
            self.shared.progress.reach(tablet, to);
        }
    }

    /// Lets the replica do something until it succeeds. `None`: the tablet is not followed any more or for now, or this node stops.
    fn on_replica<T>(
        &mut self,
        tablet: u32,
        mut action: impl FnMut(&mut Replica) -> Result<T, NotApplied>,
    ) -> Option<T> {
        loop {
            match action(self.replica.as_mut()?) {
                Ok(done) => {
                    self.suspension.end(&self.shared);
                    return Some(done);
                }
                Err(NotApplied::Schema(_)) => {
                    self.blocked.insert(tablet);
                    self.tail.leave(tablet);
                    return None;
                }
                Err(NotApplied::Halted(reason)) => {
                    self.tail.leave(tablet);
                    self.shared.progress.halt(tablet, &reason);
                    return None;
                }
                Err(NotApplied::Later(reason)) => {
                    if self.shared.is_stopping.load(Relaxed) {
                        return None;
                    }
                    tracing::debug!(tablet, %reason, "a record is applied later");
                    self.suspension.go_on(&self.shared, &reason);
                }
            }
        }
    }
}
