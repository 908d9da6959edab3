//! Tablets that this node copies from others, and others from it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ilion_cluster::{ClusterState, Moment, Node, TransitionKind};

use super::{Due, Follower};
use crate::copying::{Beginning, CopyJob, Done, Holders, Job, Judged, beginning_of, judge, sources_of};

/// Tablets that no node gave are asked for again after this time, which doubles up to `RETRY_MAX`. The schema of a node that cannot give
/// them because of a change is usually the same a moment later.
const RETRY_MIN: Duration = Duration::from_millis(10);
const RETRY_MAX: Duration = Duration::from_millis(500);
/// How often a message says that no node gives a copy.
const TELL: Duration = Duration::from_secs(10);

impl Follower {
    /// Begins to follow tablets.
    pub(super) fn begin_tablets(&mut self, state: &ClusterState, tablets: &BTreeMap<u32, Holders>) {
        let Some(replica) = &mut self.replica else {
            return;
        };
        let (mut followed, mut rests) = (Vec::new(), BTreeMap::new());
        for (tablet, holders) in tablets {
            let own = replica.has(*tablet).then(|| replica.end(*tablet));
            let holders = match self.copies.clearing.contains(tablet) {
                true => Holders::Others,
                false => *holders,
            };
            let trimmed = state.trimmed(*tablet).segment.0;
            match beginning_of(own, trimmed, holders) {
                Beginning::OfLog => followed.push(*tablet),
                Beginning::OfRest => {
                    rests.insert(*tablet, trimmed);
                }
                Beginning::Copied => {
                    // Otherwise this node has never had the tablet.
                    if own.is_some() {
                        say_trimmed(*tablet);
                    }
                    self.copies.wanted.insert(*tablet);
                    self.copies.refusals = 0;
                }
            }
        }
        match replica.begin(&rests, state.schema.epoch) {
            Ok(()) => followed.extend(rests.keys()),
            Err(error) => {
                tracing::warn!(%error, "new tablets are copied from other nodes");
                self.copies.wanted.extend(rests.keys());
            }
        }
        followed.into_iter().for_each(|tablet| self.follow_log(tablet));
    }

    /// Handles a log whose beginning is deleted although this node needs it.
    pub(super) fn lose_beginning(&mut self, tablet: u32) {
        say_trimmed(tablet);
        self.leave(tablet);
        self.copies.wanted.insert(tablet);
    }

    /// Forgets copies of tablets that are not wanted any more.
    pub(super) fn keep_copies(&mut self, wanted: &BTreeSet<u32>) {
        self.copies.wanted.retain(|tablet| wanted.contains(tablet));
        self.copies.running.retain(|tablet| wanted.contains(tablet));
    }

    /// Whether this node lacks tablets.
    pub(super) fn lacks_copies(&self) -> bool {
        !self.copies.wanted.is_empty()
    }

    /// Whether tables are being copied.
    pub(super) fn is_copying(&self) -> bool {
        !self.copies.running.is_empty()
    }

    /// Does the work that is due for copies.
    pub(super) fn work_on_copies(&mut self) {
        self.take_done();
        self.start_copies();
        self.judge_asked();
        self.start_cleaning();
    }

    /// Starts copies, all at once. Tables are copied by one schema, so changes of it wait until the copies have ended.
    fn start_copies(&mut self) {
        let is_idle = self.copies.running.is_empty() && self.copies.arrived.is_empty();
        if !self.lacks_copies() || !is_idle || !self.meta.unadopted.is_empty() {
            return;
        }
        if !self.is_due_first(Due::Copy, retry_after(self.copies.refusals)) {
            return;
        }
        let (Some(state), Some(node)) = (self.meta.state.clone(), self.meta.node) else {
            return;
        };
        let Some(replica) = &mut self.replica else {
            return;
        };
        if let Err(error) = replica.forget(&self.copies.wanted) {
            tracing::warn!(%error, "tablets are copied later");
            return;
        }
        let replicas = state.all_replicas(Moment::Now);
        let none = BTreeSet::new();
        let is_up = |node: &Node| self.shared.is_up(&state, *node);
        let sources = self.copies.wanted.iter().map(|tablet| {
            let replicas = replicas.get(tablet).unwrap_or(&none);
            (*tablet, sources_of(replicas, node, *tablet, is_up))
        });
        let job = CopyJob {
            cluster: state.cluster,
            ring: state.tablets,
            schema_epoch: replica.schema_epoch(),
            sources: sources.collect(),
            is_stuck: is_stuck(self.copies.refusals),
        };
        self.copies.running.clone_from(&self.copies.wanted);
        self.worker.ask(Job::Copy(job));
    }

