//! Changes of the schema: every log comes to the change, this node saves, and adopts it.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::time::Duration;

use ilion_cluster::Moment;
use ilion_query::StoreError;
use ilion_replica::{AdoptError, FencedChange};

use super::{AGAIN, Due, Follower};
use crate::meta::Unadopted;

/// The node that asked for a change of the schema fences the logs at once, the others after this time.
const FENCE_AFTER: Duration = Duration::from_millis(500);

impl Follower {
    /// Goes on with the next change of the schema: waits until every log has come to it, saves, and adopts it.
    pub(super) fn go_on_with_schema(&mut self, next: &Unadopted) -> Result<(), String> {
        // Tables are being copied with the schema that this node has.
        if self.is_copying() {
            return Ok(());
        }
        let is_blocked = |tablet: &u32| self.blocked.contains(tablet) || self.is_halted(*tablet);
        if !self.followed.iter().all(is_blocked) {
            self.fence_logs(next);
            return Ok(());
        }
        let Some(replica) = &mut self.replica else {
            return Ok(());
        };
        if !std::mem::replace(&mut self.is_taken_for_schema, true) {
            replica.take();
        }
        let epoch = next.epoch;
        match replica.save() {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) => {
                self.tell_of_retry(epoch, &error);
                return Ok(());
            }
        }
        let change = FencedChange::decode(&next.change).map_err(|error| {
            format!("the change to schema {epoch} is not understood ({error}): upgrade this node, and start it again")
        })?;
        let event = match replica.adopt(&change, next.time_micros) {
            Ok(event) => event,
            Err(AdoptError::Refused(error @ (StoreError::Schema(_) | StoreError::Invalid(_)))) => {
                return Err(format!(
                    "the change to schema {epoch} does not fit to what this node has: {error}"
                ));
            }
            Err(error) => {
                self.tell_of_retry(epoch, &error);
                return Ok(());
            }
        };
        // Cached rights go before the heartbeat that says that this node has the change: the coordinator then answers its client.
        if matches!(change, FencedChange::Roles(_) | FencedChange::Truncate(_)) {
            self.shared.tell_of_roles();
        }
        self.done_nanos.remove(&Due::Adopt);
        self.done_nanos.remove(&Due::Fence(epoch));
        self.meta.unadopted.pop_front();
        self.is_taken_for_schema = false;
        self.is_saving = false;
        // Nodes that wait for the saving that was under way must ask again, with the new schema.
        self.answer_copies();
        for tablet in std::mem::take(&mut self.blocked) {
            if let Some(replica) = &self.replica {
                self.tail.follow(tablet, replica.end(tablet));
            }
        }
        if self.meta.unadopted.is_empty() {
            self.beat();
        }
        self.publish(event.as_ref());
        Ok(())
    }

    /// Logs why a change of the schema is tried again: the first time, and now and then.
    fn tell_of_retry(&mut self, epoch: u64, error: &dyn Display) {
        let is_first = !self.done_nanos.contains_key(&Due::Adopt);
        if self.is_due(Due::Adopt, AGAIN) || is_first {
            tracing::warn!(epoch, %error, "a change of the schema is tried again");
        }
    }

    /// Makes sure that every log has a record that needs the next schema.
    fn fence_logs(&mut self, next: &Unadopted) {
        let is_first = !self.done_nanos.contains_key(&Due::Fence(next.epoch));
        let is_late = self.is_due(Due::Fence(next.epoch), FENCE_AFTER);
        let tablets: Vec<u32> = match next.is_own && is_first {
            // The node that asked fences the logs of the other nodes, too.
            true => self.tablets_with_replicas(),
            false if is_late => self.followed.difference(&self.blocked).copied().collect(),
            false => return,
        };
        for tablet in tablets {
            let unsent = self.fence(tablet);
            if let Err(error) = self.shared.sender.send(unsent, |_| {}, Box::new(|_| {})) {
                tracing::warn!(tablet, %error, "a fence is sent again");
            }
        }
    }

    /// The tablets that any node follows.
    fn tablets_with_replicas(&self) -> Vec<u32> {
        let replicas = self
            .meta
            .state
            .as_ref()
            .map(|state| state.all_replicas(Moment::Now));
        let with_replicas = replicas
            .into_iter()
            .flatten()
            .filter(|(_, nodes)| !nodes.is_empty());
        let tablets: BTreeSet<u32> = with_replicas.map(|(tablet, _)| tablet).collect();
        tablets.union(&self.followed).copied().collect()
    }
}
