//! [`Shared`]: what the tasks of one [`crate::KafkaLogs`] have in common.

use std::sync::Arc;

use ilion_kafka_client::Cluster;

use crate::Options;
use crate::arrivals::Tails;
use crate::counts::Counting;
use crate::topics::Topics;

/// See the module.
pub(crate) struct Shared {
    pub cluster: Arc<Cluster>,
    pub topics: Topics,
    pub options: Options,
    pub counting: Counting,
    pub tails: Tails,
}
