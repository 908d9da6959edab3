//! Outages during a run: nodes that lose their power, perhaps for a while in which logs delete what they have not read, and disks that are
//! full.

use std::collections::BTreeMap;

use ilion_cluster::{ClusterState, META_TABLET, Node};

use super::ring_work::host_of;
use super::world::World;
use crate::plan::Fault;

/// Maximum length of an outage: longer than `down_max` of the cluster, after which the others trim the logs.
const OUTAGE_MICROS_MAX: u64 = 1_500_000;

impl World {
    /// A node loses its power. In two of three cases it stays down for a while, unless another one is down for a while: most requests would
    /// fail.
    pub fn lose_power(&mut self, place: usize) {
        if !self.plan.has(Fault::PowerLoss) {
            return;
        }
        let is_short = self.random.one_in(3) || !self.plan.has(Fault::Outage);
        let micros = self.random.below(OUTAGE_MICROS_MAX) as i64;
        self.note_crash(place);
        if self.random.one_in(2) {
            self.nodes[place].upgrade();
        }
        if is_short || self.nodes.iter().any(|node| node.off_until_micros().is_some()) {
            self.nodes[place].crash(&mut self.random);
            return;
        }
        self.history.ran.outages += 1;
        let until = self.now_micros() + micros;
        self.nodes[place].lose_power_until(&mut self.random, until);
    }

    /// All nodes lose their power at once, and start again.
    pub fn lose_all_power(&mut self) {
        if !self.plan.has(Fault::PowerLoss) {
            return;
        }
        for place in self.places() {
            if self.nodes[place].off_until_micros().is_none() {
                self.note_crash(place);
                self.nodes[place].crash(&mut self.random);
            }
        }
    }

    /// Starts the nodes whose outage is over.
    pub fn end_outages(&mut self) {
        let now = self.now_micros();
        for place in 0..self.nodes.len() {
            if self.nodes[place]
                .off_until_micros()
                .is_some_and(|until| until <= now)
            {
                if self.random.one_in(2) {
                    self.delete_what_is_old(place);
                }
                self.nodes[place].end_outage();
            }
        }
    }

    /// Deletes the beginnings of logs, as if the time for which they are kept had passed: the meta log up to exactly what the node has
    /// saved, and each tablet up to what two replicas have on disk, since one of them may lose its disk. A tablet with one replica, whose disk
    /// is never lost: up to what that replica has on disk.
    pub fn delete_what_is_old(&mut self, place: usize) {
        let Some(state) = self.newest_state().filter(|_| self.plan.has(Fault::Retention)) else {
            return;
        };
        let host = host_of(place);
        let node = state.members.iter().find(|(_, member)| member.host == host);
        let Some(node) = node.map(|(node, _)| *node) else {
            return;
        };
        let logs = &self.cluster.logs;
        // Those of one sequence together: up to where all of them may be deleted.
        let mut sequences: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for (log, end) in tablets_upto(&state).into_iter().chain(meta_upto(&state, node)) {
            sequences.entry(logs.sequence_of(log)).or_default().push(end);
        }
        for (sequence, ends) in sequences {
            let all = (0..state.tablets.count()).chain([META_TABLET]);
            let logs_in: Vec<u32> = all.filter(|log| logs.sequence_of(*log) == sequence).collect();
            if let (Some(log), Some(end), true) =
                (logs_in.first(), ends.iter().min(), ends.len() == logs_in.len())
            {
                self.history.ran.retentions += u32::from(logs.delete_below(*log, *end));
            }
        }
    }

    /// The disk of a node has no room for some time.
    pub fn fill_disk(&mut self, place: usize) {
        if self.nodes[place].off_until_micros().is_none() {
            self.nodes[place].fill_disk();
            self.history.ran.full_disks += 1;
        }
    }
}

/// Up to where each tablet is on the disks of at least two of its replicas, or of the only one.
fn tablets_upto(state: &ClusterState) -> Vec<(u32, u64)> {
    let replicas = state.all_replicas(ilion_cluster::Moment::Now).into_iter();
    let upto = replicas.map(|(tablet, nodes)| {
        let mut ends: Vec<u64> = nodes
            .into_iter()
            .map(|node| state.flushed(tablet, node).segment.0)
            .collect();
        ends.sort_unstable();
        let second_last = ends.len().saturating_sub(2);
        (tablet, ends.get(second_last).copied().unwrap_or(0))
    });
    upto.collect()
}

/// Up to where a node has saved the meta log, if there is a newer snapshot for those that have saved less.
fn meta_upto(state: &ClusterState, node: Node) -> Option<(u32, u64)> {
    let end = state.flushed(META_TABLET, node).segment.0;
    let snapshot = state.newest_snapshot()?.segment.0;
    (end <= snapshot).then_some((META_TABLET, end))
}
