//! Deleted ranges of one partition in normal form, and their markers.
//!
//! Invariant of [`RangeList`]: ranges ascend, are not empty and do not overlap. If one range ends where the next starts, their
//! deletions differ.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::{
    Bound, BoundKind, Clustering, ClusteringComparator, DeletionTime, Direction, Marker, RangeTombstone,
    Slice,
};

/// Deleted ranges of one partition. Where inserted ranges overlap, the newest deletion wins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeList(Vec<RangeTombstone>);

impl RangeList {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// The normal form of these ranges, which may be in any order and overlap.
    pub fn of(ranges: impl IntoIterator<Item = RangeTombstone>, comparator: &ClusteringComparator) -> Self {
        let mut list = Self::new();
        for range in ranges {
            list.insert(range, comparator);
        }
        list
    }

    /// The ranges, ascending.
    pub fn as_slice(&self) -> &[RangeTombstone] {
        &self.0
    }

    /// True if there are no ranges.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a range. Returns the growth of the list in bytes.
    pub fn insert(&mut self, range: RangeTombstone, comparator: &ClusteringComparator) -> isize {
        if comparator.compare_bounds(&range.start, &range.end).is_ge() {
            return 0;
        }
        let from = self
            .0
            .partition_point(|known| comparator.compare_bounds(&known.end, &range.start).is_le());
        let to = from
            + self.0[from..]
                .partition_point(|known| comparator.compare_bounds(&known.start, &range.end).is_lt());
        let around = from.saturating_sub(1)..(to + 1).min(self.0.len());
        if from == to && from == self.0.len() && around.is_empty() {
            let grown = range.size_bytes();
            self.0.push(range);
            return grown.cast_signed();
        }
        let mut pieces = Pieces::new(comparator);
        for known in &self.0[around.start..from] {
            pieces.push(known.start.clone(), known.end.clone(), known.deletion);
        }
        pieces.overlay(&self.0[from..to], range);
        for known in &self.0[to..around.end] {
            pieces.push(known.start.clone(), known.end.clone(), known.deletion);
        }
        let after = size_of_ranges(&pieces.list);
        let before = size_of_ranges(&self.0[around.clone()]);
        self.0.splice(around, pieces.list);
        after.cast_signed() - before.cast_signed()
    }

    /// The deletion that covers `clustering`; [`DeletionTime::LIVE`] if none does.
    #[inline]
    pub fn covering(&self, clustering: &Clustering, comparator: &ClusteringComparator) -> DeletionTime {
        let index = self
            .0
            .partition_point(|known| comparator.compare_bound_to_row(&known.end, clustering).is_lt());
        match self.0.get(index) {
            Some(range) if comparator.compare_bound_to_row(&range.start, clustering).is_lt() => {
                range.deletion
            }
            _ => DeletionTime::LIVE,
        }
    }

    /// Drops ranges that a deletion of the whole partition covers.
    pub fn shadow(&mut self, deletion: DeletionTime) {
        if !deletion.is_live() {
            self.0.retain(|range| range.deletion.supersedes(&deletion));
        }
    }

    /// Memory of the list in bytes.
    pub fn size_bytes(&self) -> usize {
        size_of_ranges(&self.0)
    }
}

fn size_of_ranges(ranges: &[RangeTombstone]) -> usize {
    ranges.iter().map(RangeTombstone::size_bytes).sum()
}

/// A range list under construction; touching ranges with the same deletion become one.
struct Pieces<'c> {
    list: Vec<RangeTombstone>,
    comparator: &'c ClusteringComparator,
}

impl<'c> Pieces<'c> {
    fn new(comparator: &'c ClusteringComparator) -> Self {
        Self {
            list: Vec::with_capacity(4),
            comparator,
        }
    }

    fn push(&mut self, start: Bound, end: Bound, deletion: DeletionTime) {
        if self.comparator.compare_bounds(&start, &end).is_ge() {
            return;
        }
        match self.list.last_mut() {
            Some(last)
                if last.deletion == deletion && self.comparator.compare_bounds(&last.end, &start).is_eq() =>
            {
                last.end = end;
            }
            _ => self.list.push(RangeTombstone { start, end, deletion }),
        }
    }

    /// Appends `known` and `range`; where they overlap, the newer deletion wins. Requires: all of `known` overlap `range`.
    fn overlay(&mut self, known: &[RangeTombstone], range: RangeTombstone) {
        let mut position = range.start;
        for known in known {
            match self.comparator.compare_bounds(&known.start, &position) {
                Ordering::Less => self.push(known.start.clone(), position.invert(), known.deletion),
                _ => {
                    self.push(position, known.start.invert(), range.deletion);
                    position = known.start.clone();
                }
            }
            let deletion = known.deletion.max(range.deletion);
            if self.comparator.compare_bounds(&known.end, &range.end).is_gt() {
                self.push(position, range.end.clone(), deletion);
                self.push(range.end.invert(), known.end.clone(), known.deletion);
                return;
            }
            self.push(position, known.end.clone(), deletion);
            position = known.end.invert();
        }
        self.push(position, range.end, range.deletion);
    }
}

