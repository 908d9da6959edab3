//! Reading an SSTable's partitions: where they are, and cursors over them.
//!
//! A key goes through the Bloom filter, then to the [`PartitionIndex`]. In the BIG format, [`summary::Summary`] says which part
//! of Index.db to look at, then [`index_walker::IndexWalker`] finds the partition's position; in the BTI format,
//! [`partition_trie::PartitionTrie`] does. Wide partitions have a row index: a [`block_index::BlockIndex`] or a
//! [`row_trie::RowTrie`]. [`partition_reader::PartitionReader`] gives what a filter wants of the partition at a position.

mod backward;
mod block_index;
mod block_start;
mod data_scan;
mod forward;
mod index_scan;
mod index_walker;
mod location;
mod map_walker;
mod partition_cursor;
mod partition_index;
mod partition_reader;
mod partition_trie;
mod range_cursor;
mod row_index;
mod row_trie;
mod shown;
mod summary;
mod unfiltereds;

pub(crate) use block_index::{Block, BlockIndex};
pub(crate) use index_walker::IndexWalker;
pub(crate) use location::{IndexEntry, Location, RowIndexAt};
pub(crate) use map_walker::MapWalker;
pub(crate) use partition_index::{IndexCursor, PartitionIndex};
pub(crate) use partition_reader::PartitionReader;
pub(crate) use partition_trie::{PartitionTrie, key_in_data};
pub(crate) use row_trie::BlockStarts;
pub(crate) use summary::{FULL_LEVEL, Summary, SummaryCheck};

pub use data_scan::DataScan;
pub use index_scan::{BlockAt, IndexScan, IndexedPartition};
pub use partition_cursor::PartitionCursor;
pub use range_cursor::RangeCursor;
pub use summary::SummaryShare;
