//! The starts of a partition's blocks, in either format of the row index.

use ilion_rows::DeletionTime;

/// The start of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BlockStart {
    /// Offset from the start of the partition.
    pub(super) offset: u64,
    /// The deletion that is open there.
    pub(super) open: Option<DeletionTime>,
}

/// A block, and the offset of its end from the start of the partition; `None` if the block ends with the partition.
pub(super) type BlockSpan = (BlockStart, Option<u64>);
