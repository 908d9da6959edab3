//! Tools around a node: for now the benchmark client.
//!
//! | module | what |
//! | --- | --- |
//! | [`mod@bench`] | load over the socket, against any CQL server: throughput, latency, the server's CPU and memory |
//!
//! Tools talk to people, so errors here are `anyhow` with the action that failed.

pub mod bench;
