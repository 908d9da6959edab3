//! Times of requests from arrival to answer. They are counted when the first byte of the answer is sent.
//!
//! ```text
//! last byte of the request --queue--> a thread begins --execute--> answered --log wait--> durable --send--> first byte of the answer
//! ```
//! The stages add up to the whole. Requests of one task are answered together: for each request, the time of the requests before it
//! counts as queue, and the time of those after it as send.

use std::sync::Arc;

use ilion_env::Env;
use ilion_node::costs::{CostShard, Stages};
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::request_times::{RequestKind, RequestTimes};

/// The times of a request that was executed. All are nanoseconds of the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timed {
    pub kind: RequestKind,
    /// Id of the statement's shape; `None` if the request is not a counted statement.
    pub statement: Option<u64>,
    /// When its last byte arrived.
    pub received_nanos: u64,
    /// When a thread took it.
    pub started_nanos: u64,
    /// When its answer was ready.
    pub ended_nanos: u64,
    /// Wait for the commit log within the execution; only traced requests wait there.
    pub waited_nanos: u64,
}

impl Timed {
    fn stages(&self, durable_nanos: Option<u64>, sent_nanos: u64) -> Stages {
        let answered = durable_nanos.unwrap_or(self.ended_nanos);
        let log = answered.saturating_sub(self.ended_nanos);
        Stages {
            queue: self.started_nanos.saturating_sub(self.received_nanos),
            execute: self
                .ended_nanos
                .saturating_sub(self.started_nanos)
                .saturating_sub(self.waited_nanos),
            log_wait: (durable_nanos.is_some() || self.waited_nanos > 0).then_some(log + self.waited_nanos),
            send: sent_nanos.saturating_sub(answered),
        }
    }
}

/// Where one worker counts costs and times.
pub(crate) struct Counters {
    pub clock: Arc<dyn Env>,
    pub costs: Arc<Mutex<CostShard>>,
    pub times: Arc<RequestTimes>,
}

/// Requests whose answers are sent together.
pub(crate) struct AnswerTimes {
    pub counters: Arc<Counters>,
    /// When the log was durable up to the writes; `None` if the answers do not wait for the log.
    pub durable_nanos: Option<u64>,
    pub requests: SmallVec<[Timed; 2]>,
}

impl AnswerTimes {
    /// Of answers that do not wait for the log.
    pub fn new(counters: &Arc<Counters>, requests: SmallVec<[Timed; 2]>) -> Self {
        Self {
            counters: counters.clone(),
            durable_nanos: None,
            requests,
        }
    }

    /// Counts the requests. Requires: their answers are being sent now.
    pub fn sent(self) {
        let sent_nanos = self.counters.clock.monotonic_nanos();
        let mut costs = self.counters.costs.lock();
        for request in &self.requests {
            let stages = request.stages(self.durable_nanos, sent_nanos);
            // The lock makes this the only thread that counts in these times.
            self.counters.times.count(request.kind, &stages);
            if let Some(id) = request.statement {
                costs.record_times(id, &stages);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stages_of_a_request_add_up_to_its_time() {
        let request = Timed {
            kind: RequestKind::Query,
            statement: None,
            received_nanos: 100,
            started_nanos: 150,
            ended_nanos: 250,
            waited_nanos: 0,
        };
        let stages = request.stages(Some(1250), 1260);
        assert_eq!(
            (stages.queue, stages.execute, stages.log_wait, stages.send),
            (50, 100, Some(1000), 10)
        );
        assert_eq!(stages.sum(), 1160);
        let read = request.stages(None, 260);
        assert_eq!((read.log_wait, read.send, read.sum()), (None, 10, 160));
        let traced = Timed {
            waited_nanos: 70,
            ..request
        };
        let traced = traced.stages(None, 260);
        assert_eq!(
            (traced.execute, traced.log_wait, traced.sum()),
            (30, Some(70), 160)
        );
    }
}
