//! Clusters answer the scripts of `tests/cql` as a single node does.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests fail where the test fails"
)]

mod compare;
mod coordinator;
mod members;
mod opener;
