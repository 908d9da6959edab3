//! A cursor over the partitions of a range.
//!
//! If all rows are selected in stored order, Data.db is read from the first partition on. Otherwise the partition index is read along
//! with it, so that the rest of a partition behind the selected rows can be skipped.

use std::sync::Arc;

use bytes::Bytes;
use ilion_rows::{
    Bound, ClusteringFilter, Cursor, DecoratedKey, DeletionTime, KeyBound, KeyRange, PartitionHead, PlainRun,
    PlainVisitor, ReadError, Unfiltered,
};
use ilion_schema::TableSchema;
use ilion_types::Partitioner;

use super::partition_index::IndexCursor;
use super::partition_reader::{PartitionReader, Started};
use super::shown::until;
use crate::error::Step;
use crate::row::seen::WantedKeys;
use crate::sstable::Begin;
use crate::{SSTable, Scan, Unwanted};

/// The partitions of an SSTable in a range. Reads no data before the first partition is requested.
#[derive(Debug)]
pub struct RangeCursor {
    sstable: Arc<SSTable>,
    table: Arc<TableSchema>,
    range: KeyRange,
    filter: Arc<ClusteringFilter>,
    scan: Scan,
    /// Where the partitions of the range begin; `None` if there are none.
    begin: Option<Begin>,
    progress: Progress,
    /// The key of the next partition, if it was peeked.
    ahead: Option<DecoratedKey>,
}

#[derive(Debug)]
enum Progress {
    Before,
    Within(Box<PartitionWalk>),
    After,
}

#[derive(Debug)]
struct PartitionWalk {
    reader: PartitionReader,
    /// The index that is read along with the data; `None` if partitions are read from start to end.
    index: Option<Box<IndexCursor>>,
}

impl RangeCursor {
    pub(crate) fn new(
        sstable: Arc<SSTable>,
        table: Arc<TableSchema>,
        range: KeyRange,
        filter: Arc<ClusteringFilter>,
        scan: Scan,
    ) -> Self {
        let begin = sstable.begin_of(&range);
        Self::beginning(sstable, table, range, filter, scan, begin)
    }

    /// A cursor that starts at `begin`, a known lower bound; `None` if the range has no partitions.
    pub(crate) fn beginning(
        sstable: Arc<SSTable>,
        table: Arc<TableSchema>,
        range: KeyRange,
        filter: Arc<ClusteringFilter>,
        scan: Scan,
        begin: Option<Begin>,
    ) -> Self {
        Self {
            sstable,
            table,
            range,
            filter,
            scan,
            progress: match begin {
                Some(_) => Progress::Before,
                None => Progress::After,
            },
            ahead: None,
            begin,
        }
    }

    /// Starts the next partition and returns its key, if it is an ordinary partition whose start is in the window: the usual case in a
    /// scan.
    #[inline]
    fn begin_at_hand(&mut self) -> Option<DecoratedKey> {
        match &mut self.progress {
            Progress::Within(walk) if walk.index.is_none() => {
                let key = walk.reader.begin_following_at_hand()?;
                Some(self.decorated(key))
            }
            _ => None,
        }
    }

    /// Key and token of the partition that was started.
    #[inline(always)]
    fn decorated(&mut self, key: Bytes) -> DecoratedKey {
        match self.ahead.take() {
            Some(ahead) if ahead.key == key => ahead,
            _ => DecoratedKey::new(self.sstable.partitioner(), key),
        }
    }

    #[inline(never)]
    fn advance(&mut self) -> Step<Option<PartitionHead>> {
        let started = match &mut self.progress {
            Progress::After => None,
            Progress::Before => self.start()?,
            Progress::Within(walk) => walk.advance()?,
        };
        let Some(started) = started else {
            return Ok(None);
        };
        let key = self.decorated(started.key);
        if self.range.end.compare(&key).is_lt() {
            return Ok(None);
        }
        Ok(Some(PartitionHead {
            key,
            deletion: started.deletion,
            static_row: started.static_row,
        }))
    }

    /// Moves to the first partition without reading it, if its position is known and no index is needed. Returns true if it did so.
    fn stand(&mut self) -> Step<bool> {
        let Some(Begin::Exactly { map, rank }) = &self.begin else {
            return Ok(false);
        };
        let mut reader = self.open_reader()?;
        if !reader.reads_all() {
            return Ok(false);
        }
        reader.stand_at(map.partition(*rank)?.position);
        self.progress = Progress::Within(Box::new(PartitionWalk { reader, index: None }));
        Ok(true)
    }

    fn open_reader(&self) -> crate::Result<PartitionReader> {
        self.sstable
            .partition_reader(&self.table, &self.filter, self.scan, Unwanted::Times)
    }

