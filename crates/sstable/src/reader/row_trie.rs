//! Rows.db: the row index of a wide partition, as a trie of the starts of its blocks.
//!
//! ```text
//! file    := (trie  head)*
//! head    := key:bytes16  data_position:uvint  root_distance:svint  block_count:uvint  deletion:PDEL
//! payload := offset [open:PDEL]        offset: of (bits and 7) bytes, signed; open: if bits has 8
//! ```
//!
//! Keys are byte-comparable separators of blocks: above all unfiltereds before the block, and not above its first unfiltered. The
//! first block has the empty key. The last key is behind the last unfiltered and leads to the end of the partition. `offset`
//! counts from the start of the partition; `open` is the deletion that is open at the start of the block.

use std::sync::Arc;

use ilion_rows::{Bound, Clustering, DeletionTime};

use super::block_start::BlockStart;
use crate::comparable::ComparableClusterings;
use crate::row::decode::RowFormat;
use crate::row::source::Piece;
use crate::trie::{Ascending, Descending, Nodes, Payload};
use crate::{ChunkReader, Error, Result};

const HAS_OPEN: u8 = 8;
const OFFSET_LEN_MASK: u8 = 7;

/// The row index of one partition.
#[derive(Debug)]
pub(super) struct RowTrie {
    rows: Arc<ChunkReader>,
    format: Arc<RowFormat>,
    clusterings: ComparableClusterings,
    root: u64,
}

impl RowTrie {
    /// Opens the trie; `None` if the order of its keys is unknown.
    pub(super) fn open(rows: Arc<ChunkReader>, format: Arc<RowFormat>, root: u64) -> Option<Self> {
        let clusterings = ComparableClusterings::of(&format.table)?;
        Some(Self {
            rows,
            format,
            clusterings,
            root,
        })
    }

    /// The last block that starts before `bound`: earlier blocks have no unfiltered after `bound`.
    pub(super) fn block_of(&self, bound: &Bound) -> Result<BlockStart> {
        let mut walk = self.walk_back(bound)?;
        match walk.next()? {
            Some(payload) => self.decode(&payload),
            None => Err(self.no_block()),
        }
    }

    /// The blocks from `start` to `end`, in reverse order.
    pub(super) fn blocks_back(&self, start: &Bound, end: &Bound) -> Result<BlocksBack> {
        Ok(BlocksBack {
            least: self.block_of(start)?.offset,
            walk: Some(self.walk_back(end)?),
            before: None,
        })
    }

    fn walk_back(&self, bound: &Bound) -> Result<Descending> {
        let mut key = Vec::new();
        self.clusterings.encode_bound(bound.kind, &bound.values, &mut key);
        self.walk_back_from(&key)
    }

    fn walk_back_from(&self, key: &[u8]) -> Result<Descending> {
        Descending::from(Nodes::of(self.rows.clone()), self.root, key)
    }

    fn decode(&self, payload: &Payload) -> Result<BlockStart> {
        let len = payload.bits & OFFSET_LEN_MASK;
        let offset = payload.sized_int(0, usize::from(len));
        let Some(offset) = offset.and_then(|offset| u64::try_from(offset).ok()) else {
            return Err(self.rows.corrupt(payload.position, "the offset of a block"));
        };
        let mut open = None;
        if payload.bits & HAS_OPEN != 0 {
            let bytes = payload.bytes.slice(usize::from(len)..);
            let mut input = Piece::new(bytes, payload.position + u64::from(len), &self.rows);
            let deletion = self.format.times.partition_deletion(&mut input)?;
            open = Some(deletion).filter(|deletion| !deletion.is_live());
        }
        Ok(BlockStart { offset, open })
    }

    fn no_block(&self) -> Error {
        self.rows.corrupt(self.root, "the first block at the root")
    }
}

/// The starts of all blocks of one partition.
pub(crate) struct BlockStarts {
    trie: RowTrie,
    starts: Vec<BlockStart>,
}

/// Limit for the number of blocks that are collected.
const STARTS_MAX: usize = 1 << 24;

impl BlockStarts {
    /// Reads the starts of all blocks. `None` if the order of the trie's keys is unknown, or if there are too many blocks.
    pub(crate) fn gather(rows: Arc<ChunkReader>, format: Arc<RowFormat>, root: u64) -> Result<Option<Self>> {
        let Some(trie) = RowTrie::open(rows, format, root) else {
            return Ok(None);
        };
        let mut walk = Ascending::from(Nodes::of(trie.rows.clone()), root, &[])?;
        let mut starts: Vec<BlockStart> = Vec::new();
        while let Some(payload) = walk.next()? {
            let start = trie.decode(&payload)?;
            if starts.last().is_some_and(|last| last.offset >= start.offset) {
                return Err(trie
                    .rows
                    .corrupt(payload.position, "an offset above that of the block before"));
            }
            if starts.len() >= STARTS_MAX {
                return Ok(None);
            }
            starts.push(start);
        }
        Ok(Some(Self { trie, starts }))
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    /// The number of blocks. The last entry is not a block: it leads to the end of the partition.
    pub(crate) fn block_count(&self) -> u64 {
        self.starts.len().saturating_sub(1) as u64
    }

    /// The offset of a block, and the deletion that is open there.
    pub(crate) fn get(&self, at: usize) -> Option<(u64, Option<DeletionTime>)> {
        self.starts.get(at).map(|start| (start.offset, start.open))
    }

    /// The offset of the block that has this row, if any has it.
    pub(crate) fn find(&self, row: &Clustering) -> Result<u64> {
        let mut key = Vec::new();
        self.trie.clusterings.encode_row(row.values(), &mut key);
        match self.trie.walk_back_from(&key)?.next()? {
            Some(payload) => Ok(self.trie.decode(&payload)?.offset),
            None => Err(self.trie.no_block()),
        }
    }
}

/// Blocks from the last to the first.
#[derive(Debug)]
pub(super) struct BlocksBack {
    /// Offset of the block that is returned last: the first of the slice.
    least: u64,
    /// `None` after the last block was returned.
    walk: Option<Descending>,
    /// Offset of the block that was returned before.
    before: Option<u64>,
}

impl BlocksBack {
    /// True if all blocks were returned.
    pub(super) fn is_done(&self) -> bool {
        self.walk.is_none()
    }

    /// The next block, and the offset of its end, which is `None` if the block reaches to the end of the slice; `None` after the
    /// last block.
    pub(super) fn next(&mut self, index: &RowTrie) -> Result<Option<(BlockStart, Option<u64>)>> {
        let Some(walk) = &mut self.walk else {
            return Ok(None);
        };
        let Some(payload) = walk.next()? else {
            return Err(index.no_block());
        };
        let block = index.decode(&payload)?;
        if self.before.is_some_and(|before| before <= block.offset) {
            let expected = "an offset below that of the block after it";
            return Err(walk.nodes().corrupt(payload.position, expected));
        }
        let end = self.before.replace(block.offset);
        if block.offset <= self.least {
            self.walk = None;
        }
        Ok(Some((block, end)))
    }
}
