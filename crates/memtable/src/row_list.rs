//! The rows of one partition in clustering order.
//!
//! Most partitions have one row, which is stored inline. More rows are in chunks of at most [`CHUNK_ROWS`] each, so
//! that an insert moves few rows, a search is two binary searches, and both directions cost the same.
//!
//! A clone is a snapshot: it shares everything, and a writer copies a shared chunk before it changes it.
//! Invariant: chunks are not empty; rows ascend within and across chunks.

use std::sync::Arc;

use ilion_rows::{Bound, ClusteringComparator, Direction, Slice, Values};

use crate::stored_row::StoredRow;

/// Most rows of a chunk. Measured: 32 to 128 differ little. Smaller chunks move fewer rows when rows arrive in descending order.
const CHUNK_ROWS: usize = 64;

type Chunk = Arc<Vec<StoredRow>>;

/// The rows of a partition.
#[derive(Clone, Debug, Default)]
pub(crate) enum RowList {
    /// No rows.
    #[default]
    Empty,
    /// One row, stored inline.
    One(StoredRow),
    /// Several rows, in chunks.
    Many(Arc<Vec<Chunk>>),
}

/// The place of a row, or the end: a chunk, and a row in it. Invariant: the place after the last row of a chunk is the
/// start of the next chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowPosition {
    chunk: usize,
    row: usize,
}

/// The rows between two places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    from: RowPosition,
    to: RowPosition,
}

impl Span {
    /// No rows.
    pub(crate) const EMPTY: Self = {
        let place = RowPosition { chunk: 0, row: 0 };
        Self {
            from: place,
            to: place,
        }
    };
}

