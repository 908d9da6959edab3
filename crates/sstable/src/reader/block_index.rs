//! The promoted index: the blocks of a wide partition.
//!
//! ```text
//! promoted := header_length:uvint  deletion  count:uvint  block*  offset:i32 *      offsets are relative to the first block
//! block    := first:prefix  last:prefix  offset:uvint  width:svint  has_open:bool [deletion]
//! ```
//!
//! `offset` counts from the start of the partition. `width` is reduced by 65536. The deletion of a block is the one that is open
//! behind the block. Blocks are read one at a time, through the cache: a binary search in a large index reads little of it.

use std::sync::Arc;

use ilion_rows::{Bound, DeletionTime};

use crate::error::Step;
use crate::row::decode::{ClusteringFormat, ClusteringPrefix, RowFormat};
use crate::row::format::times::Times;
use crate::row::source::{ByteSource, Piece};
use crate::{ChunkReader, DataStream, Error, Result};

const WIDTH_BASE: i64 = 65_536;
const OFFSET_LEN: u64 = 4;
/// Longer blocks are refused as damaged. A block has at most two prefixes of 32 columns of 64 KiB.
const BLOCK_LEN_MAX: u64 = 16 << 20;

/// One block of unfiltereds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) first: ClusteringPrefix,
    pub(crate) last: ClusteringPrefix,
    /// Offset from the start of the partition.
    pub(crate) offset: u64,
    pub(crate) width: u64,
    /// The deletion that is open behind the block.
    pub(crate) open: Option<DeletionTime>,
}

impl Block {
    /// Decodes a block of an index with clusterings and times in these forms.
    pub(crate) fn decode(
        clustering: &ClusteringFormat,
        times: &Times,
        input: &mut impl ByteSource,
    ) -> Step<Self> {
        let first = clustering.prefix(input)?;
        let last = clustering.prefix(input)?;
        let offset = input.uvint()?;
        let width = WIDTH_BASE.checked_add(input.svint()?);
        let Some(width) = width.and_then(|width| u64::try_from(width).ok()) else {
            return Err(input.corrupt("a width before it"));
        };
        let open = match input.u8()? {
            0 => None,
            1 => Some(times.partition_deletion(input)?),
            _ => return Err(input.corrupt("a boolean before it")),
        };
        Ok(Self {
            first,
            last,
            offset,
            width,
            open,
        })
    }
}

/// The blocks of one partition.
#[derive(Debug)]
pub(crate) struct BlockIndex {
    index: Arc<ChunkReader>,
    format: Arc<RowFormat>,
    blocks_at: u64,
    offsets_at: u64,
    pub(crate) count: usize,
    /// Number of bytes of the partition before its first unfiltered.
    pub(crate) header_length: u64,
    /// Deletion of the partition.
    pub(crate) deletion: DeletionTime,
}

impl BlockIndex {
    /// Opens the promoted index at `position` of Index.db.
    pub(crate) fn open(
        index: Arc<ChunkReader>,
        format: Arc<RowFormat>,
        position: u64,
        size: u64,
    ) -> Result<Self> {
        let mut input = DataStream::cached(index.clone(), position);
        let end = position.saturating_add(size);
        let header_length = input.uvint()?;
        let deletion = format.times.partition_deletion(&mut input)?;
        let count = input.uvint()?;
        let blocks_at = input.position();
        let offsets_at = count
            .checked_mul(OFFSET_LEN)
            .and_then(|offsets| end.checked_sub(offsets))
            .filter(|offsets_at| *offsets_at >= blocks_at && end <= index.data_length());
        match (offsets_at, usize::try_from(count)) {
            (Some(offsets_at), Ok(count)) if count > 0 => Ok(Self {
                index,
                format,
                blocks_at,
                offsets_at,
                count,
                header_length,
                deletion,
            }),
            _ => Err(input.corrupt("a number of blocks that fits the index before it")),
        }
    }

    /// The block with index `at`. Requires: it is below the count.
    pub(crate) fn block(&self, at: usize) -> Result<Block> {
        let start = self.block_position(at)?;
        let end = if at + 1 < self.count {
            self.block_position(at + 1)?
        } else {
            self.offsets_at
        };
        let len = end.checked_sub(start).filter(|len| *len <= BLOCK_LEN_MAX);
        let Some(len) = len.and_then(|len| usize::try_from(len).ok()) else {
            return Err(self.corrupt(at, "blocks of up to 16 MiB in order"));
        };
        let mut input = Piece::new(self.index.read_at(start, len)?, start, &self.index);
        let block = Block::decode(&self.format.clustering, &self.format.times, &mut input)?;
        match input.remaining() {
            0 => Ok(block),
            _ => Err(input.corrupt("the end of the block's entry").into()),
        }
    }

    fn block_position(&self, at: usize) -> Result<u64> {
        let bytes = self.index.read_at(self.offsets_at + at as u64 * OFFSET_LEN, 4)?;
        let offset = bytes.first_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes));
        let position = offset.map(|offset| self.blocks_at + u64::from(offset));
        position
            .filter(|position| *position <= self.offsets_at)
            .ok_or_else(|| self.corrupt(at, "the offset of a block in the index"))
    }

    fn corrupt(&self, at: usize, expected: &'static str) -> Error {
        self.index
            .corrupt(self.offsets_at + at as u64 * OFFSET_LEN, expected)
    }

    /// The first block that has an unfiltered after `bound`.
    pub(crate) fn first_after(&self, bound: &Bound) -> Result<usize> {
        self.first_where(|block| block.last.compare(bound, &self.format.comparator).is_gt())
    }

    /// The first block that has no unfiltered before `bound`.
    pub(crate) fn first_not_before(&self, bound: &Bound) -> Result<usize> {
        self.first_where(|block| block.first.compare(bound, &self.format.comparator).is_ge())
    }

    /// The deletion that is open at the start of block `at`.
    pub(crate) fn open_before(&self, at: usize) -> Result<Option<DeletionTime>> {
        match at.checked_sub(1) {
            Some(before) => Ok(self.block(before)?.open),
            None => Ok(None),
        }
    }

    /// The first block for which `holds` is true (binary search). Requires: `holds` is false up to some block, and true from there on.
    fn first_where(&self, holds: impl Fn(&Block) -> bool) -> Result<usize> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if holds(&self.block(middle)?) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(low)
    }
}
