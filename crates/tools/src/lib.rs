//! Tools around a node, and tools for its files.
//!
//! | module | what |
//! | --- | --- |
//! | [`mod@bench`] | load over the socket, against any CQL server: throughput, latency, the server's CPU and memory |
//! | [`sstable`] | offline: looks into SSTables, checks them, makes new ones of them |
//! | `median` | what several runs come to |
//!
//! Tools talk to people, so errors here are `anyhow` with the action that failed.

pub mod bench;
mod median;
pub mod sstable;
