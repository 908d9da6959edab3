//! Outcomes of commands: the follower tells the cluster digests of them, and stops tablets whose outcomes differ from those of the other
//! replicas.

use ilion_cluster::{Change, Feature};

use super::Follower;
use crate::facts::add_one;
use crate::meta::Difference;

impl Follower {
    /// Tells digests of what commands came to. If a record is lost, the next blocks are compared.
    pub(super) fn tell_digests(&mut self) {
        let Some(state) = self.meta.state.clone() else {
            return;
        };
        let Some(replica) = &mut self.replica else {
            return;
        };
        if !state.has(Feature::EqualDigests) {
            return;
        }
        let mut blocks = replica.take_digests();
        blocks.retain(|(tablet, _)| self.followed.contains(tablet));
        if !blocks.is_empty() {
            self.tell(Change::Digests { blocks });
        }
    }

    /// Acts on differences that the meta log has shown. Those that are older than this process are known from the state when it begins.
    pub(super) fn stop_differing(&mut self) {
        for difference in std::mem::take(&mut self.meta.differences) {
            if self.replica.is_none() {
                continue;
            }
            let Difference { tablet, block, wrong } = difference;
            match wrong {
                Some(node) if Some(node) == self.meta.node => self.stop_wrong(tablet, block),
                Some(node) => tracing::error!(
                    tablet,
                    node,
                    block,
                    "the data of another node differs from that of this tablet's other replicas: the node stops the tablet until it is started \
                     again"
                ),
                // Only replicas report it.
                None if !self.followed.contains(&tablet) => {}
                None => {
                    add_one(&self.shared.counting.disputed);
                    tracing::error!(
                        tablet,
                        block,
                        "the data of replicas of this tablet differs, and no data is that of more than half of them. All of them go on. \
                         Compare what they answer at LOCAL_ONE, and replace the node that is wrong"
                    );
                }
            }
        }
    }

    /// Stops tablets that the state says differ on this process: a snapshot may stand for the records that have shown it.
    pub(super) fn stop_differing_in_state(&mut self) {
        let (Some(state), Some(node)) = (&self.meta.state, self.meta.node) else {
            return;
        };
        let differing = state.differing(node).into_iter();
        let of_process =
            differing.filter(|(_, differing)| Some(differing.incarnation) == self.meta.incarnation);
        for (tablet, differing) in of_process.collect::<Vec<_>>() {
            self.stop_wrong(tablet, differing.block);
        }
    }

    /// Stops a tablet whose data is wrong here.
    fn stop_wrong(&mut self, tablet: u32, block: u64) {
        if !self.followed.contains(&tablet) || self.is_halted(tablet) {
            return;
        }
        let Some(state) = &self.meta.state else {
            return;
        };
        let length = self.shared.block_length(state.tablets);
        let first = block.saturating_mul(length);
        let reason = format!(
            "statements that read before they write came to another outcome on this node than on more than half of the tablet's replicas, in \
             the {length} records of its log from {first} on: the data of this node is damaged or not complete. Start this node again: it then \
             copies the tablet from another replica. Before that, copy the data directory if the cause is to be found"
        );
        tracing::error!(tablet, %reason, "a tablet is not followed any more");
        if let Some(replica) = &mut self.replica {
            replica.halt(tablet, &reason);
        }
        self.tail.leave(tablet);
        self.shared.progress.halt(tablet, &reason);
    }
}
