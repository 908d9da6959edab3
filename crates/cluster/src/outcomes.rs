//! [`Outcomes`]: what replicas have told about the outcomes of commands, and which replicas differ from the others.
//!
//! All replicas of a tablet execute the same commands in the same order, so they must come to the same outcomes. Each replica hashes them,
//! block by block, and tells the hashes in the meta log. Where more than half of the replicas have one hash, a replica with another one is
//! wrong: its data is damaged, or it has lost some.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use ilion_codec::{Error as CodecError, Reader, Writer};

use crate::fields::{decode_list, encode_list, in_order};
use crate::placement::Node;

/// Blocks of a tablet that are kept until other replicas tell theirs; older ones are not compared any more.
const BLOCKS_KEPT: usize = 4;

/// A hash over the outcomes of the commands in a block: a stretch of a tablet's log that all replicas cut alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockDigest {
    /// The block: its first offset divided by the length of blocks.
    pub block: u64,
    /// The same on all replicas.
    pub digest: [u8; 16],
}

/// When a tablet of a node was found to differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Differing {
    /// The incarnation of the process whose data differs.
    pub incarnation: u32,
    /// The block whose outcomes differ.
    pub block: u64,
}

/// The digests that nodes have told of a block.
pub(crate) type Digests = BTreeMap<Node, [u8; 16]>;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcomes {
    /// By tablet, block and node. Shared by states: most records do not change it.
    told: Arc<BTreeMap<(u32, u64, Node), [u8; 16]>>,
    /// Tablets of nodes that differ.
    differing: BTreeMap<(u32, Node), Differing>,
}

/// What the digests of a block say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    /// All that were told are the same, or it cannot be known yet.
    Open,
    /// More than half of the replicas have one digest; these have others.
    Wrong(Vec<Node>),
    /// All replicas have told theirs, and no digest is that of more than half of them.
    Disputed,
}

/// Judges the digests of a block. `replicas` are those of the tablet that are not known to differ. Pure.
pub(crate) fn judge(digests: &Digests, replicas: &BTreeSet<Node>) -> Judged {
    let told: Digests = digests
        .iter()
        .filter(|(node, _)| replicas.contains(node))
        .map(|(node, digest)| (*node, *digest))
        .collect();
    let mut counts: BTreeMap<[u8; 16], usize> = BTreeMap::new();
    for digest in told.values() {
        *counts.entry(*digest).or_default() += 1;
    }
    let right = counts.iter().find(|(_, count)| **count * 2 > replicas.len());
    match right {
        _ if counts.len() < 2 => Judged::Open,
        Some((right, _)) => {
            let wrong = told.iter().filter(|(_, digest)| *digest != right);
            Judged::Wrong(wrong.map(|(node, _)| *node).collect())
        }
        None if told.len() == replicas.len() => Judged::Disputed,
        None => Judged::Open,
    }
}

/// The keys of a tablet.
fn of_tablet(tablet: u32) -> RangeInclusive<(u32, u64, Node)> {
    (tablet, 0, 0)..=(tablet, u64::MAX, Node::MAX)
}

impl Outcomes {
    /// Notes a digest. Returns those of its block, unless they are too old to be kept.
    pub(crate) fn note(&mut self, node: Node, tablet: u32, told: &BlockDigest) -> Option<Digests> {
        let all = Arc::make_mut(&mut self.told);
        all.insert((tablet, told.block, node), told.digest);
        let mut blocks: Vec<u64> = all
            .range(of_tablet(tablet))
            .map(|((_, block, _), _)| *block)
            .collect();
        blocks.dedup();
        let dropped = blocks.len().saturating_sub(BLOCKS_KEPT);
        if let Some(oldest) = blocks.get(dropped).filter(|_| dropped > 0) {
            let old: Vec<_> = all
                .range((tablet, 0, 0)..(tablet, *oldest, 0))
                .map(|(key, _)| *key)
                .collect();
            for key in old {
                all.remove(&key);
            }
        }
        let of_block = all.range((tablet, told.block, 0)..=(tablet, told.block, Node::MAX));
        let digests: Digests = of_block.map(|((_, _, node), digest)| (*node, *digest)).collect();
        (!digests.is_empty()).then_some(digests)
    }

    /// Notes that a tablet differs on a node, and forgets what the node has told of the tablet.
    pub(crate) fn note_differing(&mut self, node: Node, tablet: u32, differing: Differing) {
        self.differing.insert((tablet, node), differing);
        Arc::make_mut(&mut self.told).retain(|(of, _, other), _| (*of, *other) != (tablet, node));
    }

