//! Reading a memtable: few rows are copied under the lock, then the lock is let go.

use std::collections::VecDeque;
use std::ops::Bound as Side;
use std::sync::Arc;

use bytes::Bytes;
use ilion_rows::{
    Bound, BoundKind, Clustering, ClusteringFilter, Cursor, DecoratedKey, Direction, KeyBound, KeyRange,
    Markers, PartitionHead, RangeList, ReadError, Row, Slice, Unfiltered,
};

use crate::memtable::Memtable;
use crate::partition::Partition;

/// Rows copied while a lock is held.
const BATCH_ROWS: usize = 128;
/// Partitions copied while a lock is held, once a scan has shown that it goes on.
const BATCH_PARTITIONS: usize = 64;

/// Rows of one slice in the order of reading.
struct SliceRows {
    rows: std::vec::IntoIter<Row>,
    /// No rows of the slice are left in the partition.
    complete: bool,
}

/// One partition being read.
struct Reading {
    key: DecoratedKey,
    ranges: Option<Arc<RangeList>>,
    /// Copied rows of the slices from `slice` on.
    copied: VecDeque<SliceRows>,
    /// Which slice, counted in the order of reading.
    slice: usize,
    markers: Option<Markers>,
    row: Option<Row>,
    marker: Option<ilion_rows::Marker>,
    /// The last row copied: where the next copy goes on.
    last: Option<Clustering>,
}

fn slice_at(filter: &ClusteringFilter, index: usize) -> Option<&Slice> {
    if filter.reversed {
        filter
            .slices
            .len()
            .checked_sub(index + 1)
            .map(|index| &filter.slices[index])
    } else {
        filter.slices.get(index)
    }
}

/// What is left of `slice` beyond `last`.
fn rest_of(slice: &Slice, last: Option<&Clustering>, direction: Direction) -> Slice {
    let mut rest = slice.clone();
    if let Some(last) = last {
        let values = last.values().clone();
        match direction {
            Direction::Forward => rest.start = Bound::new(BoundKind::ExclStart, values),
            Direction::Reversed => rest.end = Bound::new(BoundKind::ExclEnd, values),
        }
    }
    rest
}

impl Reading {
    fn start(
        memtable: &Memtable,
        key: DecoratedKey,
        partition: &Partition,
        filter: &ClusteringFilter,
    ) -> (PartitionHead, Self) {
        let head = PartitionHead {
            key: key.clone(),
            deletion: partition.deletion(),
            static_row: partition.static_row().cloned(),
        };
        let mut reading = Self {
            key,
            ranges: partition.ranges().cloned(),
            copied: VecDeque::new(),
            slice: 0,
            markers: None,
            row: None,
            marker: None,
            last: None,
        };
        reading.copy(memtable, partition, filter);
        reading.open_slice(memtable, filter);
        (head, reading)
    }

    /// Copies up to [`BATCH_ROWS`] rows from where the reading stands. Requires: nothing copied is left.
    fn copy(&mut self, memtable: &Memtable, partition: &Partition, filter: &ClusteringFilter) {
        self.copied.clear();
        let direction = Direction::of(filter.reversed);
        let mut left = BATCH_ROWS;
        let mut last = self.last.take();
        for index in self.slice.. {
            let Some(slice) = slice_at(filter, index) else {
                return;
            };
            let mut rows = Vec::new();
            let complete = match last.take() {
                None => partition.read(slice, direction, left, memtable.comparator(), &mut rows),
                Some(last) => {
                    let rest = rest_of(slice, Some(&last), direction);
                    partition.read(&rest, direction, left, memtable.comparator(), &mut rows)
                }
            };
            left -= rows.len().min(left);
            if !complete {
                self.last = rows.last().map(|row| row.clustering.clone());
            }
            self.copied.push_back(SliceRows {
                rows: rows.into_iter(),
                complete,
            });
            if !complete || left == 0 {
                return;
            }
        }
    }

    fn open_slice(&mut self, memtable: &Memtable, filter: &ClusteringFilter) {
        self.markers = match (&self.ranges, slice_at(filter, self.slice)) {
            (Some(ranges), Some(slice)) => Some(Markers::new(
                ranges.clone(),
                slice.clone(),
                Direction::of(filter.reversed),
                memtable.comparator().clone(),
            )),
            _ => None,
        };
    }

    /// Puts the next row of the slice into `row`, copying more if there is more.
    fn fetch_row(&mut self, memtable: &Memtable, filter: &ClusteringFilter) {
        loop {
            let complete = match self.copied.front_mut() {
                None => false,
                Some(copied) => {
                    self.row = copied.rows.find(|row| !row.is_empty());
                    if self.row.is_some() {
                        return;
                    }
                    copied.complete
                }
            };
            if complete || slice_at(filter, self.slice).is_none() {
                return;
            }
            let shard = memtable.shards()[memtable.shard_of(&self.key.token)].read();
            match shard.partitions.get(&self.key) {
                Some(partition) => self.copy(memtable, partition, filter),
                None => return,
            }
        }
    }

