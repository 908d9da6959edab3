//! The partition index of an SSTable: Summary.db and Index.db (BIG), or Partitions.db and Rows.db (BTI).

use std::sync::Arc;

use arc_swap::ArcSwap;
use ilion_env::Env;
use ilion_rows::{DecoratedKey, KeyBound};
use ilion_types::Partitioner;

use super::index_walker::IndexWalker;
use super::location::{IndexEntry, Location, RowIndexAt};
use super::map_walker::MapWalker;
use super::partition_trie::{PartitionTrie, TrieWalker};
use super::summary::Summary;
use crate::chunks::READ_AHEAD_BYTES;
use crate::{ChunkReader, Result, Scan};

/// The index of an open SSTable.
pub(crate) enum PartitionIndex {
    /// Sorted entries, with samples of them in memory.
    Sorted {
        /// Samples of the entries; replaced when the index is resampled.
        summary: ArcSwap<Summary>,
        index: Arc<ChunkReader>,
    },
    Trie(Arc<PartitionTrie>),
}

impl PartitionIndex {
    pub(crate) fn first_key(&self) -> DecoratedKey {
        match self {
            Self::Sorted { summary, .. } => summary.load().first.clone(),
            Self::Trie(trie) => trie.first.clone(),
        }
    }

    pub(crate) fn last_key(&self) -> DecoratedKey {
        match self {
            Self::Sorted { summary, .. } => summary.load().last.clone(),
            Self::Trie(trie) => trie.last.clone(),
        }
    }

    pub(crate) fn estimated_keys(&self) -> u64 {
        match self {
            Self::Sorted { summary, .. } => summary.load().estimated_keys,
            Self::Trie(trie) => trie.key_count,
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Self::Sorted { summary, .. } => summary.load().memory_bytes(),
            Self::Trie(_) => size_of::<PartitionTrie>(),
        }
    }

    /// The summary; `None` for a trie.
    pub(crate) fn summary(&self) -> Option<&ArcSwap<Summary>> {
        match self {
            Self::Sorted { summary, .. } => Some(summary),
            Self::Trie(_) => None,
        }
    }

    /// The file with the row indexes.
    pub(crate) fn row_indexes(&self) -> &Arc<ChunkReader> {
        match self {
            Self::Sorted { index, .. } => index,
            Self::Trie(trie) => &trie.rows,
        }
    }

    /// The location of `key`, if the SSTable may have it. A trie may return the location of another key, so compare with the key in
    /// Data.db.
    #[inline]
    pub(crate) fn find(&self, key: &DecoratedKey) -> Result<Option<Location>> {
        match self {
            Self::Sorted { summary, index } => match summary.load().index_range(key, index.data_length()) {
                Some((start, end)) => IndexWalker::cached(index, start).find(&key.key, end),
                None => Ok(None),
            },
            Self::Trie(trie) => trie.find(key),
        }
    }

    /// The row index of the partition at `position` of Data.db, whose entry in Index.db or Rows.db starts at `entry_at`.
    pub(crate) fn row_index_of_entry(&self, entry_at: u64, position: u64) -> Result<Option<RowIndexAt>> {
        let location = match self {
            Self::Sorted { index, .. } => {
                let entry = IndexWalker::cached(index, entry_at).next_entry()?;
                entry.map(|(_, location)| location)
            }
            Self::Trie(trie) => Some(trie.row_index_entry(entry_at)?.location),
        };
        match location.filter(|location| location.position == position) {
            Some(location) => Ok(location.row_index),
            None => Err(self.row_indexes().corrupt(
                entry_at,
                "the entry of the partition that the token map has there",
            )),
        }
    }

    /// Iterates over the partitions above `bound`; `None` if there are none.
    pub(crate) fn walk_above(
        &self,
        bound: &KeyBound,
        scan: Scan,
        partitioner: Partitioner,
        env: &dyn Env,
    ) -> Result<IndexCursor> {
        match self {
            Self::Sorted { summary, index } => {
                let start = summary.load().position_before(bound);
                let mut walker = match scan {
                    Scan::Point => IndexWalker::cached(index, start),
                    Scan::Sequential => IndexWalker::sequential(index, start, READ_AHEAD_BYTES),
                };
                walker.seek_above(bound, partitioner)?;
                Ok(IndexCursor::Sorted(walker))
            }
            Self::Trie(trie) => {
                let walker = trie.walk_above(bound, scan, partitioner, env)?;
                Ok(IndexCursor::Trie(walker))
            }
        }
    }
}

/// Iterates over the entries of an index.
#[derive(Debug)]
pub(crate) enum IndexCursor {
    Sorted(IndexWalker),
    Trie(TrieWalker),
    Map(MapWalker),
}

impl IndexCursor {
    /// The next entry; `None` at the end.
    pub(crate) fn next_entry(&mut self) -> Result<Option<IndexEntry>> {
        match self {
            Self::Sorted(walker) => {
                let entry = walker.next_entry()?;
                Ok(entry.map(|(key, location)| IndexEntry {
                    key: Some(key),
                    location,
                }))
            }
            Self::Trie(walker) => walker.next_entry(),
            Self::Map(walker) => walker.next_entry(),
        }
    }
}
