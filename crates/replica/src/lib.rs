//! A replica: applies the records of a cluster's logs to an engine, each once and in order.
//!
//! [`Replica::apply`] is the main path. It takes the next record of a tablet's log, drops it if it is a repeated one, applies its
//! mutations or executes its command, and returns the outcome. It depends on nothing but the records before: no clock, no randomness, no
//! settings. So all replicas of a tablet come to the same, and the digests of [`Replica::take_digests`] show it.
//!
//! The schema changes at one place of each log: a node that reads of a change in the meta log appends a record that needs the new schema
//! to the log of each of its tablets, applies up to the first such record of each, saves, and adopts the schema
//! ([`Replica::adopt`]). So a record is applied with the same schema on all replicas.
//!
//! What survives a crash: the engine knows for each table up to where it has each tablet on disk, and the file `ilion.tablets` has what
//! else depends on the records (windows of senders, the time of the log). A replica goes on from there, and no record counts twice.
//!
//! | module | what lives there |
//! | --- | --- |
//! | `replica` | [`Replica`] |
//! | `place` | storage at a place in a log |
//! | `saved` | what is saved beside the tables |
//! | `copied` | [`CopiedState`]: what a replica that copies tablets needs beside the tables |
//! | `fenced` | [`FencedChange`]: changes of the schema, TRUNCATE |
//! | `logged` | [`LoggedBatch`]: batches over several tablets |
//! | `digest` | digests of outcomes: replicas that differ are noticed |
//! | `written` | what a command has written, for digests: the same bytes on all replicas |

mod copied;
mod digest;
mod fenced;
mod logged;
mod place;
mod replica;
mod saved;
mod written;

pub use copied::CopiedState;
pub use fenced::FencedChange;
pub use logged::{BatchId, LoggedBatch, UnfinishedBatch, encode_done};
pub use replica::{AdoptError, Applied, NotApplied, Replica, ReplicaOptions};
pub use saved::SaveError;
