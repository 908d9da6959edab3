//! [`Membership`]: what a node knows of its cluster, and [`Topology`]: the ring at one moment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ilion_cluster::{ClusterState, Location, Node, Router, Strategy, Tablets};

/// The ring of one state of the cluster, made anew when the state changes.
#[derive(Clone, Debug)]
pub struct Topology {
    router: Router,
    tablets: Tablets,
    locations: BTreeMap<Node, Location>,
    ring_version: u64,
    schema_epoch: u64,
}

impl Topology {
    /// The ring that reads follow at this state.
    pub fn of(state: &ClusterState) -> Self {
        let locations = state
            .members
            .iter()
            .map(|(node, member)| (*node, member.location.clone()));
        Self {
            router: Router::new(state),
            tablets: state.tablets,
            locations: locations.collect(),
            ring_version: state.ring_version,
            schema_epoch: state.schema.epoch,
        }
    }

    /// The ring before the first record: no node has data.
    pub fn empty() -> Self {
        Self {
            router: Router::empty(),
            tablets: Tablets::ONE,
            locations: BTreeMap::new(),
            ring_version: 0,
            schema_epoch: 0,
        }
    }

    /// The ring at this state, of a node that has adopted no newer schema than that of this epoch.
    pub fn at_epoch(state: &ClusterState, adopted: u64) -> Self {
        let all = Self::of(state);
        Self {
            schema_epoch: all.schema_epoch.min(adopted),
            ..all
        }
    }

    pub(crate) fn versions(&self) -> Versions {
        Versions {
            ring: self.ring_version,
            schema: self.schema_epoch,
        }
    }

    /// How the ring is cut.
    pub fn tablets(&self) -> Tablets {
        self.tablets
    }

    /// How often the ring changed.
    pub fn ring_version(&self) -> u64 {
        self.ring_version
    }

    /// Number of schema changes.
    pub fn schema_epoch(&self) -> u64 {
        self.schema_epoch
    }

    /// The data center and rack of a member.
    pub fn location(&self, node: Node) -> Option<&Location> {
        self.locations.get(&node)
    }

    /// The replicas of a tablet, the primary one first. `None` if the keyspace is unknown, or if each node has its own data of it.
    pub fn replicas(&self, keyspace: &str, tablet: u32) -> Option<&[Node]> {
        self.router.replicas(keyspace, self.tablets.end(tablet))
    }

    /// The nodes that have a replica of a tablet for any keyspace.
    pub fn nodes_of(&self, tablet: u32) -> BTreeSet<Node> {
        self.router.nodes_of(tablet)
    }

    /// How a keyspace is replicated; `None` if it is unknown.
    pub fn strategy(&self, keyspace: &str) -> Option<&Strategy> {
        self.router.strategy(keyspace)
    }
}

/// Which ring and schema a decision was made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Versions {
    ring: u64,
    schema: u64,
}

/// What a node knows of its cluster. Any thread may call its methods. All are cheap, but [`Self::topology_at`] may wait.
pub trait Membership: Send + Sync {
    /// This node.
    fn node(&self) -> Node;

    /// The ring as of the records of the meta log that this node has applied.
    fn topology(&self) -> Arc<Topology>;

    /// The ring as soon as this node knows it and the schema at least in these versions, which another node knows already. The records
    /// of the meta log reach all nodes within moments, so this waits a little, at most until `deadline_nanos`. Returns an older ring if
    /// that is not enough.
    fn topology_at(&self, ring_version: u64, schema_epoch: u64, deadline_nanos: u64) -> Arc<Topology>;

    /// Whether a member is thought to answer. Advisory: a wrong answer costs time, or an error, never a wrong row.
    fn is_alive(&self, node: Node) -> bool;

    /// Whether this node may answer reads of a tablet that it is a replica of: it has copied the tablet, its apply has not
    /// halted, and it is not too far behind the log.
    fn is_ready(&self, tablet: u32) -> bool;
}
