//! Many sources as one: the k-way merge of partitions, rows and range tombstone markers.
//!
//! Partitions of the sources wait in a queue by key. A source that knows a lower bound waits there by its bound, and is
//! asked for its partition only when nothing else is before that. Inside a partition the unfiltereds of the sources that have it wait in
//! a second queue. Rows of one clustering are reconciled and shadowed by what is open; a marker is given only where the
//! newest open deletion changes, so what comes out is in normal form whatever the sources overlapped.
//!
//! Not here: dropping what is dead (`purge`).

mod plain;

use std::cmp::Ordering;
use std::sync::Arc;

use ilion_schema::TableSchema;
use smallvec::{SmallVec, smallvec};

use crate::{
    Bound, Clustering, ClusteringComparator, Cursor, DecoratedKey, DeletionTime, Direction, Marker,
    PartitionHead, PlainRun, PlainVisitor, ReadError, Row, Unfiltered, merge_rows,
};

/// Where a source stands between partitions.
enum Place {
    /// Not asked; its next partition is not before this, if that is known.
    Unasked(Option<DecoratedKey>),
    /// Asked.
    At(PartitionHead),
}

impl Place {
    fn key(&self) -> Option<&DecoratedKey> {
        match self {
            Self::Unasked(bound) => bound.as_ref(),
            Self::At(head) => Some(&head.key),
        }
    }

    /// Who is asked first: no bound, lower key, bound before partition.
    fn compare(&self, other: &Self) -> Ordering {
        let is_at = |place: &Self| matches!(place, Self::At(_));
        self.key()
            .cmp(&other.key())
            .then_with(|| is_at(self).cmp(&is_at(other)))
    }
}

struct Source<C> {
    cursor: C,
    place: Place,
    /// The next unfiltered of the current partition, while it waits.
    next: Option<Unfiltered>,
    /// Of the last one that waited ([`ClusteringComparator::rank`]).
    rank: u64,
    /// The deletion that is open in this source.
    open: DeletionTime,
}

/// Source numbers, the next one last.
#[derive(Default)]
struct Queue(Vec<usize>);

impl Queue {
    /// Puts `index` where it belongs; `compare` orders a waiting one and `index`.
    fn insert(&mut self, index: usize, compare: impl Fn(usize) -> Ordering) {
        let at = self.0.partition_point(|waiting| compare(*waiting).is_gt());
        self.0.insert(at, index);
    }

    fn top(&self) -> Option<usize> {
        self.0.last().copied()
    }
}

/// Reads several sources as one. All sources must read in the same direction and give the same slices.
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
    /// Sources of the current partition that wait with an unfiltered.
    unfiltereds: Queue,
    /// Sources whose last unfiltered was used, so that the next is read only when it is needed.
    used: SmallVec<[usize; 8]>,
    /// Deletion of the current partition.
    deletion: DeletionTime,
    /// The newest deletion open over the sources, if it is newer than the partition's.
    open: DeletionTime,
}

impl<C: Cursor> MergeCursor<C> {
    /// Merges `sources` of `table`.
    pub fn new(sources: Vec<C>, table: Arc<TableSchema>, direction: Direction) -> Self {
        let comparator = ClusteringComparator::of(&table);
        Self::ordered(sources, table, comparator, direction)
    }

    /// The same with the comparator of the table, which somebody has.
    pub fn ordered(
        sources: Vec<C>,
        table: Arc<TableSchema>,
        comparator: ClusteringComparator,
        direction: Direction,
    ) -> Self {
        let sources: Vec<Source<C>> = sources
            .into_iter()
            .map(|cursor| Source {
                place: Place::Unasked(cursor.lower_bound()),
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

    /// The sources, as they were given, where they stand.
    pub fn into_sources(self) -> impl Iterator<Item = C> {
        self.sources.into_iter().map(|source| source.cursor)
    }

    /// How many of the sources have the current partition.
    pub fn sources_of_partition(&self) -> usize {
        self.active.len()
    }

    fn wait_for_partition(&mut self, index: usize) {
        let sources = &self.sources;
        let place = &sources[index].place;
        self.partitions
            .insert(index, |waiting| sources[waiting].place.compare(place));
    }

    /// `bound_of` says from where on a source goes on.
    fn leave_partition(&mut self, bound_of: impl Fn(&mut C) -> Option<DecoratedKey>) {
        for index in std::mem::take(&mut self.active) {
            let source = &mut self.sources[index];
            source.next = None;
            source.open = DeletionTime::LIVE;
            source.place = Place::Unasked(bound_of(&mut source.cursor));
            self.wait_for_partition(index);
        }
        self.unfiltereds.0.clear();
        self.used.clear();
        self.open = DeletionTime::LIVE;
    }

    /// Asks sources until the first in the queue stands at a partition. False at the end.
    fn ask(&mut self) -> Result<bool, ReadError> {
        while let Some(index) = self.partitions.top() {
            if matches!(self.sources[index].place, Place::At(_)) {
                return Ok(true);
            }
            let source = &mut self.sources[index];
            let head = source.cursor.next_partition()?;
            self.partitions.0.pop();
            if let Some(head) = head {
                source.place = Place::At(head);
                self.wait_for_partition(index);
            }
        }
        Ok(false)
    }

    /// Takes the head of the first source in the queue.
    fn take_head(&mut self) -> Option<PartitionHead> {
        let index = self.partitions.0.pop()?;
        match std::mem::replace(&mut self.sources[index].place, Place::Unasked(None)) {
            Place::At(head) => {
                self.active.push(index);
                Some(head)
            }
            Place::Unasked(_) => None,
        }
    }

    /// Adds the heads of all other sources that stand at the same key.
    fn join_heads(&mut self, head: &mut PartitionHead) -> Result<(), ReadError> {
        let mut statics: SmallVec<[Row; 4]> = head.static_row.take().into_iter().collect();
        // A source that waits by a bound equal to this key may have it too: `ask` resolves it.
        while self.ask()? {
            let next = self
                .partitions
                .top()
                .and_then(|index| self.sources[index].place.key());
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
            .is_some_and(|index| self.sources[index].place.key().is_none_or(|other| other <= key))
    }

    /// Reads on where unfiltereds were used.
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

    /// The next row, if it has this clustering, of which the rank is known.
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

    /// Joins every row of the same clustering.
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

    /// Joins every marker at the same position; returns one if the newest open deletion changes there.
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

    /// The only source of the partition: nothing to compare.
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
        if !self.ask()? {
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
        self.sources[index].place.key().cloned()
    }

    /// Those of one source after the other, each up to where the next one goes on. What several have is merged, and so not plain.
    fn plain_partitions(
        &mut self,
        before: Option<&DecoratedKey>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<Option<PlainRun>, ReadError> {
        self.plain_runs(before, visitor)
    }

    /// Those of one source up to where the next one has something.
    fn plain_rows(
        &mut self,
        key: &DecoratedKey,
        before: Option<&Bound>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<u64, ReadError> {
        self.plain_rows_of_one(key, before, visitor)
    }

    crate::cursor_methods!(without: peek);
}