    /// Follows the logs of tablets whose copies have arrived.
    fn take_done(&mut self) {
        while let Ok(done) = self.worker.done.try_recv() {
            match done {
                // Tablets that are not wanted any more are copied anew if they are wanted again.
                Done::Copied(mut state) => {
                    state.retain(&self.copies.wanted);
                    self.copies.arrived.push(state);
                }
                Done::NotCopied(tablets) => self.do_without(&tablets),
                Done::Cleared(result) => {
                    self.copies.clearing.clear();
                    for waiting in self.copies.cleaning.drain(..) {
                        // The caller may have gone.
                        drop(waiting.send(result.clone()));
                    }
                }
            }
        }
        for state in std::mem::take(&mut self.copies.arrived) {
            let Some(replica) = &mut self.replica else {
                return;
            };
            if let Err(error) = replica.take_over(&state) {
                tracing::warn!(%error, "tablets that were copied are used later");
                self.copies.arrived.push(state);
                continue;
            }
            for (tablet, _) in state.ends() {
                self.copies.running.remove(&tablet);
                if self.copies.wanted.remove(&tablet) {
                    self.follow_log(tablet);
                }
            }
            self.tell_flushed();
        }
    }

    /// Goes on without copies of tablets that no node gave. A tablet whose only replica is the lost node that this one replaces is read from the
    /// beginning of its log, if the log still has it. Other tablets wait for their replicas: commands in the log may be older than this node's
    /// schema, and would have other outcomes here than on the replicas, and rows that TRUNCATE removed would come back.
    fn do_without(&mut self, tablets: &BTreeSet<u32>) {
        self.copies.refusals = match tablets.is_empty() {
            true => 0,
            false => self.copies.refusals.saturating_add(1),
        };
        let Some(state) = self.meta.state.clone() else {
            return;
        };
        let replicas = state.all_replicas(Moment::Now);
        let lost = self.replaced(&state);
        // A replica that is down comes back, or is replaced.
        let is_other = |node: &Node| Some(*node) != self.meta.node && Some(*node) != lost;
        let has_other = |tablet: &u32| {
            replicas
                .get(tablet)
                .is_some_and(|nodes| nodes.iter().any(is_other))
        };
        let others: BTreeSet<u32> = tablets.iter().copied().filter(has_other).collect();
        for tablet in tablets {
            self.copies.running.remove(tablet);
            let is_whole = state.trimmed(*tablet).segment.0 == 0 && !others.contains(tablet);
            if is_whole && self.copies.wanted.remove(tablet) {
                self.follow_log(*tablet);
            }
        }
        if self.lacks_copies() && is_stuck(self.copies.refusals) && self.is_due_first(Due::TellLacking, TELL)
        {
            self.tell_lacking(&state);
        }
    }

    /// The lost node whose place this one takes.
    fn replaced(&self, state: &ClusterState) -> Option<Node> {
        match state.transition.as_ref()?.kind {
            TransitionKind::Join { node, replaces } if Some(node) == self.meta.node => replaces,
            _ => None,
        }
    }

    /// Prints what this node waits for, and what an operator can do.
    fn tell_lacking(&self, state: &ClusterState) {
        let replicas = state.all_replicas(Moment::Now);
        let of_wanted = self
            .copies
            .wanted
            .iter()
            .filter_map(|tablet| replicas.get(tablet));
        let others: BTreeSet<Node> = of_wanted
            .flatten()
            .copied()
            .filter(|node| Some(*node) != self.meta.node)
            .collect();
        let others: Vec<String> = others
            .into_iter()
            .filter_map(|node| {
                let up = match self.shared.is_up(state, node) {
                    true => "up",
                    false => "down",
                };
                Some(format!("{} ({up})", state.members.get(&node)?.endpoint.ip))
            })
            .collect();
        tracing::warn!(
            tablets = ?self.copies.wanted,
            replicas = ?others,
            "no node gives these tablets, which this one lacks. It takes part once it has them, and asks these replicas again and again. If \
             all of them are lost for good, so are the tablets: drop the keyspaces whose replicas are all lost (DROP KEYSPACE, on a node \
             that is up), and restore them from a backup"
        );
    }

