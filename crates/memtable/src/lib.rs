//! Sorted partitions in memory: where writes live until they are flushed.
//!
//! A memtable is split into shards by ranges of tokens, each a map behind a lock, so that writers of different
//! partitions rarely meet. A write copies its bytes into one allocation and merges its rows in place. A reader copies
//! few rows at a time under the read lock and goes on from the last one; within a partition it sees the deletions as of
//! when it came there, and rows as of when it reached them.
//!
//! | module | what |
//! | --- | --- |
//! | `memtable` | [`Memtable`]: shards, apply, counts |
//! | `partition` | one partition and how an update changes it |
//! | `row_list` | rows in clustering order |
//! | `cursor` | [`MemtableCursor`], [`PartitionCursor`]: reading |

mod cursor;
mod memtable;
mod partition;
mod row_list;

pub use cursor::{MemtableCursor, PartitionCursor};
pub use memtable::{Applied, LogPosition, Memtable, RowChange, Statistics};