impl Marker {
    /// A marker at the position of `bound`, of the kind that fits. In the order of reading, the deletion `end` is open before it
    /// and `start` after it. Requires: at least one of them is not `None`.
    pub fn at(
        bound: &Bound,
        end: Option<DeletionTime>,
        start: Option<DeletionTime>,
        direction: Direction,
    ) -> Self {
        let closes = match direction {
            Direction::Forward => end.is_some(),
            Direction::Reversed => start.is_some(),
        };
        let kind = match (bound.kind.is_before(), end.is_some() && start.is_some(), closes) {
            (true, true, _) => BoundKind::ExclEndInclStart,
            (false, true, _) => BoundKind::InclEndExclStart,
            (true, false, true) => BoundKind::ExclEnd,
            (true, false, false) => BoundKind::InclStart,
            (false, false, true) => BoundKind::InclEnd,
            (false, false, false) => BoundKind::ExclStart,
        };
        Self {
            bound: Bound::new(kind, bound.values.clone()),
            end,
            start,
        }
    }
}

/// The markers of a [`RangeList`] cut to a slice, in the order of reading.
#[derive(Debug)]
pub struct Markers {
    ranges: Arc<RangeList>,
    comparator: ClusteringComparator,
    slice: Slice,
    direction: Direction,
    /// Indexes of the ranges that are not yet opened.
    left: std::ops::Range<usize>,
    /// The end and the deletion of the open range.
    open: Option<(Bound, DeletionTime)>,
}

impl Markers {
    /// The markers of the part of `ranges` that lies in `slice`.
    pub fn new(
        ranges: Arc<RangeList>,
        slice: Slice,
        direction: Direction,
        comparator: ClusteringComparator,
    ) -> Self {
        let list = ranges.as_slice();
        let from = list.partition_point(|known| comparator.compare_bounds(&known.end, &slice.start).is_le());
        let to = list.partition_point(|known| comparator.compare_bounds(&known.start, &slice.end).is_lt());
        Self {
            left: from..to.max(from),
            ranges,
            comparator,
            slice,
            direction,
            open: None,
        }
    }

    fn next_range(&mut self) -> Option<(Bound, Bound, DeletionTime)> {
        let index = match self.direction {
            Direction::Forward => self.left.next()?,
            Direction::Reversed => self.left.next_back()?,
        };
        let (first, last, deletion) = self.ends_of(index)?;
        Some((first.clone(), last.clone(), deletion))
    }

    /// Both ends of a range, cut to the slice, in the order of reading.
    fn ends_of(&self, index: usize) -> Option<(&Bound, &Bound, DeletionTime)> {
        let range = self.ranges.as_slice().get(index)?;
        let starts_inside = self
            .comparator
            .compare_bounds(&range.start, &self.slice.start)
            .is_gt();
        let ends_inside = self
            .comparator
            .compare_bounds(&range.end, &self.slice.end)
            .is_lt();
        let start = if starts_inside {
            &range.start
        } else {
            &self.slice.start
        };
        let end = if ends_inside { &range.end } else { &self.slice.end };
        Some(match self.direction {
            Direction::Forward => (start, end, range.deletion),
            Direction::Reversed => (end, start, range.deletion),
        })
    }

    fn next_touches(&self, bound: &Bound) -> bool {
        let next = match self.direction {
            Direction::Forward => self.left.clone().next(),
            Direction::Reversed => self.left.clone().next_back(),
        };
        next.and_then(|index| self.ends_of(index))
            .is_some_and(|(first, _, _)| self.comparator.compare_bounds(first, bound).is_eq())
    }
}

impl Iterator for Markers {
    type Item = Marker;

    fn next(&mut self) -> Option<Marker> {
        let Some((close, ending)) = self.open.take() else {
            let (first, last, deletion) = self.next_range()?;
            self.open = Some((last, deletion));
            return Some(Marker::at(&first, None, Some(deletion), self.direction));
        };
        if !self.next_touches(&close) {
            return Some(Marker::at(&close, Some(ending), None, self.direction));
        }
        let (_, last, deletion) = self.next_range()?;
        self.open = Some((last, deletion));
        Some(Marker::at(&close, Some(ending), Some(deletion), self.direction))
    }
}
