//! Many sources as one: the k-way merge of partitions, rows and range tombstone markers.
//!
//! Partitions of the sources wait in a queue by key. A source that has a lower bound waits there by its bound, and its
//! partition is read only when no other source is before the bound. Inside a partition, the unfiltereds of the sources that
//! have the partition wait in a second queue. Rows of one clustering are reconciled and shadowed by the open deletion. A marker is
//! returned only where the newest open deletion changes, so the result is in normal form even if the sources overlap.
//!
//! Not here: dropping dead data (`purge`).

mod plain;

use std::cmp::Ordering;
use std::sync::Arc;

use ilion_schema::TableSchema;
use smallvec::{SmallVec, smallvec};

use crate::{
    Bound, Clustering, ClusteringComparator, Cursor, DecoratedKey, DeletionTime, Direction, Marker,
    PartitionHead, PlainRun, PlainVisitor, ReadError, Row, Unfiltered, merge_rows,
};

/// The state of a source between partitions.
enum SourceState {
    /// The next partition is not read yet. The key is a lower bound of the partition, if known.
    Unread(Option<DecoratedKey>),
    /// The head of the next partition was read.
    AtHead(PartitionHead),
}

impl SourceState {
    fn key(&self) -> Option<&DecoratedKey> {
        match self {
            Self::Unread(bound) => bound.as_ref(),
            Self::AtHead(head) => Some(&head.key),
        }
    }

    /// The order of the queue: first sources without a bound, then lower keys; of equal keys, a bound before a partition.
    fn compare(&self, other: &Self) -> Ordering {
        let is_at_head = |state: &Self| matches!(state, Self::AtHead(_));
        self.key()
            .cmp(&other.key())
            .then_with(|| is_at_head(self).cmp(&is_at_head(other)))
    }
}

struct Source<C> {
    cursor: C,
    state: SourceState,
    /// The next unfiltered of the current partition, while it waits in the queue.
    next: Option<Unfiltered>,
    /// Rank of the last unfiltered that waited ([`ClusteringComparator::rank`]).
    rank: u64,
    /// The deletion that is open in this source.
    open: DeletionTime,
}

/// Indexes of sources in reverse order: the next one is last.
#[derive(Default)]
struct Queue(Vec<usize>);

impl Queue {
    /// Inserts `index` in order; `compare` returns the order of a waiting source relative to `index`.
    fn insert(&mut self, index: usize, compare: impl Fn(usize) -> Ordering) {
        let at = self.0.partition_point(|waiting| compare(*waiting).is_gt());
        self.0.insert(at, index);
    }

    fn top(&self) -> Option<usize> {
        self.0.last().copied()
    }
}

/// Reads several sources as one. Requires: all sources read the same slices in the same direction.
pub struct MergeCursor<C = Box<dyn Cursor>> {
    table: Arc<TableSchema>,
    is_counter: bool,
    comparator: ClusteringComparator,
    direction: Direction,
    sources: Vec<Source<C>>,
    /// Sources that wait for their next partition.
    partitions: Queue,
    /// Sources that have the current partition.
    active: SmallVec<[usize; 8]>,
    /// Sources with an unfiltered of the current partition in `next`.
    unfiltereds: Queue,
    /// Sources whose `next` was taken. The next unfiltered is read only when it is needed.
    used: SmallVec<[usize; 8]>,
    /// Deletion of the current partition.
    deletion: DeletionTime,
    /// The newest range deletion that is open in any source, if it is newer than the partition's.
    open: DeletionTime,
}

impl<C: Cursor> MergeCursor<C> {
    /// Merges `sources` of `table`.
    pub fn new(sources: Vec<C>, table: Arc<TableSchema>, direction: Direction) -> Self {
        let comparator = ClusteringComparator::of(&table);
        Self::ordered(sources, table, comparator, direction)
    }

    /// As [`Self::new`], for callers that already have the table's comparator.
    pub fn ordered(
        sources: Vec<C>,
        table: Arc<TableSchema>,
        comparator: ClusteringComparator,
        direction: Direction,
    ) -> Self {
        let sources: Vec<Source<C>> = sources
            .into_iter()
            .map(|cursor| Source {
                state: SourceState::Unread(cursor.lower_bound()),
                cursor,
                next: None,
                rank: 0,
                open: DeletionTime::LIVE,
            })
            .collect();
        let mut merge = Self {
            comparator,
            is_counter: table.is_counter(),
            table,
            direction,
            partitions: Queue(Vec::with_capacity(sources.len())),
            active: SmallVec::new(),
            unfiltereds: Queue::default(),
            used: SmallVec::new(),
            deletion: DeletionTime::LIVE,
            open: DeletionTime::LIVE,
            sources,
        };
        (0..merge.sources.len()).for_each(|index| merge.wait_for_partition(index));
        merge
    }

