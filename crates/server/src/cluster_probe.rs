//! [`ClusterProbe`]: the interface through which the administration reads the cluster's state and counters.
//!
//! This crate does not know the crates that implement it; the binary connects them.

use std::collections::BTreeMap;

use ilion_cluster::{ClusterView, Node, Traffic};

/// State and counters of the cluster that this node is a member of.
pub trait ClusterProbe: Send + Sync {
    /// The cluster as this node sees it; `None` if the node has not joined yet.
    fn view(&self) -> Option<ClusterView>;

    /// How long each other member was silent, by the time of the log, as a share of the time after which it is considered down.
    fn silences(&self) -> BTreeMap<Node, f64>;

    /// Current numbers, and counters since the start of the process.
    fn counts(&self) -> ClusterCounts;

    /// Requests to and of each other node, and the connections to it.
    fn traffic(&self) -> BTreeMap<Node, Traffic>;

    /// Waits until this node has applied all writes that were acknowledged before the call, for half a minute at most.
    ///
    /// # Errors
    /// Why it has not applied them, or why that is not known.
    fn catch_up(&self) -> Result<(), String>;

    /// Asks these members over the network for their state, all at the same time, and waits for a second at most. Members that do not
    /// answer are left out. The state of this node is read without the network.
    fn ask(&self, members: &[Node]) -> BTreeMap<Node, MemberStanding>;
}

/// The state of a member, as the member itself reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberStanding {
    /// Bytes of its SSTables.
    pub load_bytes: u64,
    /// Records that it has not applied yet, of all its tablets, as far as it knows.
    pub lag_records: u64,
    /// Tablets that it copies, or may not answer for yet.
    pub tablets_behind: u64,
    /// The release of Cassandra that its clients see; `None` if its version of Ilion does not report it.
    pub release: Option<String>,
}

/// Current numbers of tablets and lags, and counters since the start of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterCounts {
    /// Tablets that this node follows.
    pub followed: u64,
    /// Followed tablets whose reads this node may answer.
    pub ready: u64,
    /// Tablets that it copies from other nodes.
    pub lacking: u64,
    /// Tablets whose records it no longer applies.
    pub halted: u64,
    /// Records that this node has not applied, by tablet. Those of tablets that share a log are counted for each of them.
    pub lag_records: BTreeMap<u32, u64>,
    /// Records that this node has not applied, each counted once.
    pub lag_records_sum: u64,
    /// Records that it has applied.
    pub applied: u64,
    /// Records that the log has acknowledged.
    pub appended: u64,
    /// Records that were sent again.
    pub repeated: u64,
    /// Blocks of followed tablets in which replicas came to different outcomes, so that nobody can say which of them is right.
    pub disputed: u64,
    /// Records that the log refused, or whose outcome is unknown.
    pub not_appended: u64,
    /// No-ops that were appended for reads, since the end of a log was not known.
    pub barriers_appended: u64,
    /// Time until a read knew the ends of its logs.
    pub barriers_raised: Waits,
    /// Time until this node had applied the records below them.
    pub barriers_applied: Waits,
    /// Requests with records that brokers have answered.
    pub produce_requests: u64,
    /// Batches that a broker did not acknowledge, and connections that could not be opened for them.
    pub produce_errors: u64,
    /// Requests for records that brokers have answered.
    pub fetch_requests: u64,
    /// Requests for records that failed.
    pub fetch_errors: u64,
    /// Requests for the ends of logs that brokers have answered.
    pub end_requests: u64,
    /// Requests for the ends of logs that failed.
    pub end_errors: u64,
    /// Requests to other nodes.
    pub asked: u64,
    /// Requests to other nodes that got no answer.
    pub unanswered: u64,
    /// Requests of other nodes.
    pub served: u64,
    /// Requests of other nodes that this node refused or failed to answer.
    pub failed: u64,
}

/// A histogram of times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// The sum of all times.
    pub sum_nanos: u64,
    /// Upper bounds with the number of times in each bucket, ascending; the last bound is [`u64::MAX`].
    pub buckets: Vec<(u64, u64)>,
}
