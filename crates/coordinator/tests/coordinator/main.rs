//! A cluster of three nodes in one process, each with an engine on a disk in memory, and one node with all data beside it.
//!
//! | module | what it shows |
//! | --- | --- |
//! | `random` | any schema, data and SELECT: the cluster answers as the node with all data does |
//! | `failures` | replicas that fail: an answer is right, or an error |
//! | `barriers` | QUORUM sees every acknowledged write, though replicas are late |
//! | `routes` | who is asked, how often, and who refuses |
//! | `limits` | other nodes send little more than a statement wants |
//! | `speculation` | a replica that is slow is not waited for, if the table says so |
//! | `clocks` | replicas whose clocks are behind |
//! | `messages` | messages survive their bytes; hostile bytes are refused |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests fail where the test fails"
)]

mod barriers;
mod client;
mod clocks;
mod failures;
mod limits;
mod messages;
mod random;
mod routes;
mod speculation;
mod statements;
mod world;
