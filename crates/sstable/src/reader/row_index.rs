//! The row index of a wide partition, in either format: the starts of its blocks.

use std::ops::Range;
use std::sync::Arc;

use ilion_rows::{Bound, Slice};

use super::block_index::BlockIndex;
use super::block_start::{BlockSpan, BlockStart};
use super::location::RowIndexAt;
use super::row_trie::{BlocksBack, RowTrie};
use crate::row::decode::RowFormat;
use crate::{ChunkReader, Result};

/// The row index of one partition.
#[derive(Debug)]
pub(super) enum RowIndex {
    Promoted(BlockIndex),
    Trie(RowTrie),
}

impl RowIndex {
    /// Opens the row index; `None` if it cannot be used.
    pub(super) fn open(
        file: Arc<ChunkReader>,
        format: Arc<RowFormat>,
        at: &RowIndexAt,
    ) -> Result<Option<Self>> {
        Ok(match at {
            RowIndexAt::Promoted { position, size } => {
                Some(Self::Promoted(BlockIndex::open(file, format, *position, *size)?))
            }
            RowIndexAt::Trie { root, .. } => RowTrie::open(file, format, *root).map(Self::Trie),
        })
    }

    /// The last block that may have the first unfiltered after `bound`; `None` if no block has one.
    pub(super) fn block_of(&self, bound: &Bound) -> Result<Option<BlockStart>> {
        match self {
            Self::Trie(trie) => trie.block_of(bound).map(Some),
            Self::Promoted(index) => match index.first_after(bound)? {
                at if at >= index.count => Ok(None),
                at => promoted_block(index, at).map(|(start, _)| Some(start)),
            },
        }
    }

    /// The blocks that may have unfiltereds of a slice.
    pub(super) fn blocks_of(&self, slice: &Slice) -> Result<Blocks> {
        match self {
            Self::Trie(trie) => trie.blocks_back(&slice.start, &slice.end).map(Blocks::Trie),
            Self::Promoted(index) => {
                let from = index.first_after(&slice.start)?;
                let to = index.first_not_before(&slice.end)?;
                Ok(Blocks::Promoted(from..to.max(from)))
            }
        }
    }
}

/// The blocks of a slice, taken from the last to the first.
#[derive(Debug)]
pub(super) enum Blocks {
    /// Without a row index: the whole partition is one block.
    Whole {
        is_taken: bool,
    },
    /// Indexes of blocks in the promoted index.
    Promoted(Range<usize>),
    Trie(BlocksBack),
}

impl Blocks {
    pub(super) fn none() -> Self {
        Self::Promoted(0..0)
    }

    /// True if all blocks were taken.
    pub(super) fn is_done(&self) -> bool {
        match self {
            Self::Whole { is_taken } => *is_taken,
            Self::Promoted(range) => range.is_empty(),
            Self::Trie(blocks) => blocks.is_done(),
        }
    }

    /// Takes the last block. `whole` is the offset of the only block of a partition without a row index.
    pub(super) fn take_last(&mut self, index: Option<&RowIndex>, whole: u64) -> Result<Option<BlockSpan>> {
        match (self, index) {
            (Self::Whole { is_taken }, _) => {
                let whole = BlockStart {
                    offset: whole,
                    open: None,
                };
                Ok((!std::mem::replace(is_taken, true)).then_some((whole, None)))
            }
            (Self::Promoted(range), Some(RowIndex::Promoted(index))) => {
                let block = range.next_back().map(|at| promoted_block(index, at));
                block.transpose()
            }
            (Self::Trie(blocks), Some(RowIndex::Trie(index))) => blocks.next(index),
            _ => Ok(None),
        }
    }
}

fn promoted_block(index: &BlockIndex, at: usize) -> Result<BlockSpan> {
    let block = index.block(at)?;
    let start = BlockStart {
        offset: block.offset,
        open: index.open_before(at)?,
    };
    Ok((start, Some(block.offset.saturating_add(block.width))))
}
