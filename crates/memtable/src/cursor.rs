//! Reading a memtable: a reader takes a snapshot of a partition under the lock, and reads it without.

use std::collections::VecDeque;
use std::ops::Bound as Side;
use std::sync::Arc;

use ilion_rows::{
    Bound, ClusteringComparator, ClusteringFilter, Cursor, DecoratedKey, Direction, Flow, KeyBound, KeyRange,
    Marker, Markers, PartitionHead, PlainRow, PlainRun, PlainVisitor, ReadError, Row, Slice, Unfiltered,
    may_be_plain,
};

use crate::entries::EntryCursor;
use crate::memtable::Memtable;
use crate::packed::{Cells, Packed};
use crate::partition::Partition;
use crate::placed_key::PlacedKey;
use crate::row_list::Span;

/// Number of partitions whose snapshots are taken under one lock, once a scan has read more than a few.
const BATCH_PARTITIONS: usize = 64;
/// This number at the beginning of a scan: the second partition is usually in the same node of the tree, so it costs little.
const FIRST_PARTITIONS: usize = 2;

/// One partition being read.
struct OpenPartition {
    partition: Partition,
    /// Number of slices begun so far, in the order of reading.
    slices: usize,
    /// The remaining rows of the slice.
    span: Span,
    /// Deleted ranges in the slice, if there are any.
    markers: Option<Markers>,
    marker: Option<Marker>,
    row: Option<Row>,
}

fn slice_at(filter: &ClusteringFilter, index: usize) -> Option<&Slice> {
    if filter.reversed {
        let index = filter.slices.len().checked_sub(index + 1)?;
        filter.slices.get(index)
    } else {
        filter.slices.get(index)
    }
}

impl OpenPartition {
    fn new(partition: Partition) -> Self {
        Self {
            partition,
            slices: 0,
            span: Span::EMPTY,
            markers: None,
            marker: None,
            row: None,
        }
    }

    fn head(&self, key: DecoratedKey) -> PartitionHead {
        PartitionHead {
            key,
            deletion: self.partition.deletion(),
            static_row: self.partition.static_row().cloned(),
        }
    }

    /// Begins the next slice. Returns false after the last one.
    fn begin_slice(&mut self, filter: &ClusteringFilter, comparator: &ClusteringComparator) -> bool {
        let Some(slice) = slice_at(filter, self.slices) else {
            return false;
        };
        self.slices += 1;
        self.span = self.partition.span(slice, comparator);
        self.markers = self.partition.ranges().map(|ranges| {
            let direction = Direction::of(filter.reversed);
            Markers::new(ranges.clone(), slice.clone(), direction, comparator.clone())
        });
        true
    }

    fn next(&mut self, filter: &ClusteringFilter, comparator: &ClusteringComparator) -> Option<Unfiltered> {
        let direction = Direction::of(filter.reversed);
        loop {
            if self.marker.is_none() {
                self.marker = self.markers.as_mut().and_then(Markers::next);
            }
            let row = match self.row.take() {
                None => self.partition.take(&mut self.span, direction, comparator),
                row => row,
            };
            match (row, self.marker.take()) {
                (Some(row), None) => return Some(Unfiltered::Row(row)),
                (None, Some(marker)) => return Some(Unfiltered::Marker(marker)),
                (Some(row), Some(marker)) => {
                    let order = comparator.compare_bound_to_row(&marker.bound, &row.clustering);
                    if direction.order(order).is_lt() {
                        self.row = Some(row);
                        return Some(Unfiltered::Marker(marker));
                    }
                    self.marker = Some(marker);
                    return Some(Unfiltered::Row(row));
                }
                (None, None) if !self.begin_slice(filter, comparator) => return None,
                (None, None) => {}
            }
        }
    }

