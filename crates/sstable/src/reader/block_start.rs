//! Where the blocks of a partition begin, in either format of its row index.

use ilion_rows::DeletionTime;

/// Where a block begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BlockStart {
    /// From the start of the partition.
    pub(super) offset: u64,
    /// The deletion that is open there.
    pub(super) open: Option<DeletionTime>,
}

/// A block, and where it ends, from the start of the partition; `None`: with the partition.
pub(super) type Block = (BlockStart, Option<u64>);