    fn next(&mut self, memtable: &Memtable, filter: &ClusteringFilter) -> Option<Unfiltered> {
        loop {
            if self.row.is_none() {
                self.fetch_row(memtable, filter);
            }
            if self.marker.is_none()
                && let Some(markers) = &mut self.markers
            {
                self.marker = markers.next();
            }
            let marker_first = match (&self.row, &self.marker) {
                (Some(row), Some(marker)) => {
                    let order = memtable
                        .comparator()
                        .compare_bound_to_row(&marker.bound, &row.clustering);
                    Direction::of(filter.reversed).order(order).is_lt()
                }
                (row, _) => row.is_none(),
            };
            if marker_first {
                if let Some(marker) = self.marker.take() {
                    return Some(Unfiltered::Marker(marker));
                }
            } else if let Some(row) = self.row.take() {
                return Some(Unfiltered::Row(row));
            }
            slice_at(filter, self.slice)?;
            self.copied.pop_front();
            self.slice += 1;
            self.last = self.last.take().filter(|_| !self.copied.is_empty());
            self.open_slice(memtable, filter);
        }
    }
}

/// Reads one partition of a memtable.
pub struct PartitionCursor {
    memtable: Arc<Memtable>,
    filter: Arc<ClusteringFilter>,
    head: Option<PartitionHead>,
    reading: Reading,
}

impl PartitionCursor {
    pub(crate) fn open(
        memtable: &Arc<Memtable>,
        key: &DecoratedKey,
        filter: &Arc<ClusteringFilter>,
    ) -> Option<Self> {
        let shard = memtable.shards()[memtable.shard_of(&key.token)].read();
        let partition = shard.partitions.get(key)?;
        let (head, reading) = Reading::start(memtable, key.clone(), partition, filter);
        drop(shard);
        Some(Self {
            memtable: memtable.clone(),
            filter: filter.clone(),
            head: Some(head),
            reading,
        })
    }
}

impl Cursor for PartitionCursor {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        Ok(self.head.take())
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        Ok(self.reading.next(&self.memtable, &self.filter))
    }

    fn lower_bound(&self) -> Option<DecoratedKey> {
        self.head.as_ref().map(|head| head.key.clone())
    }
}

/// Reads a range of partitions of a memtable.
pub struct MemtableCursor {
    memtable: Arc<Memtable>,
    range: KeyRange,
    filter: Arc<ClusteringFilter>,
    /// Where the next copy looks; nothing once the range is done.
    shard: Option<usize>,
    last_key: Option<DecoratedKey>,
    batch_partitions: usize,
    copied: VecDeque<(PartitionHead, Reading)>,
    reading: Option<Reading>,
}

impl MemtableCursor {
    pub(crate) fn new(memtable: Arc<Memtable>, range: KeyRange, filter: Arc<ClusteringFilter>) -> Self {
        let shard = range.start.token().map_or(0, |token| memtable.shard_of(token));
        Self {
            memtable,
            range,
            filter,
            shard: Some(shard),
            last_key: None,
            batch_partitions: 1,
            copied: VecDeque::new(),
            reading: None,
        }
    }

    fn start_side(&self) -> Side<DecoratedKey> {
        if let Some(last) = &self.last_key {
            return Side::Excluded(last.clone());
        }
        match &self.range.start {
            // A range that starts at the end is empty: every key is skipped.
            KeyBound::Start | KeyBound::End => Side::Unbounded,
            KeyBound::Before(key) => Side::Included(key.clone()),
            KeyBound::After(key) => Side::Excluded(key.clone()),
            // The empty key is the first of its token; keys of a token that is passed are skipped one by one.
            KeyBound::BeforeToken(token) | KeyBound::AfterToken(token) => Side::Included(DecoratedKey {
                token: token.clone(),
                key: Bytes::new(),
            }),
        }
    }

    /// Copies the next partitions; leaves `copied` empty at the end of the range.
    fn copy(&mut self) {
        while let Some(index) = self.shard {
            let start = self.start_side();
            let memtable = &self.memtable;
            let Some(lock) = memtable.shards().get(index) else {
                self.shard = None;
                return;
            };
            let shard = lock.read();
            let mut more = false;
            let mut rows = 0;
            for (key, partition) in shard.partitions.range((start, Side::Unbounded)) {
                if self.range.start.compare(key).is_gt() {
                    continue;
                }
                if self.range.end.compare(key).is_lt() {
                    self.shard = None;
                    return;
                }
                if self.copied.len() >= self.batch_partitions || rows >= BATCH_ROWS {
                    more = true;
                    break;
                }
                let (head, reading) = Reading::start(memtable, key.clone(), partition, &self.filter);
                rows += reading
                    .copied
                    .iter()
                    .map(|copied| copied.rows.len())
                    .sum::<usize>();
                self.copied.push_back((head, reading));
            }
            drop(shard);
            if more {
                break;
            }
            self.shard = Some(index + 1);
            if !self.copied.is_empty() {
                break;
            }
        }
        self.batch_partitions = (self.batch_partitions * 4).min(BATCH_PARTITIONS);
        if let Some((head, _)) = self.copied.back() {
            self.last_key = Some(head.key.clone());
        }
    }
}

impl Cursor for MemtableCursor {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        if self.copied.is_empty() {
            self.copy();
        }
        let Some((head, reading)) = self.copied.pop_front() else {
            self.reading = None;
            return Ok(None);
        };
        self.reading = Some(reading);
        Ok(Some(head))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        Ok(self
            .reading
            .as_mut()
            .and_then(|reading| reading.next(&self.memtable, &self.filter)))
    }

    fn lower_bound(&self) -> Option<DecoratedKey> {
        self.copied.front().map(|(head, _)| head.key.clone())
    }
}
