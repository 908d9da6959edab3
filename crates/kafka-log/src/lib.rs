//! The logs of a cluster on Apache Kafka: [`KafkaLogs`] implements [`ilion_commitlog::SharedLogs`].
//!
//! The logs of tablets are kept in the partitions of the topic `PREFIX.data`, several in one; the meta log is the topic `PREFIX.meta`. The
//! main path: `append` frames the record and puts it into the queue; the task of the broker that leads the partition sends what has
//! gathered (`sending`), and the answer calls back. Each tail has a task for each broker, which fetches all partitions that the broker leads
//! (`reading`) into a bounded buffer (`arrivals`), from which the caller takes them, split by log (`splitting`).
//!
//! What may pass (a broker that is down or hangs, an election) is tried again: appends until their deadline, reads without an end. Order
//! within a partition holds since at most one batch of it is with a broker at a time. docs/design/kafka-log.md has the reasons and the figures.
//!
//! | module | |
//! | --- | --- |
//! | `options` | [`Options`] |
//! | `frame` | the bytes of a value |
//! | `topics` | which partition a log is kept in |
//! | `settings` | what topics must be like, and what mends them. Pure |
//! | `open` | connecting, creating and checking topics |
//! | `queue` | records on their way: order, room, deadlines. Pure |
//! | `sending` | takes them to the brokers |
//! | `crowd` | when a request waits for more records or callers |
//! | `confirmed` | which replicas are asked for the end of a log, and when it is confirmed. Pure |
//! | `ends` | asks them |
//! | `following` | which partitions a tail reads, and what has come. Pure |
//! | `splitting` | what was read of partitions, split by log. Pure |
//! | `arrivals` | the same, shared between the tasks that fetch, those that append, and the caller |
//! | `reading` | fetches it from the brokers |
//! | `tail` | the records of some logs, for one caller |
//! | `counts` | [`LogCounts`]: requests and failures |
//! | `delete` | deleting the start of a log |
//! | `shared` | what all tasks use |
//! | `logs` | [`KafkaLogs`] |

mod arrivals;
mod confirmed;
mod counts;
mod crowd;
mod delete;
mod ends;
mod following;
mod frame;
mod logs;
mod open;
mod options;
mod queue;
mod reading;
mod sending;
mod settings;
mod shared;
mod splitting;
mod tail;
mod topics;

pub use counts::LogCounts;
pub use logs::KafkaLogs;
pub use open::OpenError;
pub use options::{Missing, Options};