    /// Skips rows of the current slice, see [`Cursor::skip_deleted`].
    fn skip_deleted(
        &mut self,
        before: Option<&Bound>,
        filter: &ClusteringFilter,
        comparator: &ClusteringComparator,
    ) {
        let direction = Direction::of(filter.reversed);
        if let Some(row) = &self.row {
            let is_before = |bound| {
                let order = comparator.compare_bound_to_row(bound, &row.clustering);
                direction.order(order).is_gt()
            };
            if !row.is_deletion() || !before.is_none_or(is_before) {
                return;
            }
            self.row = None;
        }
        self.partition
            .skip_deleted(&mut self.span, direction, before, comparator);
    }
}

impl Memtable {
    /// Reads the partitions of a range in order.
    pub fn cursor(self: &Arc<Self>, range: KeyRange, filter: Arc<ClusteringFilter>) -> MemtableCursor {
        MemtableCursor::new(self.clone(), range, filter)
    }

    /// Reads one partition; `None` if the memtable does not have it.
    pub fn partition(
        self: &Arc<Self>,
        key: &DecoratedKey,
        filter: &Arc<ClusteringFilter>,
    ) -> Option<PartitionCursor> {
        PartitionCursor::open(self, key, filter)
    }

    /// Reads everything in (token, key) order. Requires for a flush: there are no more writes.
    pub fn flush_cursor(self: &Arc<Self>) -> MemtableCursor {
        self.cursor(KeyRange::all(), Arc::new(ClusteringFilter::all()))
    }
}

/// Reads one partition of a memtable.
pub struct PartitionCursor(OfTable<RowsCursor>);

/// Reads a range of partitions of a memtable.
pub struct MemtableCursor(OfTable<RangeCursor>);

/// A cursor over rows, or over the entries of a hidden table.
enum OfTable<R> {
    Rows(R),
    Entries(EntryCursor),
}

impl<R: Cursor> Cursor for OfTable<R> {
    #[inline]
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        match self {
            Self::Rows(cursor) => cursor.next_partition(),
            Self::Entries(cursor) => cursor.next_partition(),
        }
    }

    #[inline]
    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        match self {
            Self::Rows(cursor) => cursor.next_unfiltered(),
            Self::Entries(cursor) => cursor.next_unfiltered(),
        }
    }

    fn lower_bound(&self) -> Option<DecoratedKey> {
        match self {
            Self::Rows(cursor) => cursor.lower_bound(),
            Self::Entries(cursor) => cursor.lower_bound(),
        }
    }

    fn peek(&mut self) -> Option<DecoratedKey> {
        match self {
            Self::Rows(cursor) => cursor.peek(),
            Self::Entries(cursor) => cursor.peek(),
        }
    }

    fn plain_partitions(
        &mut self,
        before: Option<&DecoratedKey>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<Option<PlainRun>, ReadError> {
        match self {
            Self::Rows(cursor) => cursor.plain_partitions(before, visitor),
            Self::Entries(cursor) => cursor.plain_partitions(before, visitor),
        }
    }

    fn skip_deleted(&mut self, before: Option<&Bound>) -> Result<(), ReadError> {
        match self {
            Self::Rows(cursor) => cursor.skip_deleted(before),
            Self::Entries(cursor) => cursor.skip_deleted(before),
        }
    }

    ilion_rows::cursor_methods!(without: plain_rows);
}

impl Cursor for PartitionCursor {
    ilion_rows::cursor_methods!(forward 0: next_partition next_unfiltered lower_bound skip_deleted);

    ilion_rows::cursor_methods!(without: peek plain_partitions plain_rows);
}

impl Cursor for MemtableCursor {
    ilion_rows::cursor_methods!(forward 0: next_partition next_unfiltered lower_bound peek plain_partitions skip_deleted);

    ilion_rows::cursor_methods!(without: plain_rows);
}

/// Reads one partition of rows.
struct RowsCursor {
    comparator: ClusteringComparator,
    filter: Arc<ClusteringFilter>,
    /// Key of the partition; `None` once it was returned.
    key: Option<DecoratedKey>,
    reading: OpenPartition,
}

