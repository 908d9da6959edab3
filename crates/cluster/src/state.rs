//! [`ClusterState`]: what the records of the meta log up to a position say about the cluster.
//!
//! Two nodes that applied the log up to the same position have equal states. This file has the state and the queries on it; `apply`
//! changes it, `snapshot` encodes it.
//!
//! Invariants ([`ClusterState::check`]): owners of slices are members; a slice without an owner exists only before the first node joined;
//! a node that joins owns none yet; there is at most one transition; its moves name members that stay, and leave a leaving node with none;
//! a node joins or leaves only during a transition.

use std::collections::{BTreeMap, BTreeSet};

use ilion_codec::md5;
use ilion_commitlog::Position;
use uuid::Uuid;

use crate::fields::Endpoint;
use crate::logged_snapshot::Snapshots;
use crate::outcomes::Outcomes;
use crate::placement::{Location, Node, Ring, Strategy};
use crate::tablets::{META_TABLET, Tablets};
use crate::window::Windows;

/// Maximum number of members, joining ones included.
pub(crate) const MEMBERS_MAX: usize = 1024;

/// Counters stay below this: no cluster counts that far, but damaged bytes may have any number.
const COUNTER_MAX: u64 = 1 << 62;

/// The state of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterState {
    /// Identifies the cluster in every record.
    pub cluster: Uuid,
    /// How the ring is divided.
    pub tablets: Tablets,
    /// How long a silent node's records are kept in the logs.
    pub down_max_micros: i64,
    /// The feature level: the rules by which records are evaluated.
    pub level: u32,
    /// The last record applied.
    pub position: Position,
    /// Time of the last record; never less than that of an earlier record.
    pub time_micros: i64,
    /// The number that the next node gets.
    pub(crate) next_node: Node,
    /// The number that the next transition gets.
    pub(crate) next_transition: u64,
    /// The nodes, joining and leaving ones included.
    pub members: BTreeMap<Node, Member>,
    /// Nodes that left or were replaced, by host id; only the newest are kept. Such a node is refused when it comes back.
    pub former: BTreeMap<Uuid, Node>,
    /// The owner of each slice. `None` only before the first node joined.
    pub(crate) owners: Vec<Option<Node>>,
    /// How often the ring changed.
    pub ring_version: u64,
    /// The transition in progress.
    pub transition: Option<Transition>,
    /// The part of the schema that placement needs.
    pub schema: SchemaState,
    /// Up to where each replica has flushed each tablet.
    pub(crate) flushed: BTreeMap<(u32, Node), Position>,
    /// Up to where each log is deleted, or is about to be.
    pub(crate) trimmed: BTreeMap<u32, Position>,
    /// What replicas have told about the outcomes of commands.
    pub(crate) outcomes: Outcomes,
    /// Snapshots of the state in the log.
    pub(crate) snapshots: Snapshots,
    /// Which records were applied.
    pub(crate) windows: Windows,
}

/// A node of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its id, for as long as its data directory lives.
    pub host: Uuid,
    /// Its process.
    pub session: Uuid,
    /// How often it was started.
    pub incarnation: u32,
    /// Where it listens.
    pub endpoint: Endpoint,
    /// Its data center and rack.
    pub location: Location,
    /// Whether it joins, is a full member, or leaves.
    pub phase: Phase,
    /// The highest feature level that it understands.
    pub understands: u32,
    /// The release of Cassandra that its clients see, once it has logged it.
    pub release: Option<String>,
    /// When its last record was logged. Advisory: only the time for which logs are kept depends on it.
    pub heard_micros: i64,
    /// The schema epoch that it reported as applied.
    pub schema_epoch: u64,
}

/// The phase of a membership. After [`Phase::Leaving`] the node is no longer a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It copies the data of its future slices, and answers no reads.
    Joining,
    /// It owns slices.
    Normal,
    /// Others copy its data; until they have it, it answers reads.
    Leaving,
}

/// A change of placement that waits for data to be copied. Until it is finished, reads use the old placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// Its number. A node that is ready names it in its record.
    pub number: u64,
    /// The other changes, beside the owners of slices.
    pub kind: TransitionKind,
    /// The new owner of each slice that moves.
    pub moves: BTreeMap<u32, Node>,
    /// The nodes that reported that they have the data.
    pub ready: BTreeSet<Node>,
}

