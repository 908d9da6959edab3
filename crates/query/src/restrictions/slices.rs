//! From clustering restrictions to slices in stored order. Pure.
//!
//! A slice of tuples over columns of mixed direction splits into several: with `a` ascending and `b` descending,
//! `(a, b) > (1, 2)` is `a = 1 AND b > 2` (stored first) and `a > 1`.

use std::cmp::Ordering;

use ilion_rows::{Bound, BoundKind, Clustering, ClusteringComparator, Slice, Values};
use ilion_schema::{ClusteringOrder, Column};

/// The side of an edge on which a slice lies, in the order of the types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Above,
    Below,
}

/// Values of an end of a slice.
#[derive(Clone, Debug)]
pub(super) struct EdgeValues {
    pub side: Side,
    pub values: Values,
    pub is_inclusive: bool,
}

/// Prefixes in stored order, each once.
pub(super) fn sort_prefixes(comparator: &ClusteringComparator, prefixes: &mut Vec<Clustering>) {
    if prefixes.len() > 1 {
        prefixes.sort_by(|a, b| comparator.compare(a, b));
        prefixes.dedup_by(|a, b| comparator.compare(a, b).is_eq());
    }
}

/// Every prefix, extended by each of `values`.
pub(super) fn extend_prefixes(prefixes: &[Clustering], values: &[Values]) -> Vec<Clustering> {
    let mut out = Vec::with_capacity(prefixes.len().saturating_mul(values.len()));
    for prefix in prefixes {
        for more in values {
            out.push(Clustering::new(joined(prefix.values(), more)));
        }
    }
    out
}

fn joined(prefix: &Values, more: &[Option<bytes::Bytes>]) -> Values {
    prefix.iter().chain(more).cloned().collect()
}

/// The slices below `prefix` and within all `edges`. `columns` are those that the edges restrict.
pub(super) fn slices_below(
    comparator: &ClusteringComparator,
    prefix: &Values,
    columns: &[Column],
    edges: &[EdgeValues],
) -> Vec<Slice> {
    let mut slices = vec![Slice::exactly(&Clustering::new(prefix.clone()))];
    for edge in edges {
        slices = intersect(
            comparator,
            &slices,
            &edge_slices(comparator, prefix, columns, edge),
        );
    }
    slices
}

/// The slices on one side of an edge.
fn edge_slices(
    comparator: &ClusteringComparator,
    prefix: &Values,
    columns: &[Column],
    edge: &EdgeValues,
) -> Vec<Slice> {
    let count = edge.values.len().min(columns.len());
    let mut slices = Vec::new();
    let mut from = 0;
    while from < count {
        let order = columns[from].order;
        let to = (from..count)
            .find(|index| columns[*index].order != order)
            .unwrap_or(count);
        let is_inclusive = edge.is_inclusive && to == count;
        let head = joined(prefix, &edge.values[..from]);
        let whole = joined(prefix, &edge.values[..to]);
        slices.push(run_slice(head, whole, order, edge.side, is_inclusive));
        from = to;
    }
    slices.sort_by(|a, b| comparator.compare_bounds(&a.start, &b.start));
    slices
}

/// True if the clusterings on this side of an edge are stored behind it.
pub(super) fn is_stored_above(side: Side, order: ClusteringOrder) -> bool {
    (side == Side::Above) == (order == ClusteringOrder::Asc)
}

/// The slice of the clusterings that begin with `head` and lie on one side of `whole`. Requires: all columns that `whole` adds to `head`
/// have the same direction.
fn run_slice(head: Values, whole: Values, order: ClusteringOrder, side: Side, is_inclusive: bool) -> Slice {
    if is_stored_above(side, order) {
        let kind = if is_inclusive {
            BoundKind::InclStart
        } else {
            BoundKind::ExclStart
        };
        Slice {
            start: Bound::new(kind, whole),
            end: Bound::new(BoundKind::InclEnd, head),
        }
    } else {
        let kind = if is_inclusive {
            BoundKind::InclEnd
        } else {
            BoundKind::ExclEnd
        };
        Slice {
            start: Bound::new(BoundKind::InclStart, head),
            end: Bound::new(kind, whole),
        }
    }
}

/// The intersection. Requires: each list ascends and does not overlap itself.
fn intersect(comparator: &ClusteringComparator, a: &[Slice], b: &[Slice]) -> Vec<Slice> {
    let (mut left, mut right) = (a.iter().peekable(), b.iter().peekable());
    let mut out = Vec::new();
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        let start = match comparator.compare_bounds(&a.start, &b.start) {
            Ordering::Less => &b.start,
            _ => &a.start,
        };
        let ends_first = comparator.compare_bounds(&a.end, &b.end);
        let end = match ends_first {
            Ordering::Greater => &b.end,
            _ => &a.end,
        };
        let slice = Slice {
            start: start.clone(),
            end: end.clone(),
        };
        if !slice.is_empty(comparator) {
            out.push(slice);
        }
        if ends_first.is_gt() {
            right.next();
        } else {
            left.next();
        }
    }
    out
}
