//! Changes of the ring of a cluster: `nodetool decommission`, `removenode`, `cleanup`, `ilion rebalance`.
//!
//! What a cluster does of it is behind [`RingAdmin`]; a single node has none.

use serde::{Deserialize, Serialize};

use super::AdminError;

/// The ring of the cluster of this node.
pub trait RingAdmin: Send + Sync {
    /// What is under way.
    fn report(&self) -> RingReport;

    /// Begins a change; returns when it is in the log of the cluster.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn change(&self, order: &RingOrder) -> Result<RingStarted, AdminError>;

    /// Removes the data of slices that this node does not hold.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn clean(&self) -> Result<(), AdminError>;
}

/// A change of the ring.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RingOrder {
    /// What is to be done.
    pub kind: RingOrderKind,
    /// The host id of the node that is removed.
    pub host: Option<String>,
    /// The node leaves even if a keyspace then has fewer replicas than it wants.
    #[serde(default)]
    pub force: bool,
}

/// What is to be done with the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RingOrderKind {
    /// This node gives its slices away and leaves.
    Leave,
    /// A lost node is removed.
    Remove,
    /// Slices are spread evenly.
    Rebalance,
    /// The change that is under way is given up.
    Cancel,
}

/// A change that has begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingStarted {
    /// Its number. `None`: it is done already.
    pub number: Option<u64>,
}

/// The state of the ring.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingReport {
    /// The change that is under way.
    pub change: Option<RingChangeReport>,
    /// This node was a member of the cluster and is none any more.
    pub has_left: bool,
}

/// A change of the ring that is under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingChangeReport {
    /// Its number.
    pub number: u64,
    /// What it is, in words.
    pub what: String,
    /// How many slices change their owner.
    pub slices: usize,
    /// The nodes that copy data for it.
    pub copying: Vec<CopyingReport>,
}

/// A node that copies data for a change of the ring.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyingReport {
    /// Its host id.
    pub host_id: String,
    /// Its address.
    pub address: String,
    /// It has all of it.
    pub is_ready: bool,
}