    fn start(&mut self) -> Step<Option<Started>> {
        if self.stand()?
            && let Progress::Within(walk) = &mut self.progress
        {
            return walk.advance();
        }
        let reader = self.open_reader()?;
        let begin = self.begin.as_ref();
        let index = self.sstable.index_above(&self.range.start, begin, self.scan)?;
        let mut walk = PartitionWalk {
            reader,
            index: Some(Box::new(index)),
        };
        let started = walk.advance_above(&self.range.start, self.sstable.partitioner())?;
        if walk.reader.reads_all() {
            walk.index = None;
        }
        self.progress = Progress::Within(Box::new(walk));
        Ok(started)
    }
}

impl PartitionWalk {
    /// Starts the first partition above `bound`. An iteration by a token map may begin with partitions that are not above it.
    fn advance_above(&mut self, bound: &KeyBound, partitioner: Partitioner) -> Step<Option<Started>> {
        loop {
            let started = self.advance()?;
            match &started {
                Some(found) if matches!(self.index.as_deref(), Some(IndexCursor::Map(_))) => {
                    let key = DecoratedKey::new(partitioner, found.key.clone());
                    if bound.compare(&key).is_lt() {
                        return Ok(started);
                    }
                }
                _ => return Ok(started),
            }
        }
    }

    #[inline(always)]
    fn advance(&mut self) -> Step<Option<Started>> {
        match &mut self.index {
            None => self.reader.begin_following(),
            Some(_) => self.advance_by_index(),
        }
    }

    #[inline(never)]
    fn advance_by_index(&mut self) -> Step<Option<Started>> {
        let Some(index) = &mut self.index else {
            return Ok(None);
        };
        let Some(entry) = index.next_entry()? else {
            return Ok(None);
        };
        let started = self.reader.begin_at(&entry.location)?;
        if entry.key.is_some_and(|key| key != started.key) {
            return Err(self
                .reader
                .corrupt_start("the partition that the index has there")
                .into());
        }
        Ok(Some(started))
    }
}

impl Cursor for RangeCursor {
    fn next_partition(&mut self) -> std::result::Result<Option<PartitionHead>, ReadError> {
        if let Some(key) = self.begin_at_hand() {
            if self.range.end.compare(&key).is_lt() {
                self.progress = Progress::After;
                return Ok(None);
            }
            return Ok(Some(PartitionHead {
                key,
                deletion: DeletionTime::LIVE,
                static_row: None,
            }));
        }
        let next = self.advance();
        if !matches!(next, Ok(Some(_))) {
            self.progress = Progress::After;
        }
        Ok(next?)
    }

    fn next_unfiltered(&mut self) -> std::result::Result<Option<Unfiltered>, ReadError> {
        match &mut self.progress {
            Progress::Within(walk) => Ok(walk.reader.next()?),
            Progress::Before | Progress::After => Ok(None),
        }
    }

    fn lower_bound(&self) -> Option<DecoratedKey> {
        match self.progress {
            Progress::Before => self.begin.as_ref().and_then(Begin::bound).cloned(),
            Progress::Within(_) | Progress::After => None,
        }
    }

    fn peek(&mut self) -> Option<DecoratedKey> {
        if self.ahead.is_none() {
            let Progress::Within(walk) = &self.progress else {
                return None;
            };
            let key = walk.reader.peek_key()?;
            self.ahead = Some(DecoratedKey::new(self.sstable.partitioner(), key));
        }
        self.ahead.clone()
    }

    fn plain_partitions(
        &mut self,
        before: Option<&DecoratedKey>,
        visitor: &mut dyn PlainVisitor,
    ) -> std::result::Result<Option<PlainRun>, ReadError> {
        let partitioner = self.sstable.partitioner();
        if matches!(self.progress, Progress::Before) && !self.stand()? {
            return Ok(None);
        }
        let Progress::Within(walk) = &mut self.progress else {
            return Ok(None);
        };
        if walk.index.is_some() {
            return Ok(None);
        }
        let keys = WantedKeys::new(partitioner, until(&self.range.end, before), &mut self.ahead);
        let visited = walk.reader.visit_following(keys, visitor);
        if visited.is_err() {
            self.progress = Progress::After;
        }
        Ok(visited?)
    }

    fn plain_rows(
        &mut self,
        key: &DecoratedKey,
        before: Option<&Bound>,
        visitor: &mut dyn PlainVisitor,
    ) -> std::result::Result<u64, ReadError> {
        match &mut self.progress {
            Progress::Within(walk) => Ok(walk.reader.visit_rows(key, before, visitor)),
            Progress::Before | Progress::After => Ok(0),
        }
    }

    fn skip_deleted(&mut self, before: Option<&Bound>) -> std::result::Result<(), ReadError> {
        match &mut self.progress {
            Progress::Within(walk) => Ok(walk.reader.skip_deleted(before)?),
            Progress::Before | Progress::After => Ok(()),
        }
    }
}
