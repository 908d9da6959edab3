//! Records into a topic of Kafka, acknowledged by all in-sync replicas, in order.
//!
//! [`Topic::open`] connects and asks for the partitions of the topic. [`Topic::send`] takes records by partition, and returns when the
//! brokers have all of them. It sends one request at a time for each partition, so records of a partition never overtake each other,
//! and tries again after every failure that may pass: a broker that is down, an election, too few replicas. A request that is not
//! answered in time counts as one of these (the watchdog): its connection is given up, and another one is opened. So records may
//! arrive twice, but none is left out. Failures that do not pass are an [`Error`], which says who must act.
//!
//! `kafka-client` speaks the protocol. Tokio is behind `topic`, `connection` and `registry`; callers block.
//!
//! | module | |
//! | --- | --- |
//! | `partitioner` | [`partition_of`]: the partition of a key, as Java's producer chooses it |
//! | `record` | [`Record`]; records cut into requests |
//! | `connection` | connections to the leaders, what their errors mean |
//! | `topic` | [`Topic`]: what is retried, and when it is given up |
//! | `registry` | [`Registry`]: numbers of schemas, for records of Avro |

mod connection;
mod error;
mod partitioner;
mod record;
mod registry;
mod topic;

pub use error::Error;
pub use ilion_kafka_client::{Credentials, Mechanism, Options, Security};
pub use partitioner::partition_of;
pub use record::Record;
pub use registry::{Registry, RegistryOptions};
pub use topic::{Missing, Topic};
