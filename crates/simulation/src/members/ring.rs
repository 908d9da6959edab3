//! Changes of the ring during a run: a node joins, leaves, or loses its disk and is replaced. One change at a time.

use std::sync::Arc;

use ilion_cluster::{ClusterState, TransitionKind};
use ilion_env::MemEnv;
use ilion_member::Replaced;
use parking_lot::Mutex;

use super::node::SimNode;
use super::ring_work::{RingWork, host_of};
use super::world::World;
use crate::plan::Fault;

/// Places for nodes: those of nodes that have left stay empty.
const PLACES_MAX: usize = 6;
/// A cluster does not shrink below this, nor below the number of its replicas. The last step from three nodes to two hands slices to two
/// nodes at once.
const NODES_MIN: usize = 2;
/// A node that is silent for so long counts as lost: longer than `silence_max` of the members.
const LOST_AFTER_MICROS: i64 = 2_500_000;
/// The name of a task that cancels a change of the ring.
const CANCEL: &str = "cancel";

impl World {
    /// Begins a change of the ring, unless one is under way.
    pub fn change_ring(&mut self) {
        if self.ring_work.is_some() {
            return;
        }
        let places = self.places();
        let chosen = places[self.random.below(places.len() as u64) as usize];
        let has_room = self.nodes.len() < PLACES_MAX;
        self.ring_work = match self.random.below(3) {
            0 if has_room && self.replicas > 1 && self.is_whole() => {
                self.note_crash(chosen);
                self.nodes[chosen].lose_disk();
                Some(RingWork::IsLost(chosen, self.now_micros()))
            }
            1 if places.len() > self.replicas.max(NODES_MIN) => {
                let work = self.leave(chosen);
                // A node that takes slices over may be down, and then copy what the logs no longer have.
                let other = self.choose_place();
                if other != chosen && work.is_some() && self.random.one_in(2) {
                    self.delete_what_is_old(chosen);
                    self.lose_power(other);
                }
                work
            }
            // A cluster has at most as many nodes as tablets.
            _ if has_room && places.len() < self.cluster.tablets as usize => {
                Some(RingWork::Joins(self.add(None)))
            }
            _ => None,
        };
    }

    /// Goes on with the change that is under way.
    pub fn go_on_with_ring(&mut self) {
        match &self.ring_work {
            Some(RingWork::Joins(place)) if self.nodes[*place].is_gone() => self.ring_work = None,
            Some(RingWork::Joins(place)) if self.nodes[*place].process().is_some() => {
                self.history.ran.joins += 1;
                self.ring_work = None;
            }
            Some(RingWork::Leaves(place, outcome)) => {
                let is_gone = self.nodes[*place].is_gone();
                let is_changing = self
                    .newest_state()
                    .is_some_and(|state| state.transition.is_some());
                if is_gone || *outcome.lock() && !is_changing {
                    self.ring_work = None;
                }
            }
            Some(RingWork::IsLost(place, at)) if self.now_micros() - at > LOST_AFTER_MICROS => {
                let lost = host_of(*place);
                self.ring_work = Some(RingWork::Joins(self.add(Some(Replaced::Host(lost)))));
            }
            Some(RingWork::Joins(_)) if self.random.one_in(500) => self.cancel_leave(),
            None if self.plan.has(Fault::OldLevel) => self.cancel_join_of_nobody(),
            _ => {}
        }
    }

    /// Cancels the join of a node that nobody runs, as an operator does: below the newest feature level, a late copy of its request begins
    /// a cancelled join again.
    fn cancel_join_of_nobody(&self) {
        let Some(state) = self.newest_state() else { return };
        let Some(TransitionKind::Join { node, .. }) =
            state.transition.as_ref().map(|transition| &transition.kind)
        else {
            return;
        };
        let host = state.members.get(node).map(|member| member.host);
        let is_it = |place: &usize| Some(host_of(*place)) == host;
        let place = (0..self.nodes.len()).find(is_it);
        let is_nobody = place.is_some_and(|place| self.nodes[place].is_gone());
        if is_nobody && !self.cluster.turns.names().iter().any(|name| name == CANCEL) {
            self.cancel();
        }
    }

    /// Cancels the leaving of a node, as an operator does who must replace a lost node first: the lost one cannot take slices over.
    fn cancel_leave(&self) {
        let transition = self.newest_state().and_then(|state| state.transition.clone());
        if !transition.is_some_and(|transition| matches!(transition.kind, TransitionKind::Leave { .. })) {
            return;
        }
        self.cancel();
    }

    /// Cancels the change of the ring that is under way. If that fails, another attempt follows.
    fn cancel(&self) {
        let serving = self.nodes.iter().filter(|node| node.process().is_some());
        if let Some(member) = serving.filter_map(SimNode::member).next() {
            self.cluster.spawn(CANCEL, move || drop(member.ring().cancel()));
        }
    }

    /// Starts a node with an empty disk, at the next place.
    fn add(&mut self, replaces: Option<Replaced>) -> usize {
        let place = self.nodes.len();
        let env = MemEnv::new(self.random.next_u64());
        env.set_micros(self.now_micros());
        self.nodes
            .push(SimNode::new(place, &self.cluster, env, replaces, false));
        place
    }

    /// Has a node leave. `None`: it is not up.
    fn leave(&self, place: usize) -> Option<RingWork> {
        let node = &self.nodes[place];
        let member = node.member().filter(|_| node.process().is_some())?;
        let outcome: Arc<Mutex<bool>> = Arc::default();
        let of_task = outcome.clone();
        let body = move || {
            // The ring shows what became of it.
            drop(member.ring().leave(false));
            *of_task.lock() = true;
        };
        self.cluster.spawn("leave", body);
        Some(RingWork::Leaves(place, outcome))
    }

    /// The state of the cluster that the node which has read most of the meta log knows.
    pub fn newest_state(&self) -> Option<Arc<ClusterState>> {
        let members = self.nodes.iter().filter_map(SimNode::member);
        let states = members.filter_map(|member| member.state());
        states.max_by_key(|state| state.position)
    }

    /// True if no change of the ring is under way, as far as any node knows.
    pub fn is_ring_at_rest(&self) -> bool {
        let is_at_rest = |state: Arc<ClusterState>| state.transition.is_none();
        self.ring_work.is_none() && self.newest_state().is_none_or(is_at_rest)
    }

    /// True if no node is down, and none lacks data: then no data is on one node only.
    pub fn is_whole(&self) -> bool {
        self.places().iter().all(|place| {
            let node = &self.nodes[*place];
            node.process().is_some() && node.member().is_some_and(|member| member.lacking() == 0)
        })
    }

    pub fn now_micros(&self) -> i64 {
        self.cluster.logs.now_micros()
    }

    /// The places of nodes that are members.
    pub fn places(&self) -> Vec<usize> {
        let places = 0..self.nodes.len();
        places.filter(|place| !self.nodes[*place].is_gone()).collect()
    }
}