    /// Finds the requests of others that can be answered with the next saving.
    fn judge_asked(&mut self) {
        self.copies.asked.append(&mut self.shared.copies.lock());
        if self.copies.asked.is_empty() {
            return;
        }
        let is_changing = !self.meta.unadopted.is_empty();
        let Some(replica) = &self.replica else {
            return;
        };
        let has = |tablet: &&u32| replica.has(**tablet) && !self.is_halted(**tablet);
        let followed = self.followed.iter().filter(has);
        let ends: BTreeMap<u32, u64> = followed.map(|tablet| (*tablet, replica.end(*tablet))).collect();
        let (epoch, now) = (replica.schema_epoch(), self.shared.now_nanos());
        for mut asked in std::mem::take(&mut self.copies.asked) {
            let judged = match is_changing {
                true => Err("the schema of this node is changing".to_owned()),
                false => judge(&mut asked.request, epoch, &ends),
            };
            match judged {
                // The node that asked does not wait any more.
                _ if asked.ends_nanos < now => {}
                Ok(Judged::Save) => self.copies.unsaved.push(asked),
                Ok(Judged::Wait) => self.copies.asked.push(asked),
                Err(reason) => drop(asked.reply.send(Err(reason))),
            }
        }
    }

    /// Removes the data of tablets that this node does not hold, if somebody has asked for it.
    fn start_cleaning(&mut self) {
        let is_idle = self.copies.clearing.is_empty();
        let Some(state) = self
            .meta
            .state
            .clone()
            .filter(|_| is_idle && self.placement.is_some())
        else {
            return;
        };
        let mut asked = std::mem::take(&mut *self.shared.cleanings.lock());
        if asked.is_empty() {
            return;
        }
        let is_held = |tablet: &u32| self.followed.contains(tablet) || self.copies.wanted.contains(tablet);
        let tablets: BTreeSet<u32> = (0..state.tablets.count())
            .filter(|tablet| !is_held(tablet))
            .collect();
        self.copies.clearing.clone_from(&tablets);
        self.copies.cleaning.append(&mut asked);
        self.worker.ask(Job::Clear(tablets, state.tablets));
    }

    /// Whether others wait for a saving.
    pub(super) fn is_saving_asked(&self) -> bool {
        !self.copies.unsaved.is_empty()
    }

    /// Notes that the saving that begins now has what these requests want.
    pub(super) fn begin_saving_for_copies(&mut self) {
        self.copies.saving.append(&mut self.copies.unsaved);
    }

    /// Answers the requests that waited for this saving.
    pub(super) fn answer_copies(&mut self) {
        for asked in std::mem::take(&mut self.copies.saving) {
            let tablets = asked.request.tablets.iter().map(|(tablet, _)| *tablet).collect();
            let state = self
                .replica
                .as_ref()
                .and_then(|replica| replica.saved_state(&tablets));
            let state = state.filter(|state| state.schema_epoch() == asked.request.schema_epoch);
            let answer = state.ok_or_else(|| "this node does not have all of it any more".to_owned());
            // The node that asked may have gone.
            drop(asked.reply.send(answer));
        }
    }
}

/// How long after an attempt the next one begins, if so many have failed one after another.
fn retry_after(refusals: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(refusals.saturating_sub(1));
    RETRY_MIN.saturating_mul(doubled).min(RETRY_MAX)
}

/// Whether so many failures are worth a message.
fn is_stuck(refusals: u32) -> bool {
    retry_after(refusals) == RETRY_MAX
}

fn say_trimmed(tablet: u32) {
    tracing::warn!(
        tablet,
        "the log of a tablet was trimmed while this node was away: it is copied from another node"
    );
}
