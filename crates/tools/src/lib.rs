//! Tools around a node, and tools for its files.
//!
//! | module | what |
//! | --- | --- |
//! | [`mod@bench`] | benchmarks of any CQL server over the socket, and of Ilion in this process |
//! | [`sstable`] | offline tools: inspect, check, convert, merge, split and scrub SSTables |
//! | `bar` | [`Bar`]: the progress of long work |
//! | `median` | the median of several runs |
//!
//! Errors here are for people: `anyhow` with the action that failed.

mod bar;
pub mod bench;
mod median;
pub mod sstable;

pub use bar::Bar;
