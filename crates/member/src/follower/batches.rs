//! Logged batches: the follower tells their homes which are finished, and sends the parts that a coordinator did not send.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ilion_commitlog::Kind;
use ilion_replica::{BatchId, encode_done};

use super::{AGAIN, Due, Follower};
use crate::logged;
use crate::sender::Unsent;
use crate::shared::nanos;

/// How often the follower reports finished batches to their homes.
const TELL: Duration = Duration::from_millis(100);
/// How often unfinished batches are looked for.
const LOOK: Duration = Duration::from_secs(1);

impl Follower {
    pub(super) fn work_on_batches(&mut self) {
        if self.is_due(Due::TellBatches, TELL) {
            self.tell_finished();
        }
        let after = self.shared.options.finish_batches_after;
        if self.is_due(Due::FinishBatches, LOOK.min(after)) {
            self.finish_batches(nanos(after));
        }
    }

    /// Tells the homes of batches that they are finished. If a report is lost, the parts of the batch are sent once more.
    fn tell_finished(&self) {
        let finished = std::mem::take(&mut *self.shared.finished.lock());
        let mut by_home: BTreeMap<u32, Vec<BatchId>> = BTreeMap::new();
        for (home, id) in finished {
            by_home.entry(home).or_default().push(id);
        }
        for (home, ids) in by_home {
            let now = self.shared.now_nanos();
            let Ok(origin) = self.shared.sender.number(home, now) else {
                let mut finished = self.shared.finished.lock();
                finished.extend(ids.into_iter().map(|id| (home, id)));
                continue;
            };
            let unsent = Unsent {
                log: home,
                kind: Kind::BatchesDone,
                schema_epoch: 0,
                body: encode_done(&ids).into(),
                ends_nanos: now + nanos(AGAIN),
            };
            self.shared.sender.send_as(unsent, origin, Box::new(|_| {}));
        }
    }

    /// Sends the parts of batches whose coordinator has not sent them for too long, if this node is the one that does this.
    fn finish_batches(&mut self, after_nanos: u64) {
        let (Some(replica), Some(node)) = (&self.replica, self.meta.node) else {
            return;
        };
        let now = self.shared.now_nanos();
        let unfinished: BTreeSet<(u32, BatchId)> = replica
            .unfinished()
            .filter(|(home, _)| self.followed.contains(home))
            .collect();
        self.batches.retain(|batch, _| unfinished.contains(batch));
        for (home, id) in unfinished {
            let seen = self.batches.entry((home, id)).or_insert(now);
            let is_overdue = now.saturating_sub(*seen) >= after_nanos;
            // The first replica that is up does it, so that usually only one does.
            if !is_overdue || self.shared.replicas_of(home).first() != Some(&node) {
                continue;
            }
            let Some(batch) = replica.unfinished_batch(home, id) else {
                continue;
            };
            tracing::info!(
                home,
                parts = batch.others.parts.len(),
                "the parts of a batch are sent that its coordinator did not send"
            );
            *seen = now;
            let ends = now + nanos(AGAIN);
            let sent = logged::finish(&self.shared, home, id, batch.schema_epoch, &batch.others, ends);
            if let Err(error) = sent {
                tracing::warn!(home, %error, "a batch is finished later");
            }
        }
    }
}
