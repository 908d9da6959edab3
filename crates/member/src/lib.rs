//! A node of a cluster.
//!
//! [`Member::start`] takes part in a cluster whose logs are given as [`ilion_commitlog::SharedLogs`]. A thread of its own (`follower`)
//! reads the meta log and the logs of the tablets that the node is a replica of, and applies them with `ilion_replica`. [`Member::store`]
//! is the cluster as a storage: reads go to replicas (`ilion_coordinator`), writes become records (`writes`), and are answered when the
//! log has acknowledged them and, if this node is a replica, has applied them.
//!
//! | module | what |
//! | --- | --- |
//! | `member` | [`Member`] |
//! | `join_error` | [`JoinError`] |
//! | `options` | [`MemberOptions`], [`NewCluster`] |
//! | `follower` | the thread that reads and applies the logs |
//! | `copying` | tablets that are copied from another node |
//! | `meta` | what a node knows from the meta log; pure |
//! | `meta_snapshot`, `meta_file` | what of it is saved, and logged for newcomers |
//! | `catching_up` | finds a snapshot in a meta log whose beginning is deleted; pure |
//! | `entering` | create, join, start |
//! | `taking` | which slices a new node takes; pure |
//! | `slices` | which slices change their owner when a node leaves, and to balance the ring; pure |
//! | `forward` | [`MemberClient`]: the way to other nodes; commands that they execute |
//! | `settling` | answers a write when its records are applied; turns errors of the log into those of clients |
//! | `asking` | records of the meta log, and waiting for their outcome |
//! | `ring` | [`RingChanges`]: leave, remove, rebalance, cancel, clean |
//! | `sender` | numbers and sends records |
//! | `pending` | writes, commands and reads that wait, and those that wait too long |
//! | `progress` | how far each tablet is applied, and callbacks that wait for that |
//! | `waiting` | waits for messages |
//! | `suspension` | a while in which records cannot be applied, as with a full disk |
//! | `writes` | mutations, changes of the schema |
//! | `commands` | statements that read before they write |
//! | `logged` | batches over several tablets, all or none |
//! | `barriers` | no-ops that reads share |
//! | `shared` | what threads share |
//! | `facts` | [`MemberFacts`]: what is counted, for metrics |
//! | `in_process` | [`InProcess`]: members of one process, for tests |
//! | `mem_logs` | [`MemLogs`]: logs in memory, for tests |

mod asking;
mod barriers;
mod catching_up;
mod commands;
mod copying;
mod entering;
mod facts;
mod follower;
mod forward;
mod in_process;
mod join_error;
mod logged;
mod mem_logs;
mod member;
mod meta;
mod meta_file;
mod meta_snapshot;
mod options;
mod pending;
mod progress;
mod ring;
mod sender;
mod settling;
mod shared;
mod slices;
mod suspension;
mod taking;
#[cfg(test)]
mod test_states;
mod waiting;
mod writes;

pub use copying::CopyParts;
pub use facts::{MemberFacts, TabletFacts, WaitTimes};
pub use forward::{MemberClient, NotHanded, Parts};
pub use in_process::InProcess;
pub use join_error::JoinError;
pub use mem_logs::{LogFaults, MemLogs};
pub use member::Member;
pub use options::{MemberOptions, NewCluster, Replaced};
pub use ring::{RingChange, RingChanges, RingError};
pub use shared::MemberListener;
pub use taking::slices_for_newcomer;
