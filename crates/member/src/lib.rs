//! A node of a cluster.
//!
//! [`Member::start`] takes part in a cluster whose logs are given as [`ilion_commitlog::SharedLogs`]. A thread of its own (`follower`) reads
//! the meta log and the logs of the tablets that the node is a replica of, and applies them with `ilion_replica`. [`Member::store`] is the
//! cluster as a storage: reads go to replicas (`ilion_coordinator`), writes become records (`writes`), and are answered when the log
//! has acknowledged them and, if this node is a replica, has applied them.
//!
//! | module | what |
//! | --- | --- |
//! | `member` | [`Member`] |
//! | `options` | [`MemberOptions`], [`NewCluster`] |
//! | `follower` | the thread that reads and applies the logs |
//! | `meta` | what the meta log says; pure |
//! | `entering` | create, join, start |
//! | `slices` | which slices a new node takes; pure |
//! | `forward` | [`CommandClient`]: commands that other nodes execute |
//! | `sender` | numbers and sends records |
//! | `pending` | writes that are on their way |
//! | `progress` | how far each tablet is applied, and who waits |
//! | `writes` | mutations, commands, changes of the schema |
//! | `barriers` | no-ops that reads share |
//! | `shared` | what threads share |
//! | `in_process` | [`InProcess`]: members of one process, for tests |
//! | `mem_logs` | [`MemLogs`]: logs in memory, for tests |

mod barriers;
mod entering;
mod follower;
mod forward;
mod in_process;
mod mem_logs;
mod member;
mod meta;
mod options;
mod pending;
mod progress;
mod sender;
mod shared;
mod slices;
mod writes;

pub use forward::{CommandClient, NotHanded};
pub use in_process::InProcess;
pub use mem_logs::{LogFaults, MemLogs};
pub use member::{JoinError, Member};
pub use options::{MemberOptions, NewCluster};
pub use shared::MemberListener;
