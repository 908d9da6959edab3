//! Nodes that talk to each other over sockets of the loopback address.
//!
//! | module | what it shows |
//! | --- | --- |
//! | `calls` | many calls at a time, answered in any order; deadlines, cancellations, limits, lanes |
//! | `parts` | answers in parts: complete, in order, and never far ahead of their reader |
//! | `greetings` | who is refused, and what both sides read about it |
//! | `broken` | connections that are cut, silent, slow, or carry other bytes than were sent |
//! | `encrypted` | TLS: what is accepted, and what is refused with which words |
//! | `reads` | a cluster of three nodes over sockets answers as one node with all data |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests fail where the test fails"
)]

mod broken;
mod calls;
mod encrypted;
mod greetings;
mod nodes;
mod parts;
mod proxy;
mod reads;
#[allow(dead_code, reason = "the tests of coordinator use the rest")]
#[path = "../../../coordinator/tests/coordinator/statements.rs"]
mod statements;
#[allow(dead_code, reason = "the tests of coordinator use the rest")]
#[path = "../../../coordinator/tests/coordinator/world.rs"]
mod world;