/// What a transition is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransitionKind {
    /// A node becomes a member.
    Join {
        /// The node.
        node: Node,
        /// The node whose place it takes.
        replaces: Option<Node>,
    },
    /// A node ceases to be one.
    Leave {
        /// The node.
        node: Node,
    },
    /// Slices change their owner.
    Move,
    /// A keyspace gets another replication.
    Replication {
        /// The keyspace.
        keyspace: String,
        /// Its new replication.
        strategy: Strategy,
    },
}

/// The part of the schema that the cluster must know. The schema itself is opaque here: nodes keep it in tables, and store it beside a
/// snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaState {
    /// Number of schema changes.
    pub epoch: u64,
    /// Hash over all changes: equal on two nodes if and only if both applied the same changes in the same order.
    pub digest: [u8; 16],
    /// The last change that touched a keyspace's replication.
    pub placement_epoch: u64,
    /// The replication of each keyspace that reads follow.
    pub keyspaces: BTreeMap<String, Strategy>,
}

impl SchemaState {
    /// Counts the next change.
    pub fn count(&mut self, change: &[u8]) {
        self.epoch += 1;
        let seed = [&self.digest[..], &self.epoch.to_be_bytes(), change];
        self.digest = md5(&seed.concat());
    }
}

/// Selects the placement before or after the transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The placement that reads use now.
    Now,
    /// The placement once the transition is finished.
    Afterwards,
}

impl ClusterState {
    /// The owner of a slice. `None` before the first node joined.
    pub fn owner(&self, tablet: u32, moment: Moment) -> Option<Node> {
        let moved = self.moves(moment).and_then(|moves| moves.get(&tablet).copied());
        moved.or_else(|| self.owners.get(tablet as usize).copied().flatten())
    }

    fn moves(&self, moment: Moment) -> Option<&BTreeMap<u32, Node>> {
        let transition = self.transition.as_ref()?;
        (moment == Moment::Afterwards).then_some(&transition.moves)
    }

    /// The tokens of a node as drivers see them: the ends of its slices.
    pub fn tokens(&self, node: Node) -> Vec<i64> {
        let owned = self.slices_of(node);
        owned.map(|tablet| self.tablets.end(tablet)).collect()
    }

    pub(crate) fn slices_of(&self, node: Node) -> impl Iterator<Item = u32> {
        (0..self.tablets.count()).filter(move |tablet| self.owner(*tablet, Moment::Now) == Some(node))
    }

    /// The ring: each slice's end, with its owner.
    pub fn ring(&self, moment: Moment) -> Ring {
        let tablets = 0..self.tablets.count();
        let tokens =
            tablets.filter_map(|tablet| Some((self.tablets.end(tablet), self.owner(tablet, moment)?)));
        let locations = self
            .members
            .iter()
            .map(|(node, member)| (*node, member.location.clone()));
        Ring::new(tokens.collect(), &locations.collect())
    }

    /// The replication of each keyspace.
    fn strategies(&self, moment: Moment) -> impl Iterator<Item = (&str, &Strategy)> {
        let changing = match self.transition.as_ref().map(|transition| &transition.kind) {
            Some(TransitionKind::Replication { keyspace, strategy }) if moment == Moment::Afterwards => {
                Some((keyspace.as_str(), strategy))
            }
            _ => None,
        };
        self.schema
            .keyspaces
            .iter()
            .map(move |(name, strategy)| match changing {
                Some((keyspace, afterwards)) if keyspace == name => (name.as_str(), afterwards),
                _ => (name.as_str(), strategy),
            })
    }

    /// The replicas of every tablet, over all keyspaces.
    pub fn all_replicas(&self, moment: Moment) -> BTreeMap<u32, BTreeSet<Node>> {
        let mut replicas: BTreeMap<u32, BTreeSet<Node>> = BTreeMap::new();
        for (_, tablet, nodes) in self.placements(moment) {
            replicas.entry(tablet).or_default().extend(nodes);
        }
        replicas
    }

    /// For each node, the tablets and keyspaces that it must copy before the transition can finish.
    pub fn gains(&self) -> BTreeMap<Node, BTreeSet<(u32, String)>> {
        let mut gains: BTreeMap<Node, BTreeSet<(u32, String)>> = BTreeMap::new();
        if self.transition.is_none() {
            return gains;
        }
        let before: BTreeMap<(&str, u32), Vec<Node>> = self
            .placements(Moment::Now)
            .into_iter()
            .map(|(keyspace, tablet, nodes)| ((keyspace, tablet), nodes))
            .collect();
        for (keyspace, tablet, nodes) in self.placements(Moment::Afterwards) {
            let has = |node: &Node| {
                before
                    .get(&(keyspace, tablet))
                    .is_some_and(|nodes| nodes.contains(node))
            };
            for node in nodes.into_iter().filter(|node| !has(node)) {
                gains
                    .entry(node)
                    .or_default()
                    .insert((tablet, keyspace.to_owned()));
            }
        }
        gains
    }

