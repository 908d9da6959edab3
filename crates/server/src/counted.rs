//! Statements that came by no session are counted as those of sessions are: the dashboard's query box, databases of this process.

use std::sync::Arc;

use ilion_env::Env;
use ilion_env::cost::{self, CostScope};
use ilion_query::Shape;

use crate::costs::{Spent, StatementCosts};

/// A statement that this thread carries out.
#[derive(Debug)]
pub struct Counted {
    started_nanos: u64,
    scope: CostScope,
}

impl Counted {
    /// Starts to count.
    #[inline]
    pub fn begin(env: &dyn Env) -> Self {
        Self {
            started_nanos: env.monotonic_nanos(),
            scope: cost::begin(),
        }
    }

    /// Ends; waiting for the commit log was a part of it.
    pub fn finish(self, env: &dyn Env, costs: &StatementCosts, shape: &Arc<Shape>, is_error: bool) {
        let spent = Spent {
            cost: &self.scope,
            elapsed_nanos: Some(env.monotonic_nanos().saturating_sub(self.started_nanos)),
            is_error,
        };
        let mut shard = costs.shared_shard().lock();
        shard.record(shape.id, || shape.clone(), &spent);
    }
}
