//! Reading an SSTable's partitions: where they are, and cursors over them.

mod partition_cursor;
mod range_cursor;

pub use partition_cursor::PartitionCursor;
pub use range_cursor::RangeCursor;