impl RowList {
    fn chunks(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::One(_) => 1,
            Self::Many(chunks) => chunks.len(),
        }
    }

    #[inline]
    fn chunk(&self, index: usize) -> &[StoredRow] {
        match self {
            Self::Empty => &[],
            Self::One(row) => std::slice::from_ref(row),
            Self::Many(chunks) => &chunks[index],
        }
    }

    /// The row, if the list has exactly one.
    #[inline]
    pub(crate) fn only(&self) -> Option<&StoredRow> {
        match self {
            Self::One(row) => Some(row),
            Self::Empty | Self::Many(_) => None,
        }
    }

    /// Before the first row.
    pub(crate) fn begin(&self) -> RowPosition {
        RowPosition { chunk: 0, row: 0 }
    }

    /// After the last row.
    pub(crate) fn end(&self) -> RowPosition {
        RowPosition {
            chunk: self.chunks(),
            row: 0,
        }
    }

    /// The place of the first row for which `is_before` is false.
    fn lower(&self, mut is_before: impl FnMut(&StoredRow) -> bool) -> RowPosition {
        let chunks = self.chunks();
        let (mut low, mut high) = (0, chunks);
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.chunk(middle).last().is_some_and(&mut is_before) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if low == chunks {
            return self.end();
        }
        let row = self.chunk(low).partition_point(&mut is_before);
        RowPosition { chunk: low, row }
    }

    /// The place before the first row after `bound`.
    pub(crate) fn lower_bound(&self, bound: &Bound, comparator: &ClusteringComparator) -> RowPosition {
        if bound.values.is_empty() {
            return if bound.kind.is_before() {
                self.begin()
            } else {
                self.end()
            };
        }
        self.lower(|row| row.is_before(bound, comparator))
    }

    /// Finds the row of this clustering: `Ok` with its place, or `Err` with the place where it belongs.
    pub(crate) fn find(
        &self,
        clustering: &Values,
        comparator: &ClusteringComparator,
    ) -> Result<RowPosition, RowPosition> {
        let place = self.lower(|row| row.compare(clustering, comparator).is_lt());
        match self.at(place) {
            Some(row) if row.compare(clustering, comparator).is_eq() => Ok(place),
            _ => Err(place),
        }
    }

    /// The place after `place`. Requires: there is a row at `place`.
    pub(crate) fn after(&self, place: RowPosition) -> RowPosition {
        if place.row + 1 < self.chunk(place.chunk).len() {
            RowPosition {
                row: place.row + 1,
                ..place
            }
        } else {
            RowPosition {
                chunk: place.chunk + 1,
                row: 0,
            }
        }
    }

    /// The place before `place`. Requires: `place` is not the first.
    fn before(&self, place: RowPosition) -> RowPosition {
        if place.row > 0 {
            return RowPosition {
                row: place.row - 1,
                ..place
            };
        }
        let chunk = place.chunk.saturating_sub(1);
        RowPosition {
            chunk,
            row: self.chunk(chunk).len().saturating_sub(1),
        }
    }

    /// The row at `place`.
    #[inline]
    pub(crate) fn at(&self, place: RowPosition) -> Option<&StoredRow> {
        if place.chunk >= self.chunks() {
            return None;
        }
        self.chunk(place.chunk).get(place.row)
    }

    /// The row at `place`.
    #[inline]
    pub(crate) fn at_mut(&mut self, place: RowPosition) -> Option<&mut StoredRow> {
        match self {
            Self::Empty => None,
            Self::One(row) => (place == RowPosition { chunk: 0, row: 0 }).then_some(row),
            Self::Many(chunks) => {
                let chunk = Arc::make_mut(chunks).get_mut(place.chunk)?;
                Arc::make_mut(chunk).get_mut(place.row)
            }
        }
    }

    /// Inserts `row` before the row at `place`.
    pub(crate) fn insert(&mut self, place: RowPosition, row: StoredRow) {
        match self {
            Self::Empty => *self = Self::One(row),
            Self::One(_) => {
                let Self::One(known) = std::mem::take(self) else {
                    return;
                };
                let mut chunk = Vec::with_capacity(4);
                chunk.push(known);
                chunk.insert(usize::from(place.chunk == 1), row);
                *self = Self::Many(Arc::new(vec![Arc::new(chunk)]));
            }
            Self::Many(chunks) => insert_into(Arc::make_mut(chunks), place, row),
        }
    }

    /// The rows in `slice`.
    pub(crate) fn span(&self, slice: &Slice, comparator: &ClusteringComparator) -> Span {
        let from = self.lower_bound(&slice.start, comparator);
        let to = self.lower_bound(&slice.end, comparator);
        Span {
            from,
            to: to.max(from),
        }
    }

    /// Removes the next row from the span and returns it; for a reversed read, the next row is the last one of the span.
    pub(crate) fn take(&self, span: &mut Span, direction: Direction) -> Option<&StoredRow> {
        if span.from >= span.to {
            return None;
        }
        match direction {
            Direction::Forward => {
                let row = self.at(span.from)?;
                span.from = self.after(span.from);
                Some(row)
            }
            Direction::Reversed => {
                span.to = self.before(span.to);
                self.at(span.to)
            }
        }
    }

    /// Calls `change` for every row, and drops the rows for which `change` returns false.
    pub(crate) fn retain(&mut self, mut change: impl FnMut(&mut StoredRow) -> bool) {
        match self {
            Self::Empty => {}
            Self::One(row) => {
                if !change(row) {
                    *self = Self::Empty;
                }
            }
            Self::Many(chunks) => {
                let chunks = Arc::make_mut(chunks);
                for chunk in chunks.iter_mut() {
                    Arc::make_mut(chunk).retain_mut(&mut change);
                }
                chunks.retain(|chunk| !chunk.is_empty());
                if chunks.is_empty() {
                    *self = Self::Empty;
                }
            }
        }
    }
}

