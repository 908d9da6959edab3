//! The CQL server over a real socket, with a double in place of the query layer.
//!
//! | module | what |
//! | --- | --- |
//! | `client` | a small blocking client |
//! | `double` | the query layer and a commit log that the tests control |
//! | `startup` | versions, compression, OPTIONS, and which requests are allowed when |
//! | `logins` | AUTHENTICATE, AUTH_RESPONSE, AUTH_SUCCESS |
//! | `hostile` | malformed frames, huge lengths, idle clients, too many connections |
//! | `answers` | results, errors, warnings, out-of-order answers, durability, panics |
//! | `memory` | the limits of memory for all clients |
//! | `flow` | clients that read too slowly or send too fast |
//! | `events` | which clients get which events |
//! | `stopping` | how a server stops |
//! | `waits` | requests that wait for other nodes |

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
mod logins;
mod memory;
mod startup;
mod stopping;
mod waits;