impl PartitionCursor {
    pub(crate) fn open(
        memtable: &Arc<Memtable>,
        key: &DecoratedKey,
        filter: &Arc<ClusteringFilter>,
    ) -> Option<Self> {
        if let Some(entries) = memtable.entries() {
            let range = KeyRange::exactly(key);
            let cursor = EntryCursor::new(entries.clone(), &range, filter.clone());
            return (!cursor.is_empty()).then_some(Self(OfTable::Entries(cursor)));
        }
        let placed = PlacedKey::from(key);
        let shard = memtable.shards()[memtable.shard_of(&key.token)].read();
        let partition = shard.partitions.get(&placed)?.clone();
        drop(shard);
        Some(Self(OfTable::Rows(RowsCursor {
            comparator: memtable.comparator().clone(),
            filter: filter.clone(),
            key: Some(key.clone()),
            reading: OpenPartition::new(partition),
        })))
    }
}

impl Cursor for RowsCursor {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let key = self.key.take();
        if key.is_none() {
            self.reading = OpenPartition::new(Partition::default());
        }
        Ok(key.map(|key| self.reading.head(key)))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        Ok(self.reading.next(&self.filter, &self.comparator))
    }

    fn lower_bound(&self) -> Option<DecoratedKey> {
        self.key.clone()
    }

    fn skip_deleted(&mut self, before: Option<&Bound>) -> Result<(), ReadError> {
        self.reading.skip_deleted(before, &self.filter, &self.comparator);
        Ok(())
    }

    ilion_rows::cursor_methods!(without: peek plain_partitions plain_rows);
}

/// Reads a range of partitions of rows.
struct RangeCursor {
    memtable: Arc<Memtable>,
    range: KeyRange,
    filter: Arc<ClusteringFilter>,
    /// True if partitions of the table may be plain, and all rows are wanted.
    may_be_plain: bool,
    /// The shard of the next snapshots; `None` at the end of the range.
    shard: Option<usize>,
    last_key: Option<PlacedKey>,
    batch_partitions: usize,
    /// Snapshots of the next partitions.
    taken: VecDeque<(PlacedKey, Partition)>,
    reading: Option<OpenPartition>,
}

impl MemtableCursor {
    pub(crate) fn new(memtable: Arc<Memtable>, range: KeyRange, filter: Arc<ClusteringFilter>) -> Self {
        if let Some(entries) = memtable.entries() {
            let cursor = EntryCursor::new(entries.clone(), &range, filter);
            return Self(OfTable::Entries(cursor));
        }
        Self(OfTable::Rows(RangeCursor::new(memtable, range, filter)))
    }
}

impl RangeCursor {
    fn new(memtable: Arc<Memtable>, range: KeyRange, filter: Arc<ClusteringFilter>) -> Self {
        let shard = range.start.token().map_or(0, |token| memtable.shard_of(token));
        Self {
            may_be_plain: may_be_plain(memtable.table()) && filter.selects_all(),
            memtable,
            range,
            filter,
            shard: Some(shard),
            last_key: None,
            batch_partitions: FIRST_PARTITIONS,
            taken: VecDeque::new(),
            reading: None,
        }
    }

    fn start_side(&self) -> Side<PlacedKey> {
        if let Some(last) = &self.last_key {
            return Side::Excluded(last.clone());
        }
        match &self.range.start {
            // A range that starts at the end is empty: every key is skipped.
            KeyBound::Start | KeyBound::End => Side::Unbounded,
            KeyBound::Before(key) => Side::Included(key.into()),
            KeyBound::After(key) => Side::Excluded(key.into()),
            // A search for the token's first key: the empty key. For a bound behind the token, its keys are then skipped one by one.
            KeyBound::BeforeToken(token) | KeyBound::AfterToken(token) => {
                Side::Included(PlacedKey::of(token, &[]))
            }
        }
    }

