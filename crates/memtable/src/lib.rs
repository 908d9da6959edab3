//! Sorted partitions in memory: where writes live until they are flushed.
//!
//! A memtable is split into shards by ranges of tokens, each a tree behind a lock, so that writers of different
//! partitions rarely wait for each other. A write copies each row into one piece of memory, and merges it with the existing row. A
//! reader takes a snapshot of a partition under the read lock, which copies nothing; while the snapshot lives, a writer copies
//! the few rows that it changes. So a reader sees a partition as it was at one moment: every mutation wholly or not at all.
//!
//! | module | what |
//! | --- | --- |
//! | `memtable` | [`Memtable`]: shards, apply |
//! | `statistics` | [`Statistics`]: counts over its mutations; [`LogPosition`] |
//! | `partition` | one partition, and how an update changes it |
//! | `observed` | [`Observed`]: showing an index how rows change |
//! | `placed_key` | a partition key in the order of the ring |
//! | `tree` | partitions by their keys |
//! | `row_list` | rows in clustering order |
//! | `stored_row`, `packed` | a row in memory: in one piece if it is short |
//! | `arena` | memory for short rows, side by side |
//! | `entries` | the memtable of a hidden table: entries of an index |
//! | `cursor` | [`MemtableCursor`], [`PartitionCursor`]: reading |

mod arena;
mod cursor;
mod entries;
mod memtable;
mod observed;
mod packed;
mod partition;
mod placed_key;
mod row_list;
mod statistics;
mod stored_row;
mod tree;

pub use cursor::{MemtableCursor, PartitionCursor};
pub use entries::EntriesInOrder;
pub use memtable::Memtable;
pub use observed::Observed;
pub use statistics::{LogPosition, Statistics};
