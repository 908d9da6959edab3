//! The rows and columns that a read selects.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use ilion_schema::ColumnId;

use crate::{Bound, Clustering, ClusteringComparator, Direction};

/// A range of clusterings, start to end in stored order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The start, of a start kind.
    pub start: Bound,
    /// The end, of an end kind.
    pub end: Bound,
}

impl Slice {
    /// The slice of all clusterings.
    pub fn all() -> Self {
        Self {
            start: Bound::bottom(),
            end: Bound::top(),
        }
    }

    /// Only the row with this clustering (or all rows with this prefix).
    pub fn exactly(clustering: &Clustering) -> Self {
        Self {
            start: Bound::new(crate::BoundKind::InclStart, clustering.values().clone()),
            end: Bound::new(crate::BoundKind::InclEnd, clustering.values().clone()),
        }
    }

    /// True if `clustering` is in the slice.
    pub fn contains(&self, comparator: &ClusteringComparator, clustering: &Clustering) -> bool {
        comparator.compare_bound_to_row(&self.start, clustering) == Ordering::Less
            && comparator.compare_bound_to_row(&self.end, clustering) == Ordering::Greater
    }

    /// True if at most one row can be in the slice: both ends include the same full clustering.
    pub fn is_one_row(&self, comparator: &ClusteringComparator) -> bool {
        let (start, end) = (&self.start, &self.end);
        start.values.len() == comparator.len()
            && (start.kind, end.kind) == (crate::BoundKind::InclStart, crate::BoundKind::InclEnd)
            && start.values == end.values
    }

    /// True if no clustering can be in both slices.
    pub fn misses(&self, other: &Self, comparator: &ClusteringComparator) -> bool {
        comparator.compare_bounds(&self.end, &other.start).is_le()
            || comparator.compare_bounds(&other.end, &self.start).is_le()
    }

    /// True if no clustering can be in the slice.
    pub fn is_empty(&self, comparator: &ClusteringComparator) -> bool {
        comparator.compare_bounds(&self.start, &self.end) != Ordering::Less
    }
}

/// The parts of slices behind a position, in the direction of a read. Only the position of the bound counts, not whether it is a start
/// or an end.
pub fn slices_after(
    slices: &[Slice],
    position: &Bound,
    direction: Direction,
    comparator: &ClusteringComparator,
) -> Vec<Slice> {
    let bound = match direction {
        Direction::Forward => position.as_start(),
        Direction::Reversed => position.as_end(),
    };
    let mut slices = slices.to_vec();
    slices.retain_mut(|slice| {
        let end = match direction {
            Direction::Forward => &mut slice.start,
            Direction::Reversed => &mut slice.end,
        };
        if direction.order(comparator.compare_bounds(&bound, end)).is_gt() {
            *end = bound.clone();
        }
        !slice.is_empty(comparator)
    });
    slices
}

/// What a read selects in each partition. Slices are in stored order, in reversed reads too.
///
/// Invariant: slices ascend and do not overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusteringFilter {
    /// Selected ranges; empty selects only the static row.
    pub slices: Vec<Slice>,
    /// True if rows are returned from the last to the first.
    pub reversed: bool,
    /// Static and regular columns that are selected; `None` selects all. Data of other columns may be outdated or missing, but
    /// whether a row is live is always correct. If the slices select single rows and no static column is selected, the static row
    /// may be outdated or missing, too.
    pub columns: Option<Arc<[ColumnId]>>,
    /// Selected columns of which only some elements are wanted. A column here without paths is read for its timestamps and TTLs only.
    pub elements: Option<Arc<[WantedElements]>>,
    /// True if the liveness of rows is selected. If not, it may be outdated or missing where a cell shows that the row is live.
    pub liveness: bool,
    /// The time for which the reader asks whether rows live, seconds since 1970. `None`: the present by the node's clock.
    pub now_secs: Option<u32>,
}

/// The selected elements of a complex column; without paths, only the timestamps and TTLs of a column of any type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedElements {
    /// Which column.
    pub column: ColumnId,
    /// Paths of the cells whose values are selected.
    pub paths: Vec<Bytes>,
}

impl ClusteringFilter {
    /// Selects every row, forwards.
    pub fn all() -> Self {
        Self {
            slices: vec![Slice::all()],
            reversed: false,
            columns: None,
            elements: None,
            liveness: false,
            now_secs: None,
        }
    }

    /// True if the data of the column is selected.
    #[inline]
    pub fn wants(&self, column: ColumnId) -> bool {
        self.columns
            .as_ref()
            .is_none_or(|columns| columns.contains(&column))
    }

    /// The paths to which the values of a selected column are limited; `None` if they are not limited.
    #[inline]
    pub fn paths_of(&self, column: ColumnId) -> Option<&[Bytes]> {
        let mut elements = self.elements.iter().flat_map(|elements| elements.iter());
        let found = elements.find(|wanted| wanted.column == column)?;
        Some(&found.paths)
    }

    /// True if values of the column are selected, not only the times of its cells.
    #[inline]
    pub fn wants_values(&self, column: ColumnId) -> bool {
        self.wants(column) && self.paths_of(column).is_none_or(|paths| !paths.is_empty())
    }

    /// True if every row is selected.
    pub fn selects_all(&self) -> bool {
        self.slices.len() == 1
            && self.slices[0].start.values.is_empty()
            && self.slices[0].end.values.is_empty()
    }
}
