//! Compares the row index of a wide partition with its rows.

use std::path::PathBuf;
use std::sync::Arc;

use ilion_env::Env;
use ilion_rows::{Clustering, DeletionTime, PartitionHead, Unfiltered};

use super::opened::Opened;
use super::verification::Verification;
use crate::reader::{Block, BlockIndex, BlockStarts, RowIndexAt};
use crate::row::decode::{ClusteringPrefix, RowFormat};
use crate::{ChunkReader, Component, DataStream, Format, Result};

/// Checks blocks while the rows are read.
pub(super) enum RowsCheck {
    Promoted(Box<PromotedCheck>),
    Trie(TrieCheck),
}

/// The row indexes of one SSTable.
pub(super) struct RowIndexFile {
    file: Arc<ChunkReader>,
    format: Arc<RowFormat>,
}

impl RowIndexFile {
    pub(super) fn open(env: &dyn Env, opened: &Opened) -> Result<Self> {
        let component = match opened.descriptor.format {
            Format::Big => Component::Index,
            Format::Bti => Component::Rows,
        };
        let path = opened.descriptor.path(&component);
        let header = &opened.statistics.header;
        Ok(Self {
            file: Arc::new(ChunkReader::open_unchecked(env, &path, None)?),
            format: Arc::new(RowFormat::of(header, opened.version(), &opened.table)?),
        })
    }

    /// Starts the check of the partition at `start`, whose rows start at `rows_at`.
    pub(super) fn begin(
        &self,
        at: &RowIndexAt,
        start: u64,
        rows_at: u64,
        head: &PartitionHead,
        verification: &mut Verification,
    ) -> Result<Option<RowsCheck>> {
        let (file, format) = (self.file.clone(), self.format.clone());
        match at {
            RowIndexAt::Promoted { position, size } => {
                let opened = BlockIndex::open(file.clone(), format, *position, *size);
                let Some(index) = verification.findings.take(opened)? else {
                    return Ok(None);
                };
                let mut check = PromotedCheck {
                    path: file.path().to_path_buf(),
                    position: *position,
                    start,
                    at: 0,
                    block: None,
                    last: None,
                    open: None,
                    index,
                };
                if check.index.header_length != rows_at - start || check.index.deletion != head.deletion {
                    check.report(
                        "the length and the deletion of the partition's head",
                        verification,
                    );
                }
                check.next_block(rows_at - start, verification)?;
                Ok(Some(RowsCheck::Promoted(Box::new(check))))
            }
            RowIndexAt::Trie { root, rest } => {
                let gathered = BlockStarts::gather(file.clone(), format.clone(), *root);
                let Some(Some(starts)) = verification.findings.take(gathered)? else {
                    return Ok(None);
                };
                let check = TrieCheck {
                    path: file.path().to_path_buf(),
                    root: *root,
                    start,
                    at: 0,
                    before: None,
                    starts,
                };
                let read = read_rest(file, &format, *rest);
                if let Some((count, deletion)) = verification.findings.take(read)?
                    && (count != check.starts.block_count() || deletion != head.deletion)
                {
                    check.report("the number of blocks and the deletion", verification);
                }
                Ok(Some(RowsCheck::Trie(check)))
            }
        }
    }
}

impl RowsCheck {
    /// Checks a row or marker from `position` to `end`; `open` is the deletion that is open before it.
    pub(super) fn unfiltered(
        &mut self,
        position: u64,
        end: u64,
        unfiltered: &Unfiltered,
        open: Option<DeletionTime>,
        verification: &mut Verification,
    ) -> Result<()> {
        match self {
            Self::Promoted(check) => check.unfiltered(position, end, unfiltered, verification),
            Self::Trie(check) => check.unfiltered(position, unfiltered, open, verification),
        }
    }

    /// Ends the check; the partition ends at `end`.
    pub(super) fn finish(self, end: u64, verification: &mut Verification) -> Result<()> {
        match self {
            Self::Promoted(check) => check.finish(end, verification),
            Self::Trie(check) => {
                check.finish(end, verification);
                Ok(())
            }
        }
    }
}

/// Reads the rest of the header of a row index: the number of blocks and the partition's deletion.
fn read_rest(file: Arc<ChunkReader>, format: &RowFormat, position: u64) -> Result<(u64, DeletionTime)> {
    let mut input = DataStream::cached(file, position);
    let count = input.uvint()?;
    Ok((count, format.times.partition_deletion(&mut input)?))
}

/// Checks a promoted index (Index.db).
pub(super) struct PromotedCheck {
    path: PathBuf,
    /// Offset of the promoted index.
    position: u64,
    /// Position of the partition.
    start: u64,
    index: BlockIndex,
    /// Index of the next block.
    at: usize,
    block: Option<Block>,
    last: Option<ClusteringPrefix>,
    open: Option<DeletionTime>,
}

impl PromotedCheck {
    fn report(&self, expected: &str, verification: &mut Verification) {
        let expected = format!("{expected} at byte {} of Data.db", self.start);
        verification.findings.add(&self.path, self.position, expected);
    }

