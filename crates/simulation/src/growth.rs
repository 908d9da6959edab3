//! [`grow`]: how the throughput of a cluster grows with its nodes, by a model of its processors.
//!
//! What is real: the ring, made by joins in the meta log with the slices that nodes choose, and the router's replicas. What is modelled:
//! clients, nodes, brokers and the network, as events in the order of their time. Requests and records cost time on processors ([`Costs`]),
//! requests of nodes to brokers are made of what has gathered, as in `ilion_kafka_log`, and brokers copy records as Kafka's do.
//!
//! Assumptions:
//!
//! - Each node and each broker has a machine of its own; clients and disks are never the bottleneck. (`is_one_machine` puts all of them on one
//!   machine, and sends all requests to one node, to compare the model with a measurement.)
//! - A fixed number of requests per node is under way all the time. Tokens are even, and drivers send a request to any replica of its token.
//! - A message takes the same time between any two machines, and bytes cost nothing: rows are small.
//! - Nothing fails; no compaction, no flush, no pause of a garbage collector.
//!
//! | module | |
//! | --- | --- |
//! | `costs` | [`Costs`] |
//! | `ring` | a cluster of so many nodes |
//! | `machine` | a queue in front of some cores |
//! | `state` | what a cluster consists of, and what can happen |
//! | `world` | the machines, and what is due on them |
//! | `sending`, `replication`, `tails`, `ends` | what happens: appends, copies, delivery, ends of logs |
//! | `run` | [`grow`] |

mod costs;
mod ends;
mod machine;
mod replication;
mod ring;
mod run;
mod sending;
mod state;
mod tails;
mod world;

pub use costs::Costs;
pub use ring::Shape;
pub use run::{Grown, grow};
pub use world::{Load, Setting};
