//! Members of a cluster in one process, over logs in memory and disks in memory.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests fail where the test fails"
)]

mod barriers;
mod chaos;
mod commands;
mod copies;
mod full_disk;
mod levels;
mod logged;
mod lost;
mod outcomes;
mod ring;
mod ring_chaos;
mod roles;
mod world;
