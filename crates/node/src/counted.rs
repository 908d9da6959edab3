//! Counts statements that come through no session: from the dashboard, or from an embedded database.

use std::sync::Arc;

use ilion_env::cost::{self, CostScope};
use ilion_query::Shape;

use crate::costs::Spent;
use crate::node::Node;

/// A statement that this thread executes.
#[derive(Debug)]
pub struct Counted {
    started_nanos: u64,
    scope: CostScope,
}

impl Counted {
    /// Starts to count.
    #[inline]
    pub fn begin(node: &Node) -> Self {
        Self {
            started_nanos: node.engine().env().monotonic_nanos(),
            scope: cost::begin(),
        }
    }

    /// Ends the measurement. Call it after the wait for the commit log, which is part of the cost.
    pub fn finish(self, node: &Node, shape: &Arc<Shape>, is_error: bool) {
        let ended_nanos = node.engine().env().monotonic_nanos();
        let spent = Spent {
            cost: &self.scope,
            elapsed_nanos: Some(ended_nanos.saturating_sub(self.started_nanos)),
            is_error,
        };
        let mut shard = node.costs().shared_shard().lock();
        shard.record(shape.id, || shape.clone(), &spent);
    }
}
