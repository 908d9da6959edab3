//! Compaction: which SSTables to merge (a pure decision) and the merge itself.
//!
//! | module | what |
//! | --- | --- |
//! | `candidate` | what a strategy knows of an SSTable |
//! | `size_tiered` | Cassandra's SizeTieredCompactionStrategy |
//! | `merge` | the merge: cursors in, purged unfiltereds into a writer |
//!
//! A strategy touches nothing; the engine gives it descriptors, runs the merge and swaps the view.

mod candidate;
mod merge;
mod size_tiered;

pub use candidate::{Candidate, Choice};
pub use merge::{Outcome, Sink, Throttle, merge_into};
pub use size_tiered::{SizeTiered, choose};