    /// Takes snapshots of the next partitions. `taken` stays empty at the end of the range.
    fn take(&mut self) {
        while let Some(index) = self.shard
            && self.taken.is_empty()
        {
            self.take_from(index);
        }
        self.batch_partitions = (self.batch_partitions * 4).min(BATCH_PARTITIONS);
        if let Some((key, _)) = self.taken.back() {
            self.last_key = Some(key.clone());
        }
    }

    /// Takes snapshots from a shard, up to a whole batch; moves to the next shard if this one has no more.
    fn take_from(&mut self, index: usize) {
        let Some(lock) = self.memtable.shards().get(index) else {
            self.shard = None;
            return;
        };
        let start = self.start_side();
        let shard = lock.read();
        for (key, partition) in shard.partitions.range_from(start.as_ref()) {
            if key.against(&self.range.start).is_lt() {
                continue;
            }
            if key.against(&self.range.end).is_gt() {
                self.shard = None;
                return;
            }
            if self.taken.len() == self.batch_partitions {
                return;
            }
            self.taken.push_back((key.clone(), partition.clone()));
        }
        self.shard = Some(index + 1);
    }
}

impl Cursor for RangeCursor {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        if self.taken.is_empty() {
            self.take();
        }
        self.reading = None;
        let Some((key, partition)) = self.taken.pop_front() else {
            return Ok(None);
        };
        let reading = self.reading.insert(OpenPartition::new(partition));
        Ok(Some(reading.head(key.decorated())))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        let comparator = self.memtable.comparator();
        let reading = self.reading.as_mut();
        Ok(reading.and_then(|reading| reading.next(&self.filter, comparator)))
    }

    fn lower_bound(&self) -> Option<DecoratedKey> {
        self.taken.front().map(|(key, _)| key.decorated())
    }

    fn skip_deleted(&mut self, before: Option<&Bound>) -> Result<(), ReadError> {
        if let Some(reading) = &mut self.reading {
            reading.skip_deleted(before, &self.filter, self.memtable.comparator());
        }
        Ok(())
    }

    fn peek(&mut self) -> Option<DecoratedKey> {
        self.lower_bound()
    }

    fn plain_partitions(
        &mut self,
        before: Option<&DecoratedKey>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<Option<PlainRun>, ReadError> {
        if !self.may_be_plain {
            return Ok(None);
        }
        self.reading = None;
        let (mut count, mut taken, mut is_over) = (0, None, false);
        while !is_over {
            if self.taken.is_empty() {
                self.take();
            }
            let next = self.taken.front();
            let is_before = |key: &PlacedKey| before.is_none_or(|before| key.compare(before).is_lt());
            let Some((key, partition)) = next.filter(|(key, _)| is_before(key)) else {
                break;
            };
            let shown = partition.only_packed().and_then(|row| show(key, row, visitor));
            is_over = match shown {
                None | Some(Flow::Leave) => break,
                Some(Flow::Last) => true,
                Some(Flow::Next) => false,
            };
            taken = self.taken.pop_front();
            count += 1;
        }
        Ok(taken.map(|(last, _)| PlainRun {
            count,
            last: last.decorated(),
            is_over,
        }))
    }

    ilion_rows::cursor_methods!(without: plain_rows);
}

/// Shows a row to a visitor, if it is plain; else returns `None`.
#[inline]
fn show(key: &PlacedKey, row: &Packed, visitor: &mut dyn PlainVisitor) -> Option<Flow> {
    let mut cells = Cells::new();
    let timestamp_micros = row.plain_cells(&mut cells)?;
    Some(visitor.row(&PlainRow {
        key: key.bytes(),
        token: Some(&key.token()),
        clustering: &[],
        timestamp_micros: Some(timestamp_micros),
        cells: &cells,
        stored: None,
    }))
}
