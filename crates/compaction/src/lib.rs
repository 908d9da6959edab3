//! Compaction: which SSTables to merge (a pure decision) and the merge itself.
//!
//! The input of a [`Strategy`] is a [`Situation`]: facts about all SSTables of a table, and the time. Its output
//! is a [`Choice`]: what to merge, what to drop unread, how to cut the result. It does no I/O; the engine
//! runs the merge and swaps the view.
//!
//! | module | what |
//! | --- | --- |
//! | `candidate` | input and output of a strategy |
//! | `strategy` | [`Strategy`]: one interface for all strategies |
//! | `size_tiered`, `leveled`, `time_window`, `unified` | Cassandra's strategies |
//! | `common` | options that all of them have |
//! | `expired` | SSTables to drop unread; SSTables that are worth a compaction of their own |
//! | `overlaps`, `space` | which SSTables may have a key; shares of the ring |
//! | `merge` | the merge: from a cursor into a writer |
//! | `watched` | sources that report progress, so that the reader can be paced or stopped |
//!
//! The pictures of `testdata/` show what each strategy chooses.

mod candidate;
mod common;
mod expired;
mod leveled;
mod merge;
mod overlaps;
#[cfg(test)]
mod picture;
mod size_tiered;
mod space;
mod strategy;
#[cfg(test)]
mod tests;
mod time_window;
mod unified;
mod watched;

pub use candidate::{Candidate, Choice, Memory, Output, Situation};
pub use common::{Common, Options};
pub use merge::{Outcome, Sink, merge_into};
pub use overlaps::deepest;
pub use space::shard_of;
pub use strategy::{MajorOutput, Strategy};
pub use watched::{Stretches, Watch, Watched};
