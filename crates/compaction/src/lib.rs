//! Compaction: which SSTables to merge (a pure decision) and the merge itself.
//!
//! A strategy ([`Strategy`]) is given a [`Situation`]: descriptors of all SSTables of a table, and what the clock says. It
//! answers with a [`Choice`]: what to merge, what to drop unread, how to cut the result. It touches nothing; the engine
//! gives it descriptors, runs the merge and swaps the view.
//!
//! | module | what |
//! | --- | --- |
//! | `candidate` | what a strategy knows of an SSTable, and what it answers |
//! | `strategy` | the strategies behind one door |
//! | `size_tiered`, `leveled`, `time_window`, `unified` | Cassandra's strategies |
//! | `common` | options that all of them have |
//! | `expired` | what can be dropped unread; what is worth a compaction of its own |
//! | `overlaps`, `space` | which SSTables a key may be in; shares of the ring |
//! | `merge` | the merge: cursors in, purged unfiltereds into a writer |
//! | `watched` | sources that count what they give, for whoever sets the pace or shows how far it is |
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
pub use overlaps::{Inclusion, deepest};
pub use space::shard_of;
pub use strategy::{MajorOutput, Strategy};
pub use watched::{Stretches, Watch, Watched};
