//! Which clusterings a read wants.

use std::cmp::Ordering;

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
}

impl ClusteringFilter {
    /// Every row, forwards.
    pub fn all() -> Self {
        Self {
            slices: vec![Slice::all()],
            reversed: false,
        }
    }

    /// True if every row is wanted.
    pub fn selects_all(&self) -> bool {
        self.slices.len() == 1
            && self.slices[0].start.values.is_empty()
            && self.slices[0].end.values.is_empty()
    }
}