    /// The replicas of each tablet of each keyspace. Keyspaces with `LocalStrategy` are left out.
    fn placements(&self, moment: Moment) -> Vec<(&str, u32, Vec<Node>)> {
        let ring = self.ring(moment);
        let mut placements = Vec::new();
        for (keyspace, strategy) in self.strategies(moment) {
            for tablet in 0..self.tablets.count() {
                let replicas = ring.replicas(strategy, self.tablets.end(tablet));
                placements.extend(replicas.map(|nodes| (keyspace, tablet, nodes)));
            }
        }
        placements
    }

    /// True if no record of the member was logged for this time, in microseconds. Advisory.
    pub fn is_silent(&self, member: &Member, for_micros: i64) -> bool {
        self.silence_micros(member) > for_micros
    }

    /// For how long no record of the member was logged, by the time of the log. Advisory.
    pub fn silence_micros(&self, member: &Member) -> i64 {
        self.time_micros.saturating_sub(member.heard_micros)
    }

    /// Members that have not reported this schema epoch; silent ones are left out. A schema change is answered when there are no such
    /// members.
    pub fn behind_schema(&self, epoch: u64, silence_micros: i64) -> impl Iterator<Item = Node> {
        let is_behind =
            move |member: &Member| member.schema_epoch < epoch && !self.is_silent(member, silence_micros);
        let behind = self.members.iter().filter(move |(_, member)| is_behind(member));
        behind.map(|(node, _)| *node)
    }

    /// Up to where a replica has flushed a tablet; for [`META_TABLET`], up to where it has stored the cluster's state.
    pub fn flushed(&self, tablet: u32, node: Node) -> Position {
        self.flushed
            .get(&(tablet, node))
            .copied()
            .unwrap_or(Position::START)
    }

    /// Up to where a log is deleted, or is about to be.
    pub fn trimmed(&self, tablet: u32) -> Position {
        self.trimmed.get(&tablet).copied().unwrap_or(Position::START)
    }

    /// The last record that the newest snapshot in the log knows of. `None`: there is no snapshot.
    pub fn newest_snapshot(&self) -> Option<Position> {
        self.snapshots.newest()
    }

    /// Up to where each log may be deleted: no replica needs the records below, neither now nor after the transition. Replicas that were
    /// silent for longer than `down_max_micros` do not count. Newcomers need the meta log from its newest snapshot on.
    pub fn trim_points(&self) -> BTreeMap<u32, Position> {
        let counts = |node: &Node| {
            let member = self.members.get(node);
            member.is_some_and(|member| !self.is_silent(member, self.down_max_micros))
        };
        let point = |(tablet, nodes): (u32, BTreeSet<Node>)| {
            let positions = nodes
                .into_iter()
                .filter(counts)
                .map(|node| self.flushed(tablet, node));
            Some((tablet, positions.min()?))
        };
        let mut points: BTreeMap<u32, Position> = self.holders().into_iter().filter_map(point).collect();
        let after_snapshot = self
            .newest_snapshot()
            .map(|last| Position::new(last.segment.0.saturating_add(1), 0));
        match (points.get_mut(&META_TABLET), after_snapshot) {
            (Some(point), Some(after)) => *point = after.min(*point),
            _ => drop(points.remove(&META_TABLET)),
        }
        points
    }

    /// Tablets of a node whose log was deleted beyond the node's position: the node must copy them.
    pub fn stranded(&self, node: Node) -> BTreeSet<u32> {
        self.all_stranded().remove(&node).unwrap_or_default()
    }

    /// [`Self::stranded`] of every node that has such tablets.
    pub(crate) fn all_stranded(&self) -> BTreeMap<Node, BTreeSet<u32>> {
        let mut stranded: BTreeMap<Node, BTreeSet<u32>> = BTreeMap::new();
        for (tablet, nodes) in self.holders() {
            let trimmed = self.trimmed(tablet);
            for node in nodes {
                if self.flushed(tablet, node) < trimmed {
                    stranded.entry(node).or_default().insert(tablet);
                }
            }
        }
        stranded
    }

