//! [`Refusal`]: why a record changed nothing. Every node refuses the same records; the sender sees the refusal when it reads its own
//! record from the log.

use crate::placement::Node;

/// Why a record changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is a cluster already.
    #[error("this log has a cluster already")]
    Created,
    /// A number or name is invalid.
    #[error("the record is not valid: {rule}")]
    Invalid {
        /// The rule.
        rule: &'static str,
    },
    /// The host id belongs to a member.
    #[error(
        "node {node} has this host id already; if it is lost for good, replace it with an empty data directory"
    )]
    HostIsMember {
        /// The member.
        node: Node,
    },
    /// The host id belonged to a node that left.
    #[error(
        "node {node} had this host id and left the cluster; start with an empty data directory to join again"
    )]
    HostLeft {
        /// The former member.
        node: Node,
    },
    /// The node is no member.
    #[error("node {node} is no member of the cluster")]
    NoMember {
        /// The node.
        node: Node,
    },
    /// The member joins or leaves.
    #[error("node {node} is joining or leaving")]
    NotNormal {
        /// The member.
        node: Node,
    },
    /// Another process of the node has taken over.
    #[error("node {node} was started again (incarnation {current}); this process must stop")]
    Superseded {
        /// The node.
        node: Node,
        /// Its incarnation.
        current: u32,
    },
    /// Another transition is in progress.
    #[error("transition {transition} is under way; wait until it is finished, or cancel it")]
    Busy {
        /// The transition.
        transition: u64,
    },
    /// The transition is over.
    #[error("there is no transition {transition} any more")]
    NoTransition {
        /// The transition.
        transition: u64,
    },
    /// A keyspace's replication is changed by the schema only.
    #[error(
        "transition {transition} changes the replication of a keyspace; alter the keyspace again instead"
    )]
    NotCancellable {
        /// The transition.
        transition: u64,
    },
    /// The sender has nothing to copy.
    #[error("node {node} gains nothing by transition {transition}")]
    NotGaining {
        /// The sender.
        node: Node,
        /// The transition.
        transition: u64,
    },
    /// Logs were deleted beyond what the sender has.
    #[error("node {node} lacks records of tablet {tablet} that are deleted; it must copy the tablet again")]
    Stranded {
        /// The sender.
        node: Node,
        /// A tablet.
        tablet: u32,
    },
    /// Another schema change came first.
    #[error("the schema has moved on to epoch {current}; check the change again")]
    SchemaMoved {
        /// The schema's epoch.
        current: u64,
    },
    /// A log may not be trimmed so far.
    #[error("{} is still needed: some replica has not flushed so far, or no snapshot of the meta log is so new", crate::tablets::log_name(*tablet))]
    StillNeeded {
        /// The tablet.
        tablet: u32,
    },
    /// Some member does not understand the level.
    #[error("node {node} understands feature level {understands} only; upgrade it first")]
    NotUnderstood {
        /// The member.
        node: Node,
        /// The highest level that it understands.
        understands: u32,
    },
}
