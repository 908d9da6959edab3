//! The readable part of the index of a damaged SSTable.

use bytes::Bytes;
use ilion_env::Env;
use ilion_sstable::{BlockAt, Error, IndexScan, IndexedPartition};

use super::damaged::Damaged;

/// Entries with ascending positions inside Data.db.
pub(super) struct Entries {
    scan: Option<IndexScan>,
    /// Whether no further entry can be read.
    is_over: bool,
    next: Option<IndexedPartition>,
    data_length: u64,
    trouble: Option<Error>,
}

impl Entries {
    pub(super) fn open(env: &dyn Env, damaged: &Damaged) -> Self {
        let opened = IndexScan::open(
            env,
            &damaged.descriptor,
            &damaged.data,
            &damaged.statistics.header,
            &damaged.schema.table,
            damaged.partitioner,
        );
        let mut entries = Self {
            scan: None,
            is_over: false,
            next: None,
            data_length: damaged.data.data_length(),
            trouble: None,
        };
        match opened {
            Ok(scan) => {
                entries.scan = Some(scan);
                entries.advance(0);
            }
            Err(error) => entries.trouble = Some(error),
        }
        entries
    }

    /// Why the index cannot be read completely; `None` if it can.
    pub(super) fn trouble(&self) -> Option<&Error> {
        self.trouble.as_ref()
    }

    /// Moves to the next entry whose position is `least` or greater.
    fn advance(&mut self, least: u64) {
        self.next = None;
        while let (Some(scan), None, false) = (&mut self.scan, &self.next, self.is_over) {
            match scan.next_partition() {
                Ok(Some(entry)) => {
                    let is_possible = (least..self.data_length).contains(&entry.position);
                    self.next = Some(entry).filter(|_| is_possible);
                }
                Ok(None) => self.is_over = true,
                Err(error) => {
                    self.trouble = Some(error);
                    self.is_over = true;
                }
            }
        }
    }

    /// The entry of the partition at `position`; earlier entries are skipped.
    pub(super) fn take_at(&mut self, position: u64) -> Option<IndexedPartition> {
        while self.next.as_ref().is_some_and(|next| next.position < position) {
            self.advance(position);
        }
        let entry = self.next.take_if(|next| next.position == position)?;
        self.advance(position + 1);
        Some(entry)
    }

    /// Start of the next partition after `position`.
    pub(super) fn position_after(&mut self, position: u64) -> Option<u64> {
        while self.next.as_ref().is_some_and(|next| next.position <= position) {
            self.advance(position + 1);
        }
        self.next.as_ref().map(|next| next.position)
    }

    /// The key of the next partition.
    pub(super) fn next_key(&self) -> Option<Bytes> {
        self.next.as_ref()?.key.clone()
    }

    /// The first block of a partition that begins after `position`.
    pub(super) fn block_after(&self, entry: Option<&IndexedPartition>, position: u64) -> Option<BlockAt> {
        // A damaged row index counts as missing.
        let blocks = self.scan.as_ref()?.blocks(entry?).ok()?;
        let end = self.next.as_ref().map_or(self.data_length, |next| next.position);
        let mut later = blocks.into_iter();
        later.find(|block| position < block.position && block.position < end)
    }
}