fn insert_into(chunks: &mut Vec<Chunk>, place: RowPosition, row: StoredRow) {
    // A row that belongs between two chunks is put at the end of the first.
    let (index, at) = if place.row == 0 && place.chunk > 0 {
        (place.chunk - 1, chunks[place.chunk - 1].len())
    } else {
        (place.chunk, place.row)
    };
    let len = chunks[index].len();
    if len < CHUNK_ROWS {
        Arc::make_mut(&mut chunks[index]).insert(at, row);
        return;
    }
    // Writes in ascending or descending order leave chunks full, other writes leave them half full.
    let at_the_end = at == len && index + 1 == chunks.len();
    let at_the_start = at == 0 && index == 0;
    if at_the_end || at_the_start {
        let mut fresh = Vec::with_capacity(CHUNK_ROWS);
        fresh.push(row);
        chunks.insert(if at_the_end { index + 1 } else { 0 }, Arc::new(fresh));
        return;
    }
    let chunk = Arc::make_mut(&mut chunks[index]);
    let half = len / 2;
    let mut upper = Vec::with_capacity(CHUNK_ROWS);
    upper.extend(chunk.drain(half..));
    if at <= half {
        chunk.insert(at, row);
    } else {
        upper.insert(at - half, row);
    }
    chunks.insert(index + 1, Arc::new(upper));
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use ilion_rows::{BoundKind, Clustering, Liveness, Row};
    use ilion_schema::ClusteringOrder;
    use ilion_types::CqlType;

    use super::*;

    fn clustering(number: i32) -> Clustering {
        Clustering::of([Bytes::copy_from_slice(&number.to_be_bytes())])
    }

    fn row(clustering: Clustering) -> StoredRow {
        StoredRow::copy_of(&Row {
            liveness: Liveness::live(1),
            ..Row::empty(clustering)
        })
    }

    fn number(row: &StoredRow) -> i32 {
        let clustering = row.row().clustering;
        let value = clustering.values()[0].as_ref().unwrap();
        i32::from_be_bytes(value.as_ref().try_into().unwrap())
    }

    fn numbers(list: &RowList, direction: Direction) -> Vec<i32> {
        let mut span = Span {
            from: list.begin(),
            to: list.end(),
        };
        std::iter::from_fn(|| list.take(&mut span, direction).map(number)).collect()
    }

    #[test]
    fn rows_put_in_any_order_come_out_sorted_in_both_directions() {
        let comparator = ClusteringComparator::new([(CqlType::Int, ClusteringOrder::Asc)]);
        let count = 700;
        for order in [1, count - 1, 263] {
            let mut list = RowList::default();
            for index in 0..count {
                let clustering = clustering((index * order) % count * 2);
                let place = list.find(clustering.values(), &comparator).unwrap_err();
                list.insert(place, row(clustering));
            }
            let all: Vec<i32> = (0..count).map(|number| number * 2).collect();
            assert_eq!(numbers(&list, Direction::Forward), all);
            let mut back = numbers(&list, Direction::Reversed);
            back.reverse();
            assert_eq!(back, all);
            for number in -1..=count * 2 {
                let found = list.find(clustering(number).values(), &comparator);
                assert_eq!(
                    found.is_ok(),
                    number >= 0 && number < 2 * count && number % 2 == 0
                );
                let bound = Bound::new(BoundKind::InclStart, clustering(number).values().clone());
                let from = list.lower_bound(&bound, &comparator);
                assert_eq!(list.at(from).is_some(), number <= 2 * (count - 1));
            }
            list.retain(|row| number(row) % 100 == 0);
            assert_eq!(numbers(&list, Direction::Forward).len(), 14);
        }
    }

    #[test]
    fn a_clone_stays_as_it_was() {
        let comparator = ClusteringComparator::new([(CqlType::Int, ClusteringOrder::Asc)]);
        let mut list = RowList::default();
        let mut snapshots = Vec::new();
        for count in 0..200 {
            snapshots.push((list.clone(), numbers(&list, Direction::Forward)));
            let clustering = clustering((count * 37) % 200);
            let place = list.find(clustering.values(), &comparator).unwrap_err();
            list.insert(place, row(clustering));
        }
        snapshots.push((list.clone(), (0..200).collect()));
        list.retain(|row| number(row) % 2 == 0);
        for (snapshot, expected) in snapshots {
            assert_eq!(numbers(&snapshot, Direction::Forward), expected);
        }
    }
}
