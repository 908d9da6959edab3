//! Sorted partitions in memory: where writes live until they are flushed.
//!
//! A memtable is split into shards by ranges of tokens, each a map behind a lock, so that writers of different
//! partitions rarely meet. A write copies each row into one allocation, and merges it with the row that is there. A reader takes a
//! snapshot of a partition under the read lock, which copies nothing; a writer that comes while the snapshot lives copies the few
//! rows that it changes. So within a partition a reader sees every mutation wholly or not at all, and deletions and rows
//! of one moment.
//!
//! | module | what |
//! | --- | --- |
//! | `memtable` | [`Memtable`]: shards, apply |
//! | `statistics` | [`Statistics`]: what it counts |
//! | `partition` | one partition and how an update changes it |
//! | `observed` | [`Watched`]: who is shown how rows change |
//! | `placed_key` | a partition key in the order of the ring |
//! | `row_list` | rows in clustering order |
//! | `stored_row`, `packed` | a row as it is held: in one piece if it is short |
//! | `entries` | the memtable of a hidden table: entries of an index |
//! | `cursor` | [`MemtableCursor`], [`PartitionCursor`]: reading |

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

pub use cursor::{MemtableCursor, PartitionCursor};
pub use entries::EntriesInOrder;
pub use memtable::Memtable;
pub use observed::Watched;
pub use statistics::{LogPosition, Statistics};