    /// The nodes that need the log of each tablet, now or after the transition. All members need the meta log.
    fn holders(&self) -> BTreeMap<u32, BTreeSet<Node>> {
        let mut holders = self.all_replicas(Moment::Now);
        if self.transition.is_some() {
            for (tablet, nodes) in self.all_replicas(Moment::Afterwards) {
                holders.entry(tablet).or_default().extend(nodes);
            }
        }
        holders.insert(META_TABLET, self.members.keys().copied().collect());
        holders
    }

    /// Checks the invariants; the error is the first one that does not hold.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let holds = |condition, rule| if condition { Ok(()) } else { Err(rule) };
        let is_member = |node: &Node| self.members.contains_key(node);
        holds(
            self.owners.len() == self.tablets.count() as usize,
            "an owner for each slice",
        )?;
        holds(self.down_max_micros > 0, "a time that nodes may be down for")?;
        let counters = [self.next_transition, self.ring_version, self.schema.epoch];
        holds(
            counters.iter().all(|counter| *counter < COUNTER_MAX),
            "counters that can grow",
        )?;
        let owned = self.owners.iter().flatten().count();
        holds(
            owned == self.owners.len() || (owned == 0 && self.members.is_empty()),
            "slices without an owner only before the first node joined",
        )?;
        holds(
            self.owners.iter().flatten().all(is_member),
            "slices that members own",
        )?;
        holds(
            self.members
                .keys()
                .all(|node| *node != 0 && *node < self.next_node),
            "members with numbers that were given",
        )?;
        let hosts: BTreeSet<Uuid> = self.members.values().map(|member| member.host).collect();
        holds(
            hosts.len() == self.members.len(),
            "members with different host ids",
        )?;
        let is_within = |tablet: &u32| *tablet == META_TABLET || *tablet < self.tablets.count();
        holds(
            self.flushed
                .keys()
                .all(|(tablet, node)| is_within(tablet) && is_member(node)),
            "flushed positions of members",
        )?;
        holds(self.trimmed.keys().all(is_within), "trimmed positions of tablets")?;
        let is_tablet = |tablet: &u32| *tablet < self.tablets.count();
        self.outcomes.check(is_member, is_tablet)?;
        self.check_transition(&holds)
    }

    fn check_transition(
        &self,
        holds: &dyn Fn(bool, &'static str) -> Result<(), &'static str>,
    ) -> Result<(), &'static str> {
        let of_phase = |phase| {
            self.members
                .iter()
                .filter(move |(_, member)| member.phase == phase)
        };
        let joining: Vec<Node> = of_phase(Phase::Joining).map(|(node, _)| *node).collect();
        let leaving: Vec<Node> = of_phase(Phase::Leaving).map(|(node, _)| *node).collect();
        let Some(transition) = &self.transition else {
            return holds(
                joining.is_empty() && leaving.is_empty(),
                "joining and leaving nodes only during a transition",
            );
        };
        let (expected_joining, expected_leaving) = match &transition.kind {
            TransitionKind::Join { node, replaces } => (vec![*node], replaces.iter().copied().collect()),
            TransitionKind::Leave { node } => (Vec::new(), vec![*node]),
            TransitionKind::Move | TransitionKind::Replication { .. } => (Vec::new(), Vec::new()),
        };
        holds(
            joining == expected_joining && leaving == expected_leaving,
            "the transition's joining and leaving nodes",
        )?;
        let mut tablets = 0..self.tablets.count();
        holds(
            tablets.all(|tablet| {
                let stays = self
                    .owner(tablet, Moment::Afterwards)
                    .is_none_or(|owner| !leaving.contains(&owner));
                stays
                    && self
                        .owner(tablet, Moment::Now)
                        .is_none_or(|owner| !joining.contains(&owner))
            }),
            "no slices of joining nodes, and none left for leaving ones",
        )?;
        let is_move = |(tablet, node): (&u32, &Node)| {
            *tablet < self.tablets.count() && self.members.contains_key(node) && !leaving.contains(node)
        };
        holds(
            transition.moves.iter().all(is_move) && transition.number < self.next_transition,
            "moves of slices to members that stay",
        )?;
        holds(
            transition
                .ready
                .iter()
                .all(|node| self.members.contains_key(node)),
            "members that are ready",
        )
    }
}
