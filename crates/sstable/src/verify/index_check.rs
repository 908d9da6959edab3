//! Compares the partitions of Data.db with the index, in both directions.

use std::path::PathBuf;
use std::sync::Arc;

use ilion_env::Env;
use ilion_rows::{DecoratedKey, KeyBound};

use super::key_check::open_summary;
use super::opened::Opened;
use super::verification::Verification;
use crate::chunks::READ_AHEAD_BYTES;
use crate::reader::{IndexCursor, IndexEntry, IndexWalker, PartitionTrie, RowIndexAt, SummaryCheck};
use crate::{ChunkCache, ChunkReader, Component, Format, Result, Scan};

/// Size of the cache for nodes of tries and blocks of row indexes.
const CACHE_BYTES: u64 = 8 << 20;

/// Reads the index along with the data.
pub(super) struct IndexCheck {
    path: PathBuf,
    cursor: IndexCursor,
    /// The next entry, and its offset if that is known.
    next: Option<(IndexEntry, u64)>,
    trie: Option<Arc<PartitionTrie>>,
    summary: Option<SummaryCheck>,
    partitions: u64,
    ends: Option<(DecoratedKey, DecoratedKey)>,
    /// True if the index cannot be read any further.
    is_broken: bool,
}

impl IndexCheck {
    /// Opens the index; `None` if it cannot be read at all.
    pub(super) fn open(
        env: &dyn Env,
        opened: &Opened,
        verification: &mut Verification,
    ) -> Result<Option<Self>> {
        let cache = Arc::new(ChunkCache::new(CACHE_BYTES));
        let mut open = |component: Component| {
            let path = opened.descriptor.path(&component);
            let file = ChunkReader::open_unchecked(env, &path, Some(cache.clone()));
            verification.findings.take(file.map(Arc::new))
        };
        let (cursor, trie) = match opened.descriptor.format {
            Format::Big => {
                let Some(index) = open(Component::Index)? else {
                    return Ok(None);
                };
                let walker = IndexWalker::sequential(&index, 0, READ_AHEAD_BYTES);
                (IndexCursor::Sorted(walker), None)
            }
            Format::Bti => {
                let (Some(partitions), Some(rows)) = (open(Component::Partitions)?, open(Component::Rows)?)
                else {
                    return Ok(None);
                };
                let trie = PartitionTrie::open(partitions, rows, opened.data.clone(), opened.partitioner);
                let Some(trie) = verification.findings.take(trie.map(Arc::new))? else {
                    return Ok(None);
                };
                let walker = trie.walk_above(&KeyBound::Start, Scan::Point, opened.partitioner, env);
                let Some(walker) = verification.findings.take(walker)? else {
                    return Ok(None);
                };
                (IndexCursor::Trie(walker), Some(trie))
            }
        };
        let summary = match opened.descriptor.format {
            Format::Big => open_summary(env, opened, verification)?,
            Format::Bti => None,
        };
        let component = match trie {
            Some(_) => Component::Partitions,
            None => Component::Index,
        };
        let mut check = Self {
            path: opened.descriptor.path(&component),
            cursor,
            next: None,
            trie,
            summary,
            partitions: 0,
            ends: None,
            is_broken: false,
        };
        check.advance(verification)?;
        Ok(Some(check))
    }

    fn advance(&mut self, verification: &mut Verification) -> Result<()> {
        let position = match &self.cursor {
            IndexCursor::Sorted(walker) => walker.position(),
            IndexCursor::Trie(_) | IndexCursor::Map(_) => 0,
        };
        let entry = verification.findings.take(self.cursor.next_entry())?;
        self.is_broken = entry.is_none();
        self.next = entry.flatten().map(|entry| (entry, position));
        if let (Some(summary), Some((entry, position))) = (&mut self.summary, &self.next) {
            summary.entry(
                *position,
                entry.key.as_deref().unwrap_or_default(),
                &mut verification.findings,
            );
        }
        Ok(())
    }

    /// True if the index cannot be read any further, so that row indexes cannot be checked.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Checks the partition at `start` of Data.db; returns its row index.
    pub(super) fn partition(
        &mut self,
        start: u64,
        key: &DecoratedKey,
        verification: &mut Verification,
    ) -> Result<Option<RowIndexAt>> {
        if let Some(summary) = &mut self.summary {
            summary.partition(&key.key);
        }
        self.partitions += 1;
        match &mut self.ends {
            Some((_, last)) => *last = key.clone(),
            None => self.ends = Some((key.clone(), key.clone())),
        }
        while let Some((entry, at)) = self.next.take_if(|(entry, _)| entry.location.position < start) {
            self.report_stray(&entry, at, verification);
            self.advance(verification)?;
        }
        if self.is_broken {
            return Ok(None);
        }
        let Some((entry, at)) = self.next.take_if(|(entry, _)| entry.location.position == start) else {
            let at = self.next.as_ref().map_or(0, |(_, at)| *at);
            let expected = format!("an entry for the partition at byte {start} of Data.db");
            verification.findings.add(&self.path, at, expected);
            return Ok(None);
        };
        if entry.key.as_ref().is_some_and(|found| *found != key.key) {
            let expected = format!("the key of the partition at byte {start} of Data.db");
            verification.findings.add(&self.path, at, expected);
        }
        self.look_up(start, key, verification)?;
        self.advance(verification)?;
        Ok(entry.location.row_index)
    }

    /// Checks a lookup of the key. Lookups use other paths of the trie than iteration, so they are checked separately.
    fn look_up(&self, start: u64, key: &DecoratedKey, verification: &mut Verification) -> Result<()> {
        let Some(trie) = &self.trie else {
            return Ok(());
        };
        let found = verification.findings.take(trie.find(key))?;
        let is_found = found.is_some_and(|found| found.is_some_and(|found| found.position == start));
        if !is_found {
            let expected = format!("a path to the key of the partition at byte {start} of Data.db");
            verification.findings.add(&self.path, 0, expected);
        }
        Ok(())
    }

    fn report_stray(&self, entry: &IndexEntry, at: u64, verification: &mut Verification) {
        let position = entry.location.position;
        let expected = format!("only partitions that are in Data.db; none starts at its byte {position}");
        verification.findings.add(&self.path, at, expected);
    }

    /// Checks the end of the index, after the last partition of Data.db.
    pub(super) fn finish(mut self, verification: &mut Verification) -> Result<()> {
        while let Some((entry, at)) = self.next.take() {
            self.report_stray(&entry, at, verification);
            self.advance(verification)?;
        }
        if let Some(trie) = &self.trie {
            if trie.key_count != self.partitions {
                let expected = format!("{} as the number of keys in its footer", self.partitions);
                verification.findings.add(&self.path, 0, expected);
            }
            if self
                .ends
                .as_ref()
                .is_some_and(|(first, last)| trie.first != *first || trie.last != *last)
            {
                let expected = "the keys of the first and the last partition of Data.db in its footer";
                verification.findings.add(&self.path, 0, expected);
            }
        }
        if let Some(summary) = self.summary.take() {
            summary.finish(self.partitions, &mut verification.findings);
        }
        Ok(())
    }
}
