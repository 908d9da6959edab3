//! Changes of the ring of a cluster: `nodetool decommission`, `removenode`, `cleanup`, `ilion rebalance`.
//!
//! The cluster implements [`RingAdmin`]; a single node has none.

use serde::{Deserialize, Serialize};

use super::AdminError;

/// The ring of the cluster of this node.
pub trait RingAdmin: Send + Sync {
    /// The change that is under way, and whether this node has left.
    fn report(&self) -> RingReport;

    /// Begins a change; returns when the change is in the log of the cluster.
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
    /// Kind of the change.
    pub kind: RingOrderKind,
    /// The host id of the node that is removed; for `Remove` only.
    pub host: Option<String>,
    /// Leaves even if a keyspace then has fewer replicas than its replication requires.
    #[serde(default)]
    pub force: bool,
}

/// Kind of a change of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RingOrderKind {
    /// This node passes its slices to others and leaves.
    Leave,
    /// A lost node is removed.
    Remove,
    /// Slices are spread evenly.
    Rebalance,
    /// The change that is under way is cancelled.
    Cancel,
}

/// A change that has begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingStarted {
    /// Number of the change; `None` if it is already done.
    pub number: Option<u64>,
}

/// The state of the ring.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingReport {
    /// The change that is under way; `None` if there is none.
    pub change: Option<RingChangeReport>,
    /// Whether this node has left the cluster.
    pub has_left: bool,
}

/// A change of the ring that is under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingChangeReport {
    /// Its number.
    pub number: u64,
    /// Description of the change.
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
    /// Whether it has copied everything.
    pub is_ready: bool,
}
