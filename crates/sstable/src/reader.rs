//! Reading an SSTable's partitions: where they are, and cursors over them.
//!
//! A key goes through the Bloom filter, then [`summary::Summary`] says which part of Index.db to look at, then
//! [`index_walker::IndexWalker`] finds the partition's position; wide partitions have a [`block_index::BlockIndex`]
//! there. [`partition_reader::PartitionReader`] gives what a filter wants of the partition at a position.

mod backward;
mod block_index;
mod forward;
mod index_walker;
mod partition_cursor;
mod partition_reader;
mod range_cursor;
mod summary;

pub(crate) use index_walker::{IndexWalker, Location};
pub(crate) use partition_reader::PartitionReader;
pub(crate) use summary::Summary;

pub use partition_cursor::PartitionCursor;
pub use range_cursor::RangeCursor;