    /// The sources in the order in which they were given, each at its current position.
    pub fn into_sources(self) -> impl Iterator<Item = C> {
        self.sources.into_iter().map(|source| source.cursor)
    }

    /// Number of sources that have the current partition.
    pub fn sources_of_partition(&self) -> usize {
        self.active.len()
    }

    fn wait_for_partition(&mut self, index: usize) {
        let sources = &self.sources;
        let state = &sources[index].state;
        self.partitions
            .insert(index, |waiting| sources[waiting].state.compare(state));
    }

    /// Leaves the current partition. `bound_of` returns the lower bound of a source's next partition.
    fn leave_partition(&mut self, bound_of: impl Fn(&mut C) -> Option<DecoratedKey>) {
        for index in std::mem::take(&mut self.active) {
            let source = &mut self.sources[index];
            source.next = None;
            source.open = DeletionTime::LIVE;
            source.state = SourceState::Unread(bound_of(&mut source.cursor));
            self.wait_for_partition(index);
        }
        self.unfiltereds.0.clear();
        self.used.clear();
        self.open = DeletionTime::LIVE;
    }

    /// Reads heads until the first source in the queue has one. Returns false at the end of all sources.
    fn read_head(&mut self) -> Result<bool, ReadError> {
        while let Some(index) = self.partitions.top() {
            if matches!(self.sources[index].state, SourceState::AtHead(_)) {
                return Ok(true);
            }
            let source = &mut self.sources[index];
            let head = source.cursor.next_partition()?;
            self.partitions.0.pop();
            if let Some(head) = head {
                source.state = SourceState::AtHead(head);
                self.wait_for_partition(index);
            }
        }
        Ok(false)
    }

    /// Takes the head of the first source in the queue.
    fn take_head(&mut self) -> Option<PartitionHead> {
        let index = self.partitions.0.pop()?;
        match std::mem::replace(&mut self.sources[index].state, SourceState::Unread(None)) {
            SourceState::AtHead(head) => {
                self.active.push(index);
                Some(head)
            }
            SourceState::Unread(_) => None,
        }
    }

    /// Merges the heads of all other sources with the same key into `head`.
    fn join_heads(&mut self, head: &mut PartitionHead) -> Result<(), ReadError> {
        let mut statics: SmallVec<[Row; 4]> = head.static_row.take().into_iter().collect();
        // A source whose lower bound equals this key may have the partition, too: `read_head` reads its head.
        while self.read_head()? {
            let next = self
                .partitions
                .top()
                .and_then(|index| self.sources[index].state.key());
            if next != Some(&head.key) {
                break;
            }
            if let Some(other) = self.take_head() {
                head.deletion = head.deletion.max(other.deletion);
                statics.extend(other.static_row);
            }
        }
        head.static_row = merge_rows(statics, head.deletion, &self.table);
        Ok(())
    }

    /// True if some source may still have a partition with this key.
    fn others_may_have(&self, key: &DecoratedKey) -> bool {
        self.partitions
            .top()
            .is_some_and(|index| self.sources[index].state.key().is_none_or(|other| other <= key))
    }

    /// Reads the next unfiltered of each source whose last one was taken.
    fn refill(&mut self) -> Result<(), ReadError> {
        for index in std::mem::take(&mut self.used) {
            let source = &mut self.sources[index];
            source.next = source.cursor.next_unfiltered()?;
            if source.next.is_some() {
                self.wait_with_unfiltered(index);
            }
        }
        Ok(())
    }

    fn wait_with_unfiltered(&mut self, index: usize) {
        let source = &mut self.sources[index];
        source.rank = source.next.as_ref().map_or(0, |next| self.comparator.rank(next));
        let (sources, comparator, direction) = (&self.sources, &self.comparator, self.direction);
        let (next, rank) = (&sources[index].next, sources[index].rank);
        self.unfiltereds.insert(index, |waiting| {
            let waiting = &sources[waiting];
            let ordering = waiting.rank.cmp(&rank);
            match (&waiting.next, next) {
                (Some(waiting), Some(next)) => {
                    direction.order(ordering.then_with(|| comparator.compare_unfiltered(waiting, next)))
                }
                _ => Ordering::Equal,
            }
        });
    }

    fn take_unfiltered(&mut self) -> Option<(usize, Unfiltered)> {
        let index = self.unfiltereds.0.pop()?;
        self.used.push(index);
        let unfiltered = self.sources[index].next.take()?;
        Some((index, unfiltered))
    }

    /// Takes the next row of the queue, if it has this clustering; `rank` is the rank of the clustering.
    fn take_row(&mut self, clustering: &Clustering, rank: u64) -> Option<Row> {
        let index = self.unfiltereds.top()?;
        let source = &self.sources[index];
        let is_same = |row: &Row| self.comparator.compare(&row.clustering, clustering).is_eq();
        match &source.next {
            Some(Unfiltered::Row(row)) if source.rank == rank && is_same(row) => {}
            _ => return None,
        }
        match self.take_unfiltered()? {
            (_, Unfiltered::Row(row)) => Some(row),
            (_, Unfiltered::Marker(_)) => None,
        }
    }

