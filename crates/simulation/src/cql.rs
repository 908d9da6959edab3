//! Clusters of real engines and real CQL over simulated logs, one for each tablet.
//!
//! A [`Machine`] is a node: its disk in memory, a stepped engine, a replica, and the coordinator's part.

mod capture;
mod machine;
mod meta;
mod shown;

pub use machine::Machine;
pub(crate) use meta::begin_cluster;
