//! From where to where the unfiltereds of one partition reach.

use bytes::Bytes;
use ilion_rows::{Bound, BoundKind, Clustering, ClusteringComparator, Slice, Unfiltered, Values};

/// The first and the last unfiltered of the partition at hand.
#[derive(Debug)]
pub(crate) struct ClusteringSpan {
    comparator: ClusteringComparator,
    first: Option<Bound>,
    /// The first one is the last one as well.
    is_one: bool,
    /// Of the last one, if it is not the first.
    last_values: Copied,
    /// Nothing if the last one is a row.
    last_kind: Option<BoundKind>,
}

/// Values in memory that is used again: counting references for each row would take longer.
#[derive(Debug, Default)]
struct Copied {
    bytes: Vec<u8>,
    /// Nothing: a null.
    lens: Vec<Option<usize>>,
}

impl Copied {
    #[inline]
    fn take(&mut self, values: &Values) {
        self.bytes.clear();
        self.lens.clear();
        for value in values {
            self.bytes.extend_from_slice(value.as_deref().unwrap_or_default());
            self.lens.push(value.as_ref().map(Bytes::len));
        }
    }

    fn values(&self) -> Values {
        let mut rest = &self.bytes[..];
        let mut value = |len: &Option<usize>| {
            let (value, tail) = rest.split_at((*len)?);
            rest = tail;
            Some(Bytes::copy_from_slice(value))
        };
        self.lens.iter().map(&mut value).collect()
    }
}

impl ClusteringSpan {
    pub(crate) fn new(comparator: ClusteringComparator) -> Self {
        Self {
            comparator,
            first: None,
            is_one: false,
            last_values: Copied::default(),
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
        self.last_kind = kind;
        self.is_one = self.first.is_none();
        if self.is_one {
            self.first = Some(Bound::new(kind.unwrap_or(BoundKind::InclStart), values.clone()));
        } else {
            self.last_values.take(values);
        }
    }

    /// True if it stands after the last one. Too slow for every row of a release build.
    fn ascends(&self, unfiltered: &Unfiltered) -> bool {
        if self.is_empty() {
            return true;
        }
        let (values, kind) = clustering_of(unfiltered);
        let (last, last_kind) = self.last();
        let comparator = &self.comparator;
        let clustering = |values: &Values| Clustering::new(values.clone());
        let bound = |kind: BoundKind, values: &Values| Bound::new(kind, values.clone());
        let order = match (last_kind, kind) {
            (None, None) => comparator.compare(&clustering(&last), &clustering(values)),
            (Some(before), None) => {
                comparator.compare_bound_to_row(&bound(before, &last), &clustering(values))
            }
            (None, Some(kind)) => comparator
                .compare_bound_to_row(&bound(kind, values), &clustering(&last))
                .reverse(),
            (Some(before), Some(kind)) => {
                comparator.compare_bounds(&bound(before, &last), &bound(kind, values))
            }
        };
        order.is_lt()
    }

    /// The last one, if there is any: its values, and its kind if it is a marker.
    pub(super) fn last(&self) -> (Values, Option<BoundKind>) {
        let values = match &self.first {
            Some(first) if self.is_one => first.values.clone(),
            _ => self.last_values.values(),
        };
        (values, self.last_kind)
    }

    /// The slice around all of them, if there are any. Its bounds face the wrong way if a deleted range is open at an
    /// end.
    pub(crate) fn finish_partition(&mut self) -> Option<Slice> {
        let (values, kind) = self.last();
        let start = self.first.take()?;
        let end = Bound::new(kind.unwrap_or(BoundKind::InclEnd), values);
        Some(Slice { start, end })
    }
}

/// Its values, and the kind of a marker.
fn clustering_of(unfiltered: &Unfiltered) -> (&Values, Option<BoundKind>) {
    match unfiltered {
        Unfiltered::Row(row) => (row.clustering.values(), None),
        Unfiltered::Marker(marker) => (&marker.bound.values, Some(marker.bound.kind)),
    }
}