    /// Whether a tablet differs on a node.
    pub(crate) fn differs(&self, node: Node, tablet: u32) -> bool {
        self.differing.contains_key(&(tablet, node))
    }

    /// The tablets that differ on a node.
    pub(crate) fn differing(&self, node: Node) -> BTreeMap<u32, Differing> {
        let own = self.differing.iter().filter(|((_, other), _)| *other == node);
        own.map(|((tablet, _), differing)| (*tablet, *differing))
            .collect()
    }

    /// Notes that a node has a tablet on disk. A process that began after the node's data differed has copied the tablet.
    pub(crate) fn note_flushed(&mut self, node: Node, incarnation: u32, tablet: u32) {
        let differing = self.differing.get(&(tablet, node));
        if differing.is_some_and(|differing| differing.incarnation < incarnation) {
            self.differing.remove(&(tablet, node));
        }
    }

    /// Forgets a node that is no longer a member.
    pub(crate) fn leave(&mut self, node: Node) {
        Arc::make_mut(&mut self.told).retain(|(_, _, other), _| *other != node);
        self.differing.retain(|(_, other), _| *other != node);
    }

    /// Checks the invariants; `is_member` and `is_tablet` say what there is.
    pub(crate) fn check(
        &self,
        is_member: impl Fn(&Node) -> bool,
        is_tablet: impl Fn(&u32) -> bool,
    ) -> Result<(), &'static str> {
        let mut blocks: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
        for (tablet, block, node) in self.told.keys() {
            let of_tablet = blocks.entry(*tablet).or_default();
            of_tablet.insert(*block);
            if of_tablet.len() > BLOCKS_KEPT || !is_tablet(tablet) || !is_member(node) {
                return Err("few digests of outcomes for each tablet, of members");
            }
        }
        let mut differing = self.differing.keys();
        match differing.all(|(tablet, node)| is_tablet(tablet) && is_member(node)) {
            true => Ok(()),
            false => Err("differing tablets of members"),
        }
    }

    pub(crate) fn encode(&self, out: &mut Writer) {
        encode_list(&*self.told, out, |((tablet, block, node), digest), out| {
            out.u32(*tablet);
            out.u64(*block);
            out.u32(*node);
            out.bytes(digest);
        });
        encode_list(&self.differing, out, |((tablet, node), differing), out| {
            out.u32(*tablet);
            out.u32(*node);
            out.u32(differing.incarnation);
            out.u64(differing.block);
        });
    }

    pub(crate) fn decode(input: &mut Reader<'_>) -> Result<Self, CodecError> {
        let start = input.clone();
        let told = decode_list(input, |input| {
            let place = (input.u32()?, input.u64()?, input.u32()?);
            Ok((place, input.uuid_bytes()?))
        })?;
        let differing = decode_list(input, |input| {
            let place = (input.u32()?, input.u32()?);
            let (incarnation, block) = (input.u32()?, input.u64()?);
            Ok((place, Differing { incarnation, block }))
        })?;
        Ok(Self {
            told: Arc::new(in_order(told, &start)?),
            differing: in_order(differing, &start)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_is_wrong_if_more_than_half_of_the_replicas_agree_on_something_else() {
        let replicas = |count: Node| (1..=count).collect::<BTreeSet<Node>>();
        let digests = |letters: &str| -> Digests {
            let told = (1..).zip(letters.bytes()).filter(|(_, letter)| *letter != b'-');
            told.map(|(node, letter)| (node, [letter; 16])).collect()
        };
        for (letters, of, judged) in [
            ("aaa", 3, Judged::Open),
            ("ab-", 3, Judged::Open),
            ("aab", 3, Judged::Wrong(vec![3])),
            ("ba-a", 4, Judged::Open),
            ("baaa", 4, Judged::Wrong(vec![1])),
            ("aabb", 4, Judged::Disputed),
            ("abc", 3, Judged::Disputed),
            ("ab", 2, Judged::Disputed),
            ("aabca", 5, Judged::Wrong(vec![3, 4])),
            // The third node is no replica any more.
            ("aab", 2, Judged::Open),
            ("a", 1, Judged::Open),
        ] {
            assert_eq!(
                judge(&digests(letters), &replicas(of)),
                judged,
                "{letters} of {of}"
            );
        }
    }
}
