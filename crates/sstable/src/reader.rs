//! Reading an SSTable's partitions: where they are, and cursors over them.
//!
//! A key is looked up in the token map, which has the position of its partition. Without a token map, the Bloom filter and the
//! key cache come first, then the [`PartitionIndex`]: in the BIG format, [`summary::Summary`] returns the part of Index.db in
//! which [`index_walker::IndexWalker`] finds the position; in the BTI format, [`partition_trie::PartitionTrie`] finds it. Wide
//! partitions have a row index: a [`block_index::BlockIndex`] or a [`row_trie::RowTrie`]. [`partition_reader::PartitionReader`]
//! reads the rows of a partition that a filter selects.

mod backward;
mod block_index;
mod block_start;
mod data_scan;
mod forward;
mod glance;
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
mod scan;
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
pub use glance::Glance;
pub use index_scan::{BlockAt, IndexScan, IndexedPartition};
pub use partition_cursor::PartitionCursor;
pub use range_cursor::RangeCursor;
pub use scan::Scan;
pub use summary::SummaryShare;
