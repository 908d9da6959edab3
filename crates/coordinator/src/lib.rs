//! Reads of a node that has only a part of the data, or none.
//!
//! A single node reads its own engine. [`ClusterStore`] is a [`Store`](ilion_query::Store), so the query layer
//! runs on it unchanged. Its reads go to replicas, chosen by the ring that the meta log gives; its writes go to [`Writes`].
//!
//! The main path of a read: `ClusterStore::read_range` makes a `cursor`, which cuts the range into parts (`route`), each answered
//! by one replica. A part of this node is read from its engine. For any other, a `stream` sends [`ReadCommand`]s through a
//! [`ReplicaClient`] and receives [`Answer`]s, page by page. There [`ReplicaReader::serve`] reads its engine. If a replica does not answer,
//! the cursor plans what is left without it. `docs/design/cluster-reads.md` has the rules and the reasons.
//!
//! | module | what |
//! | --- | --- |
//! | `store` | [`ClusterStore`] |
//! | `level` | what a consistency level means for a read |
//! | `membership` | [`Membership`], [`Topology`]: what a node knows of its cluster |
//! | `barriers` | [`Barriers`]: reads that see every acknowledged write |
//! | `writes` | [`Writes`]: the write path |
//! | `client`, `in_process` | [`ReplicaClient`]: how other nodes are reached; [`InProcess`] |
//! | `command`, `answer` | [`ReadCommand`], [`Answer`]: the messages |
//! | `filter`, `fields` | parts of messages |
//! | `serve` | [`ReplicaReader`]: answers commands |
//! | `open` | opens reads of this node's own data |
//! | `reads` | the reads of one statement: deadlines, barriers, sending |
//! | `race`, `speculation`, `signal` | when a second replica is asked for a page; [`Signal`]: wakes the reader when one of them answers |
//! | `route`, `tablets` | which replica answers which part of a range |
//! | `target` | what a read selects; pages from answers |
//! | `stream`, `cursor` | partitions of one node; of all nodes |
//! | `candidates` | index searches |
//! | `nearest` | nearest vectors |
//! | `fan_out` | reads that ask all nodes at once |
//! | `testing` | a cluster in one process, for tests (feature `testing`) |
//!
//! When you add a kind of read: `command` and `answer` with their versions, `serve`, and a method of `store`.

mod answer;
mod barriers;
mod candidates;
mod client;
mod command;
mod cursor;
mod fan_out;
mod fields;
mod filter;
mod in_process;
mod level;
mod membership;
mod nearest;
mod open;
mod race;
mod reads;
mod route;
mod serve;
mod signal;
mod speculation;
mod store;
mod stream;
mod tablets;
mod target;
#[cfg(feature = "testing")]
pub mod testing;
mod writes;

pub use answer::{Answer, ReplicaError, decode_answer, encode_answer};
pub use barriers::{Applied, AppliedCallback, BarrierError, Barriers};
pub use client::{Pending, ReplicaClient};
pub use command::{PageSize, Read, ReadCommand, Resume, SearchFrom};
pub use filter::NamedFilter;
pub use in_process::InProcess;
pub use membership::{Membership, Topology};
pub use reads::ReadOptions;
pub use serve::ReplicaReader;
pub use signal::Signal;
pub use store::ClusterStore;
pub use writes::Writes;
