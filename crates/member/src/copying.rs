//! Tablets that a node copies from another one, since it lacks the beginning of their logs or would take long to read it.
//!
//! | module | what |
//! | --- | --- |
//! | `copies` | what is copied, in both directions; how a node begins to follow a tablet |
//! | `message` | the request, and the parts of the answer |
//! | `source` | the node that has them: saves, holds its SSTables, sends |
//! | `worker` | the node that wants them: the thread that asks, and brings in what comes |

mod copies;
mod message;
mod source;
mod worker;

pub(crate) use copies::{Beginning, Copies, Holders, beginning_of, sources_of};
pub use source::CopyParts;
pub(crate) use source::{Asked, Judged, judge, serve};
pub(crate) use worker::{CopyJob, Done, Job, Worker};