    /// Reconciles all rows of the same clustering.
    fn join_rows(&mut self, index: usize, mut row: Row) -> Option<Row> {
        let rank = self.sources[index].rank;
        let active = self.deletion.max(self.open);
        if self.is_counter {
            let clustering = row.clustering.clone();
            let mut rows: SmallVec<[Row; 4]> = smallvec![row];
            rows.extend(std::iter::from_fn(|| self.take_row(&clustering, rank)));
            return merge_rows(rows, active, &self.table);
        }
        while let Some(other) = self.take_row(&row.clustering, rank) {
            row.merge(other, &self.table);
        }
        row.shadow(active);
        (!row.is_empty()).then_some(row)
    }

    /// Consumes every marker at the same position; returns a marker if the newest open deletion changes there.
    fn join_markers(&mut self, index: usize, marker: Marker) -> Option<Marker> {
        self.sources[index].open = marker.start.unwrap_or(DeletionTime::LIVE);
        while let Some(index) = self.unfiltereds.top()
            && let Some(Unfiltered::Marker(other)) = &self.sources[index].next
            && self
                .comparator
                .compare_bounds(&other.bound, &marker.bound)
                .is_eq()
        {
            if let Some((index, Unfiltered::Marker(other))) = self.take_unfiltered() {
                self.sources[index].open = other.start.unwrap_or(DeletionTime::LIVE);
            }
        }
        let open = self
            .active
            .iter()
            .map(|index| self.sources[*index].open)
            .fold(DeletionTime::LIVE, DeletionTime::max);
        let open = if open.supersedes(&self.deletion) {
            open
        } else {
            DeletionTime::LIVE
        };
        let before = std::mem::replace(&mut self.open, open);
        let side = |deletion: DeletionTime| (!deletion.is_live()).then_some(deletion);
        (before != open).then(|| Marker::at(&marker.bound, side(before), side(open), self.direction))
    }

    /// The next unfiltered of a partition that only one source has: no comparison is needed.
    fn next_of_one(&mut self, index: usize) -> Result<Option<Unfiltered>, ReadError> {
        loop {
            let Some(unfiltered) = self.sources[index].cursor.next_unfiltered()? else {
                return Ok(None);
            };
            match unfiltered {
                Unfiltered::Row(mut row) => {
                    row.shadow(self.deletion.max(self.open));
                    if !row.is_empty() {
                        return Ok(Some(Unfiltered::Row(row)));
                    }
                }
                Unfiltered::Marker(marker) => {
                    if let Some(marker) = self.join_markers(index, marker) {
                        return Ok(Some(Unfiltered::Marker(marker)));
                    }
                }
            }
        }
    }
}

impl<C: Cursor> Cursor for MergeCursor<C> {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        self.leave_partition(|cursor| cursor.lower_bound());
        if !self.read_head()? {
            return Ok(None);
        }
        let Some(mut head) = self.take_head() else {
            return Ok(None);
        };
        if self.others_may_have(&head.key) {
            self.join_heads(&mut head)?;
        }
        self.deletion = head.deletion;
        if self.active.len() > 1 {
            self.used = self.active.clone();
        }
        Ok(Some(head))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        if let [index] = self.active[..] {
            return self.next_of_one(index);
        }
        loop {
            self.refill()?;
            let Some((index, unfiltered)) = self.take_unfiltered() else {
                return Ok(None);
            };
            let joined = match unfiltered {
                Unfiltered::Row(row) => self.join_rows(index, row).map(Unfiltered::Row),
                Unfiltered::Marker(marker) => self.join_markers(index, marker).map(Unfiltered::Marker),
            };
            if joined.is_some() {
                return Ok(joined);
            }
        }
    }

    fn lower_bound(&self) -> Option<DecoratedKey> {
        if !self.active.is_empty() {
            return None;
        }
        let index = self.partitions.top()?;
        self.sources[index].state.key().cloned()
    }

    /// Shows the plain partitions of one source after the other, each up to the next source's key. A partition of several sources
    /// must be merged, so it is not plain.
    fn plain_partitions(
        &mut self,
        before: Option<&DecoratedKey>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<Option<PlainRun>, ReadError> {
        self.plain_runs(before, visitor)
    }

    /// Shows the plain rows of one source, up to the next unfiltered of another.
    fn plain_rows(
        &mut self,
        key: &DecoratedKey,
        before: Option<&Bound>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<u64, ReadError> {
        self.plain_rows_of_one(key, before, visitor)
    }

    /// Skips the deleted rows of one source, up to the next unfiltered of another.
    fn skip_deleted(&mut self, before: Option<&Bound>) -> Result<(), ReadError> {
        self.skip_deleted_of_one(before)
    }

    crate::cursor_methods!(without: peek);
}
