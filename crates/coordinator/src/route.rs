//! Which replica answers: pure decisions over a [`Topology`].

use std::collections::BTreeMap;
use std::ops::Range;

use ilion_cluster::{Node, Strategy, needs};
use ilion_protocol::Consistency;
use ilion_rows::{KeyRange, ReadError};

use crate::answer::{ReplicaError, TIMED_OUT};
use crate::level::{Level, Reach};
use crate::membership::{Membership, Topology, Versions};
use crate::tablets::{end_of, tablets_of};

/// The replicas that did not answer a read, and why.
pub(crate) type Failures = BTreeMap<Node, ReplicaError>;

/// A part of a range that one replica answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SubRange {
    pub node: Node,
    pub range: KeyRange,
    /// The tablets that the range touches.
    pub tablets: Range<u32>,
    /// What the part was planned for.
    pub versions: Versions,
}

/// Chooses replicas of the tablets of one keyspace.
pub(crate) struct Chooser<'c> {
    pub membership: &'c dyn Membership,
    pub topology: &'c Topology,
    pub keyspace: &'c str,
    pub level: Level,
    pub failures: &'c Failures,
}

impl Chooser<'_> {
    /// The nearest replica of a tablet that can be asked and has not failed: this node, then its rack, then its data center.
    pub fn nearest(&self, tablet: u32) -> Result<Node, ReadError> {
        let replicas = self.replicas(tablet)?;
        let mut fit = replicas
            .iter()
            .copied()
            .filter(|node| self.may_ask(*node, tablet));
        let first = fit.next().ok_or_else(|| self.nobody(tablet))?;
        Ok(fit.fold(first, |nearest, node| {
            match self.distance(node) < self.distance(nearest) {
                true => node,
                false => nearest,
            }
        }))
    }

    /// The nearest replica of all these tablets, other than this node and those that have failed; `None` if there is none.
    pub fn another(&self, tablets: Range<u32>) -> Option<Node> {
        let first = self.replicas(tablets.start).ok()?;
        let has_all = |node: &Node| {
            tablets.clone().all(|tablet| {
                let is_replica = self.replicas(tablet).is_ok_and(|nodes| nodes.contains(node));
                is_replica && self.may_ask(*node, tablet)
            })
        };
        let others = first
            .iter()
            .copied()
            .filter(|node| *node != self.membership.node() && has_all(node));
        others.min_by_key(|node| self.distance(*node))
    }

    /// The first part of a range: the tablets from its start on, up to `count_max`, that the same replica answers. The rest of the
    /// range, if there is one. `None` if the range is empty.
    pub fn first_part(
        &self,
        range: &KeyRange,
        count_max: u32,
    ) -> Result<Option<(SubRange, Option<KeyRange>)>, ReadError> {
        let tablets = self.topology.tablets();
        let whole = tablets_of(range, tablets).unwrap_or(0..0);
        let Some(first) = whole.clone().next() else {
            return Ok(None);
        };
        let node = self.nearest(first)?;
        let last_max = first
            .saturating_add(count_max.saturating_sub(1))
            .min(whole.end - 1);
        let mut last = first;
        while last < last_max && self.answers_next(node, last + 1) {
            last += 1;
        }
        let end = end_of(last, tablets, range);
        let rest = (last + 1 < whole.end).then(|| KeyRange {
            start: end.clone(),
            end: range.end.clone(),
        });
        let part = SubRange {
            node,
            range: KeyRange {
                start: range.start.clone(),
                end,
            },
            tablets: first..last + 1,
            versions: self.topology.versions(),
        };
        Ok(Some((part, rest)))
    }

    /// Whether the replica of the part so far is also as near as any for the next tablet. A tablet without replicas ends the part:
    /// the read fails when it gets there.
    fn answers_next(&self, node: Node, tablet: u32) -> bool {
        let replicas = self.replicas(tablet).unwrap_or_default();
        replicas.contains(&node)
            && self.may_ask(node, tablet)
            && self
                .nearest(tablet)
                .is_ok_and(|nearest| self.distance(nearest) >= self.distance(node))
    }

    fn replicas(&self, tablet: u32) -> Result<&[Node], ReadError> {
        self.topology
            .replicas(self.keyspace, tablet)
            .ok_or(ReadError::Unavailable {
                required: 1,
                alive: 0,
            })
    }

    fn may_ask(&self, node: Node, tablet: u32) -> bool {
        let this = self.membership.node();
        let is_there = match node == this {
            true => self.membership.is_ready(tablet),
            false => self.membership.is_alive(node),
        };
        let is_reached = match self.level.reach {
            Reach::Everywhere => true,
            Reach::DataCenter => self.distance(node) <= Distance::DataCenter,
            Reach::Node => node == this,
        };
        is_there && is_reached && !self.failures.contains_key(&node)
    }

    fn distance(&self, node: Node) -> Distance {
        let this = self.membership.node();
        if node == this {
            return Distance::Here;
        }
        match (self.topology.location(node), self.topology.location(this)) {
            (Some(one), Some(other)) if one == other => Distance::Rack,
            (Some(one), Some(other)) if one.datacenter == other.datacenter => Distance::DataCenter,
            _ => Distance::Elsewhere,
        }
    }

    /// The error if no replica can be asked. The first failed read counts most, then a timeout; otherwise the level is unavailable.
    fn nobody(&self, tablet: u32) -> ReadError {
        let replicas = self.replicas(tablet).unwrap_or_default();
        let failed = |is_meant: fn(&ReplicaError) -> bool| {
            let mut failed = replicas
                .iter()
                .filter_map(|node| self.failures.get_key_value(node));
            failed.find(|(_, error)| is_meant(error))
        };
        if let Some((node, error)) = failed(|error| matches!(error, ReplicaError::Failed(_))) {
            let (node, message) = (*node, error.to_string());
            return ReadError::Replica { node, message };
        }
        if failed(|error| *error == ReplicaError::TimedOut).is_some() {
            return ReadError::Aborted(TIMED_OUT);
        }
        self.unavailable(tablet)
    }

    /// The error of a level that is not reached, with Cassandra's numbers.
    pub fn unavailable(&self, tablet: u32) -> ReadError {
        let replicas = self.replicas(tablet).unwrap_or_default();
        let alive = replicas
            .iter()
            .filter(|node| self.may_ask(**node, tablet))
            .count();
        let level = Consistency::from_number(self.level.consistency.0).unwrap_or(Consistency::One);
        let local = self.topology.location(self.membership.node());
        let local = local.map_or("", |location| location.datacenter.as_str());
        let strategy = self.topology.strategy(self.keyspace);
        let required = needs(level, strategy.unwrap_or(&Strategy::Simple(1)), local).max(1);
        ReadError::Unavailable {
            required,
            alive: u32::try_from(alive)
                .unwrap_or(u32::MAX)
                .min(required.saturating_sub(1)),
        }
    }
}

/// How far a node is away, the nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Distance {
    Here,
    Rack,
    DataCenter,
    Elsewhere,
}