    /// Moves to the next block, which starts at `offset` of the partition.
    fn next_block(&mut self, offset: u64, verification: &mut Verification) -> Result<()> {
        self.block = None;
        if self.at < self.index.count {
            self.block = verification.findings.take(self.index.block(self.at))?;
            self.at += 1;
        }
        if self.block.as_ref().is_some_and(|block| block.offset != offset) {
            self.report("blocks without gaps for the partition", verification);
            self.block = None;
        }
        Ok(())
    }

    fn unfiltered(
        &mut self,
        position: u64,
        end: u64,
        unfiltered: &Unfiltered,
        verification: &mut Verification,
    ) -> Result<()> {
        if let Unfiltered::Marker(marker) = unfiltered {
            self.open = marker.start;
        }
        let Some(block) = &self.block else {
            return Ok(());
        };
        let place = prefix_of(unfiltered);
        if position - self.start == block.offset && block.first != place {
            self.report(
                "the first clustering of each block of the partition",
                verification,
            );
        }
        self.last = Some(place);
        let Some(block) = &self.block else {
            return Ok(());
        };
        let (end, block_end) = (end - self.start, block.offset.saturating_add(block.width));
        if end == block_end {
            self.end_block(verification);
            self.next_block(end, verification)?;
        } else if end > block_end {
            self.report("blocks of whole rows of the partition", verification);
            self.block = None;
        }
        Ok(())
    }

    fn end_block(&mut self, verification: &mut Verification) {
        let (Some(block), Some(last)) = (&self.block, &self.last) else {
            return;
        };
        if block.last != *last {
            self.report("the last clustering of each block of the partition", verification);
        }
        if self.block.as_ref().is_some_and(|block| block.open != self.open) {
            self.report(
                "the deletion that is open after each block of the partition",
                verification,
            );
        }
    }

    fn finish(mut self, end: u64, verification: &mut Verification) -> Result<()> {
        let Some(block) = &self.block else {
            if self.at < self.index.count {
                self.report("no more blocks than the rows of the partition", verification);
            }
            return Ok(());
        };
        // The last block may include the byte that ends the partition.
        if block.offset.saturating_add(block.width) != end - self.start || self.at < self.index.count {
            self.report("blocks that end with the partition", verification);
            return Ok(());
        }
        self.end_block(verification);
        Ok(())
    }
}

fn prefix_of(unfiltered: &Unfiltered) -> ClusteringPrefix {
    match unfiltered {
        Unfiltered::Row(row) => ClusteringPrefix::Row(row.clustering.clone()),
        Unfiltered::Marker(marker) => ClusteringPrefix::Bound(marker.bound.clone()),
    }
}

/// Checks a trie of blocks (Rows.db).
pub(super) struct TrieCheck {
    path: PathBuf,
    root: u64,
    /// Position of the partition.
    start: u64,
    starts: BlockStarts,
    /// Index of the next block.
    at: usize,
    /// The clustering of the previous row.
    before: Option<Clustering>,
}

impl TrieCheck {
    fn report(&self, expected: &str, verification: &mut Verification) {
        let expected = format!("{expected} of the partition at byte {} of Data.db", self.start);
        verification.findings.add(&self.path, self.root, expected);
    }

    fn unfiltered(
        &mut self,
        position: u64,
        unfiltered: &Unfiltered,
        open: Option<DeletionTime>,
        verification: &mut Verification,
    ) -> Result<()> {
        let offset = position - self.start;
        let row = match unfiltered {
            Unfiltered::Row(row) => Some(row.clustering.clone()),
            Unfiltered::Marker(_) => None,
        };
        if let Some((block_offset, block_open)) = self.starts.get(self.at) {
            if block_offset < offset {
                self.report("blocks that begin with a row", verification);
                self.at += 1;
            } else if block_offset == offset {
                if block_open != open {
                    self.report(
                        "the deletion that is open at the start of each block",
                        verification,
                    );
                }
                let before = self.at.checked_sub(1).and_then(|at| self.starts.get(at));
                if let (Some(row), Some((before, _))) = (&self.before, before) {
                    self.look_up(row, before, verification)?;
                }
                if let Some(row) = &row {
                    self.look_up(row, offset, verification)?;
                }
                self.at += 1;
            }
        }
        self.before = row;
        Ok(())
    }

    fn look_up(&self, row: &Clustering, offset: u64, verification: &mut Verification) -> Result<()> {
        let found = verification.findings.take(self.starts.find(row))?;
        if found.is_some_and(|found| found != offset && !self.are_last(offset, found)) {
            self.report("keys between the blocks", verification);
        }
        Ok(())
    }

    /// True if `block` is the last block and `end` the end of the partition: a lookup behind the last row may return either.
    fn are_last(&self, block: u64, end: u64) -> bool {
        let entry = |before_end: usize| self.starts.get(self.starts.len().checked_sub(before_end)?);
        entry(1).is_some_and(|(offset, _)| offset == end)
            && entry(2).is_some_and(|(offset, _)| offset == block)
    }

    /// Checks that the last entry leads to the end of the partition.
    fn finish(self, end: u64, verification: &mut Verification) {
        let rest = self.starts.get(self.at).map(|(offset, _)| offset);
        let is_end = rest.is_none_or(|offset| offset == end - self.start || offset + 1 == end - self.start);
        if !is_end || self.starts.len() > self.at + 1 {
            self.report("no more blocks than the rows", verification);
        }
    }
}
