//! Digests of outcomes: a replica that differs from more than half of the others is found.

use std::collections::{BTreeMap, BTreeSet};

use crate::apply::{Effect, Outcome};
use crate::levels::Feature;
use crate::outcomes::{BlockDigest, Differing, Judged, judge};
use crate::placement::Node;
use crate::refusal::Refusal;
use crate::state::{ClusterState, Moment};

impl ClusterState {
    /// Tablets whose outcomes differ on this node from those of the other replicas: the process stops them, and the next one copies them.
    pub fn differing(&self, node: Node) -> BTreeMap<u32, Differing> {
        self.outcomes.differing(node)
    }

    /// Notes digests that a node tells, and judges them.
    pub(crate) fn tell_digests(&mut self, node: Node, blocks: &[(u32, BlockDigest)]) -> Outcome {
        if !self.has(Feature::Digests) {
            let rule = "members tell digests of outcomes from feature level 3 on";
            return Err(Refusal::Invalid { rule });
        }
        if blocks.iter().any(|(tablet, _)| *tablet >= self.tablets.count()) {
            let rule = "digests are those of tablets";
            return Err(Refusal::Invalid { rule });
        }
        let mut effects = Vec::new();
        let mut replicas = None;
        for (tablet, told) in blocks {
            let tablet = *tablet;
            // It has stopped the tablet.
            if self.outcomes.differs(node, tablet) {
                continue;
            }
            let digests = self.outcomes.note(node, tablet, told);
            let Some(digests) = digests.filter(|digests| digests.values().any(|one| *one != told.digest))
            else {
                continue;
            };
            let replicas = replicas.get_or_insert_with(|| self.all_replicas(Moment::Now));
            let mut voters = replicas.get(&tablet).cloned().unwrap_or_default();
            voters.retain(|node| !self.outcomes.differs(*node, tablet));
            let judged = judge(&digests, &voters);
            effects.extend(self.note_judged(tablet, told.block, judged, voters));
        }
        Ok(effects)
    }

    /// Notes the replicas that are wrong, if there are some. `voters` are the replicas that were judged.
    fn note_judged(
        &mut self,
        tablet: u32,
        block: u64,
        judged: Judged,
        voters: BTreeSet<Node>,
    ) -> Vec<Effect> {
        let wrong = match judged {
            Judged::Open => Vec::new(),
            Judged::Wrong(nodes) => nodes,
            Judged::Disputed => {
                let nodes = voters.into_iter().collect();
                return vec![Effect::Disputed { nodes, tablet, block }];
            }
        };
        let mut effects = Vec::new();
        for node in wrong {
            // Replicas are members.
            let Some(member) = self.members.get(&node) else {
                continue;
            };
            let incarnation = member.incarnation;
            let differing = Differing { incarnation, block };
            self.outcomes.note_differing(node, tablet, differing);
            effects.push(Effect::Differs { node, tablet, block });
        }
        effects
    }
}
