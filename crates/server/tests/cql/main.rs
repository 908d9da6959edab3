//! The CQL server over a real socket, with a double in place of the query layer.
//!
//! | module | what |
//! | --- | --- |
//! | `client` | a small blocking client |
//! | `double` | statements that do as their text says; a commit log that the test holds |
//! | `startup` | versions, compression, OPTIONS, what is allowed when |
//! | `hostile` | malformed frames, huge lengths, silence, too many connections |
//! | `answers` | results, errors, warnings, out-of-order answers, durability, panics |
//! | `memory` | what clients together may make the server hold |
//! | `flow` | slow clients and eager ones |
//! | `events` | who is told of what |
//! | `stopping` | the end of a server |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests fail where the test fails"
)]

mod answers;
mod client;
mod double;
mod events;
mod flow;
mod hostile;
mod memory;
mod startup;
mod stopping;
