//! Which clusterings and columns a read wants.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use ilion_schema::ColumnId;

use crate::{Bound, Clustering, ClusteringComparator};

/// A range of clusterings, start to end in stored order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// A start kind.
    pub start: Bound,
    /// An end kind.
    pub end: Bound,
}

impl Slice {
    /// Every clustering.
    pub fn all() -> Self {
        Self {
            start: Bound::bottom(),
            end: Bound::top(),
        }
    }

    /// Just the row with this clustering (or all rows below this prefix).
    pub fn exactly(clustering: &Clustering) -> Self {
        Self {
            start: Bound::new(crate::BoundKind::InclStart, clustering.values().clone()),
            end: Bound::new(crate::BoundKind::InclEnd, clustering.values().clone()),
        }
    }

    /// True if `clustering` lies in it.
    pub fn contains(&self, comparator: &ClusteringComparator, clustering: &Clustering) -> bool {
        comparator.compare_bound_to_row(&self.start, clustering) == Ordering::Less
            && comparator.compare_bound_to_row(&self.end, clustering) == Ordering::Greater
    }

    /// True if all that can lie in it is one row: both ends include the same full clustering.
    pub fn is_one_row(&self, comparator: &ClusteringComparator) -> bool {
        let (start, end) = (&self.start, &self.end);
        start.values.len() == comparator.len()
            && (start.kind, end.kind) == (crate::BoundKind::InclStart, crate::BoundKind::InclEnd)
            && start.values == end.values
    }

    /// True if no clustering lies in both.
    pub fn misses(&self, other: &Self, comparator: &ClusteringComparator) -> bool {
        comparator.compare_bounds(&self.end, &other.start).is_le()
            || comparator.compare_bounds(&other.end, &self.start).is_le()
    }

    /// True if no clustering can lie in it.
    pub fn is_empty(&self, comparator: &ClusteringComparator) -> bool {
        comparator.compare_bounds(&self.start, &self.end) != Ordering::Less
    }
}

/// What a read wants of each partition, in stored order whatever the direction of the read.
///
/// Invariant: slices ascend and do not overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusteringFilter {
    /// Wanted ranges; none at all means only the static row.
    pub slices: Vec<Slice>,
    /// Give rows from the last to the first.
    pub reversed: bool,
    /// Static and regular columns whose data is wanted; `None`: all of them. Whether a row lives is said rightly
    /// all the same, but what is given of other columns may be old, or not there. If single rows are asked for and
    /// no static column, so may be the static row.
    pub columns: Option<Arc<[ColumnId]>>,
    /// Of these of the wanted columns, only some elements are wanted; without paths no value at all, only times.
    pub elements: Option<Arc<[WantedElements]>>,
}

/// The elements that are wanted of a column of many cells; of any column: none, if only its times are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedElements {
    /// Which column.
    pub column: ColumnId,
    /// Paths of the cells whose values are wanted.
    pub paths: Vec<Bytes>,
}

impl ClusteringFilter {
    /// Every row, forwards.
    pub fn all() -> Self {
        Self {
            slices: vec![Slice::all()],
            reversed: false,
            columns: None,
            elements: None,
        }
    }

    /// True if the data of the column is wanted.
    #[inline]
    pub fn wants(&self, column: ColumnId) -> bool {
        self.columns
            .as_ref()
            .is_none_or(|columns| columns.contains(&column))
    }

    /// The only paths of a wanted column whose values are wanted; `None`: all of them.
    #[inline]
    pub fn paths_of(&self, column: ColumnId) -> Option<&[Bytes]> {
        let mut elements = self.elements.iter().flat_map(|elements| elements.iter());
        let found = elements.find(|wanted| wanted.column == column)?;
        Some(&found.paths)
    }

    /// True if values of the column are wanted, not only the times of its cells.
    #[inline]
    pub fn wants_values(&self, column: ColumnId) -> bool {
        self.wants(column) && self.paths_of(column).is_none_or(|paths| !paths.is_empty())
    }

    /// True if every row is wanted.
    pub fn selects_all(&self) -> bool {
        self.slices.len() == 1
            && self.slices[0].start.values.is_empty()
            && self.slices[0].end.values.is_empty()
    }
}
