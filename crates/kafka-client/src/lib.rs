//! A client of Kafka's protocol, for what Ilion asks brokers: appending, reading, topics and their settings.
//!
//! It has what depends on the protocol and no policy: nothing is retried here. A [`Connection`] sends one request at a time and gives it
//! up after a time limit. A [`Cluster`] knows which broker leads which partition. Crates that append and read build on both. Everything
//! here is asynchronous (tokio); only callers above know threads.
//!
//! The bytes of brokers are not trusted: lengths and counts are bounded by what is there, and a wrong answer is an error.
//!
//! | module | |
//! | --- | --- |
//! | `wire` | values as the protocol has them, in both directions |
//! | `messages` | requests and answers, field by field |
//! | `codes` | codes of errors |
//! | `batch` | batches of records |
//! | `options` | [`Options`]: addresses, [`Security`], time limits |
//! | `certificates` | the issuers that a connection with TLS trusts |
//! | `scram` | logins that do not show the password |
//! | `connection` | [`Connector`], [`Connection`]: to one broker |
//! | `cluster` | [`Cluster`]: brokers and leaders |

pub mod batch;
mod certificates;
mod cluster;
pub mod codes;
mod connection;
mod error;
pub mod messages;
mod options;
mod scram;
pub mod wire;

pub use cluster::{Cluster, Partition, View};
pub use connection::{Connection, Connector};
pub use error::Error;
pub use options::{Credentials, Mechanism, Options, Security};
