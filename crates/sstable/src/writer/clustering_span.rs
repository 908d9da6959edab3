//! From where to where the unfiltereds of one partition reach.

use ilion_rows::{Bound, BoundKind, Clustering, ClusteringComparator, Slice, Unfiltered, Values};

/// The first and the last unfiltered of the partition at hand.
#[derive(Debug)]
pub(crate) struct ClusteringSpan {
    comparator: ClusteringComparator,
    first: Option<Bound>,
    /// Of the last one, in memory that is used again.
    last_values: Values,
    /// Nothing if the last one is a row.
    last_kind: Option<BoundKind>,
}

impl ClusteringSpan {
    pub(crate) fn new(comparator: ClusteringComparator) -> Self {
        Self {
            comparator,
            first: None,
            last_values: Values::new(),
            last_kind: None,
        }
    }

    pub(crate) fn begin_partition(&mut self) {
        self.first = None;
    }

    /// True if nothing was added since the partition began.
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    #[inline]
    pub(crate) fn add(&mut self, unfiltered: &Unfiltered) {
        debug_assert!(self.ascends(unfiltered), "unfiltereds come in clustering order");
        self.add_unchecked(unfiltered);
    }

    /// For those of a file, which may be in any order.
    #[inline]
    pub(crate) fn add_unchecked(&mut self, unfiltered: &Unfiltered) {
        let (values, kind) = clustering_of(unfiltered);
        let first = || Bound::new(kind.unwrap_or(BoundKind::InclStart), values.clone());
        self.first.get_or_insert_with(first);
        self.last_values.clone_from(values);
        self.last_kind = kind;
    }

    /// True if it stands after the last one. Too slow for every row of a release build.
    fn ascends(&self, unfiltered: &Unfiltered) -> bool {
        if self.is_empty() {
            return true;
        }
        let (values, kind) = clustering_of(unfiltered);
        let comparator = &self.comparator;
        let clustering = |values: &Values| Clustering::new(values.clone());
        let bound = |kind: BoundKind, values: &Values| Bound::new(kind, values.clone());
        let last = &self.last_values;
        let order = match (self.last_kind, kind) {
            (None, None) => comparator.compare(&clustering(last), &clustering(values)),
            (Some(before), None) => {
                comparator.compare_bound_to_row(&bound(before, last), &clustering(values))
            }
            (None, Some(kind)) => comparator
                .compare_bound_to_row(&bound(kind, values), &clustering(last))
                .reverse(),
            (Some(before), Some(kind)) => {
                comparator.compare_bounds(&bound(before, last), &bound(kind, values))
            }
        };
        order.is_lt()
    }

    /// The last one: its values, and its kind if it is a marker.
    pub(super) fn last(&self) -> (&Values, Option<BoundKind>) {
        (&self.last_values, self.last_kind)
    }

    /// The slice around all of them, if there are any. Its bounds face the wrong way if a deleted range is open at an
    /// end.
    pub(crate) fn finish_partition(&mut self) -> Option<Slice> {
        let start = self.first.take()?;
        let kind = self.last_kind.unwrap_or(BoundKind::InclEnd);
        Some(Slice {
            start,
            end: Bound::new(kind, self.last_values.clone()),
        })
    }
}

/// Its values, and the kind of a marker.
fn clustering_of(unfiltered: &Unfiltered) -> (&Values, Option<BoundKind>) {
    match unfiltered {
        Unfiltered::Row(row) => (row.clustering.values(), None),
        Unfiltered::Marker(marker) => (&marker.bound.values, Some(marker.bound.kind)),
    }
}
