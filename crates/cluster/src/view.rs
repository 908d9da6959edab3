//! [`ClusterView`]: the cluster as drivers and operators see it at one state: who is there, where it listens, which tokens it has.
//!
//! Pure: computed from a state, and compared with the view before. Not here: the rows and events of the protocol (`server`).

use std::collections::BTreeMap;

use ilion_codec::md5;
use uuid::Uuid;

use crate::fields::Endpoint;
use crate::placement::{Location, Node, Ring, Strategy};
use crate::state::{ClusterState, Member, Phase};

/// The members of a cluster as one of them sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterView {
    /// This node.
    pub own: Node,
    /// The feature level.
    pub level: u32,
    /// All members, joining and leaving ones included, by their numbers.
    pub members: Vec<MemberView>,
}

/// One member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberView {
    /// Its number.
    pub node: Node,
    /// Its host id.
    pub host: Uuid,
    /// Where it listens.
    pub endpoint: Endpoint,
    /// Its data center and rack.
    pub location: Location,
    /// Whether it joins, is a full member, or leaves.
    pub phase: Phase,
    /// Its tokens, ascending; empty while it joins.
    pub tokens: Vec<i64>,
    /// Whether it is thought to be up: it was heard of lately, by the time of the log. This node is always up.
    pub is_up: bool,
    /// Identifies the schema that it has. Equal versions mean equal schemas.
    pub schema_version: Uuid,
    /// The release of Cassandra that its clients see, if it has said so.
    pub release: Option<String>,
}

/// What a node knows beside the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eyes {
    /// This node.
    pub own: Node,
    /// The schema that this node has applied, which may be older than that of the state.
    pub schema_epoch: u64,
    /// A member that was silent for longer is down.
    pub silence_micros: i64,
}

/// A change from one view to the next that drivers get an event for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberChange {
    /// It is a full member now.
    Joined(Endpoint),
    /// It is no member any more.
    Left(Endpoint),
    /// It has other tokens.
    Moved(Endpoint),
    /// It is up.
    Up(Endpoint),
    /// It is down.
    Down(Endpoint),
}

impl ClusterView {
    /// The view of a node at a state.
    pub fn of(state: &ClusterState, eyes: Eyes) -> Self {
        let members = state.members.iter();
        Self {
            own: eyes.own,
            level: state.level,
            members: members
                .map(|(node, member)| MemberView::of(state, *node, member, eyes))
                .collect(),
        }
    }

    /// A member by its number.
    pub fn member(&self, node: Node) -> Option<&MemberView> {
        self.members.iter().find(|member| member.node == node)
    }

    /// This node.
    pub fn own_member(&self) -> Option<&MemberView> {
        self.member(self.own)
    }

    /// The members that have joined, this node included.
    pub fn joined(&self) -> impl Iterator<Item = &MemberView> {
        self.members.iter().filter(|member| member.has_joined())
    }

    /// The other members that have joined.
    pub fn peers(&self) -> impl Iterator<Item = &MemberView> {
        self.joined().filter(|member| member.node != self.own)
    }

    /// The tokens with their owners.
    pub fn ring(&self) -> Ring {
        let tokens = self.members.iter().flat_map(|member| {
            let tokens = member.tokens.iter();
            tokens.map(|token| (*token, member.node))
        });
        let locations = self
            .members
            .iter()
            .map(|member| (member.node, member.location.clone()));
        Ring::new(tokens.collect(), &locations.collect())
    }

    /// The end of each range of tokens, ascending, with its replicas, the primary one first. With [`Strategy::Local`] the owner is the
    /// only replica.
    pub fn ranges(&self, strategy: &Strategy) -> Vec<(i64, Vec<&MemberView>)> {
        let by_number: BTreeMap<Node, &MemberView> =
            self.members.iter().map(|member| (member.node, member)).collect();
        let ring = self.ring();
        let of_range = |(token, owner): &(i64, Node)| {
            let replicas = ring.replicas(strategy, *token).unwrap_or_else(|| vec![*owner]);
            let replicas = replicas.iter().filter_map(|node| by_number.get(node).copied());
            (*token, replicas.collect())
        };
        ring.tokens().iter().map(of_range).collect()
    }

    /// For each member, the share of the data that it has a replica of, from 0 to 1. Members without data are left out.
    pub fn shares(&self, strategy: &Strategy) -> BTreeMap<Node, f64> {
        let mut shares = BTreeMap::new();
        let ranges = self.ranges(strategy);
        let ends = ranges.iter().map(|(end, _)| *end);
        let starts = ranges.last().map(|(end, _)| *end).into_iter().chain(ends);
        for (start, (end, replicas)) in starts.zip(&ranges) {
            // Equal tokens: one token has the whole ring.
            let share = match end.wrapping_sub(start).cast_unsigned() {
                0 => 1.0,
                #[expect(clippy::cast_precision_loss, reason = "a share for people")]
                width => width as f64 / RING,
            };
            for member in replicas {
                *shares.entry(member.node).or_insert(0.0) += share;
            }
        }
        shares
    }

    /// The changes since an earlier view, in the order in which drivers get their events.
    ///
    /// Compat: a new node is announced before it is up; one that left is not announced as down.
    pub fn changes_since(&self, before: &Self) -> Vec<MemberChange> {
        let find = |view: &Self, node: Node| view.joined().find(|member| member.node == node).cloned();
        let mut changes = Vec::new();
        for old in before.joined() {
            let is_same = find(self, old.node).is_some_and(|new| new.endpoint == old.endpoint);
            if !is_same {
                changes.push(MemberChange::Left(old.endpoint));
            }
        }
        let (mut moved, mut status) = (Vec::new(), Vec::new());
        for new in self.joined() {
            let old = find(before, new.node).filter(|old| old.endpoint == new.endpoint);
            match &old {
                None => changes.push(MemberChange::Joined(new.endpoint)),
                Some(old) if old.tokens != new.tokens => moved.push(MemberChange::Moved(new.endpoint)),
                Some(_) => {}
            }
            match (old.is_some_and(|old| old.is_up), new.is_up) {
                (false, true) => status.push(MemberChange::Up(new.endpoint)),
                (true, false) => status.push(MemberChange::Down(new.endpoint)),
                _ => {}
            }
        }
        changes.extend(moved);
        changes.extend(status);
        changes
    }
}

/// The number of tokens.
const RING: f64 = 18_446_744_073_709_551_616.0;

impl MemberView {
    fn of(state: &ClusterState, node: Node, member: &Member, eyes: Eyes) -> Self {
        let is_own = node == eyes.own;
        let mut tokens = state.tokens(node);
        tokens.sort_unstable();
        Self {
            node,
            host: member.host,
            endpoint: member.endpoint,
            location: member.location.clone(),
            phase: member.phase,
            tokens,
            is_up: is_own || !state.is_silent(member, eyes.silence_micros),
            release: member.release.clone(),
            schema_version: state.schema_version(match is_own {
                true => eyes.schema_epoch,
                false => member.schema_epoch,
            }),
        }
    }

    /// Whether it is a member that answers reads.
    pub(crate) fn has_joined(&self) -> bool {
        self.phase != Phase::Joining
    }
}

impl ClusterState {
    /// Identifies the schema of a node that has applied an epoch, in the form of Cassandra's versions. Members of the same epoch have the
    /// same version. The version of an older epoch differs from the newest version, but also from the one that the epoch had before.
    pub fn schema_version(&self, epoch: u64) -> Uuid {
        let hash = md5(&[&self.schema.digest[..], &epoch.to_be_bytes()].concat());
        uuid::Builder::from_md5_bytes(hash).into_uuid()
    }
}
