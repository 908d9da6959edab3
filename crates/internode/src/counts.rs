//! [`CallCounts`]: requests to other nodes and of other nodes, and how many failed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ilion_cluster::{Node, Traffic};
use parking_lot::Mutex;

use crate::traffic::CountedTraffic;

/// Maximum number of nodes that are counted one by one: a cluster has fewer.
const NODES_MAX: usize = 4096;

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// Requests to other nodes.
    pub asked: u64,
    /// Requests without an answer: the node could not be reached, refused, failed, or was too slow. Requests that were cancelled do not
    /// count.
    pub unanswered: u64,
    /// Requests of other nodes that this node began to answer.
    pub served: u64,
    /// Requests of other nodes that this node refused or failed to answer, also for having too much to do.
    pub failed: u64,
}

/// Counts while there are connections.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    pub asked: AtomicU64,
    pub unanswered: AtomicU64,
    pub served: AtomicU64,
    pub failed: AtomicU64,
    nodes: Mutex<BTreeMap<Node, Arc<CountedTraffic>>>,
}

impl Counting {
    /// The counts of one other node.
    pub(crate) fn of(&self, node: Node) -> Arc<CountedTraffic> {
        let mut nodes = self.nodes.lock();
        match nodes.get(&node) {
            Some(counted) => counted.clone(),
            None if nodes.len() >= NODES_MAX => Arc::default(),
            None => nodes.entry(node).or_default().clone(),
        }
    }

    /// The counts, by node.
    pub(crate) fn by_node(&self) -> BTreeMap<Node, Traffic> {
        let nodes = self.nodes.lock();
        nodes
            .iter()
            .map(|(node, counted)| (*node, counted.traffic()))
            .collect()
    }

    pub(crate) fn counts(&self) -> CallCounts {
        CallCounts {
            asked: self.asked.load(Relaxed),
            unanswered: self.unanswered.load(Relaxed),
            served: self.served.load(Relaxed),
            failed: self.failed.load(Relaxed),
        }
    }
}

pub(crate) fn add_one(count: &AtomicU64) {
    count.fetch_add(1, Relaxed);
}
