//! The body of a partition: rows and range tombstone markers, in clustering order.

use std::cmp::Ordering;

use ilion_types::Partitioner;

use crate::{Bound, ClusteringComparator, DeletionTime, Row};

/// A row or a marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfiltered {
    /// A row.
    Row(Row),
    /// One end of a deleted range, or the boundary between two.
    Marker(Marker),
}

impl Unfiltered {
    /// This row or marker as a read in the other direction returns it: the sides of a marker are swapped.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Self::Marker(marker) => Self::Marker(Marker {
                bound: marker.bound,
                end: marker.start,
                start: marker.end,
            }),
            row @ Self::Row(_) => row,
        }
    }

    /// The newest timestamp of the data and deletions; [`crate::NO_TIMESTAMP`] if there are none.
    pub fn newest_micros(&self) -> i64 {
        match self {
            Self::Row(row) => row.newest_micros(),
            Self::Marker(marker) => {
                let sides = [marker.end, marker.start].into_iter().flatten();
                sides.fold(crate::NO_TIMESTAMP, |newest, side| {
                    newest.max(side.marked_at_micros)
                })
            }
        }
    }
}

/// The start or end of a range deletion, or the boundary between two.
///
/// Invariant, in forward order: a start kind has `start` set, an end kind `end`, a boundary kind both. Reversed cursors return
/// markers with swapped sides: in the order of iteration, `end` is always the deletion that is open before the marker, `start`
/// the one that is open after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Its position.
    pub bound: Bound,
    /// The deletion that ends here.
    pub end: Option<DeletionTime>,
    /// The deletion that starts here.
    pub start: Option<DeletionTime>,
}

impl ClusteringComparator {
    /// A number that is cheap to compare: a lower rank means a lower position. If clusterings are partition keys of another
    /// table, the rank is derived from the token of the key, which costs more to compute than a comparison. Zero for all other tables.
    pub fn rank(&self, unfiltered: &Unfiltered) -> u64 {
        if !self.begins_with_murmur3_keys() {
            return 0;
        }
        let (values, is_before) = match unfiltered {
            Unfiltered::Row(row) => (row.clustering.values(), true),
            Unfiltered::Marker(marker) => (&marker.bound.values, marker.bound.kind.is_before()),
        };
        match values.first() {
            None if is_before => 0,
            None => u64::MAX,
            Some(None) => 0,
            Some(Some(key)) => Partitioner::Murmur3.token(key).code(),
        }
    }

    /// Orders two unfiltereds of a partition in stored order.
    pub fn compare_unfiltered(&self, a: &Unfiltered, b: &Unfiltered) -> Ordering {
        use Unfiltered::{Marker, Row};
        match (a, b) {
            (Row(a), Row(b)) => self.compare(&a.clustering, &b.clustering),
            (Marker(a), Row(b)) => self.compare_bound_to_row(&a.bound, &b.clustering),
            (Row(a), Marker(b)) => self.compare_bound_to_row(&b.bound, &a.clustering).reverse(),
            (Marker(a), Marker(b)) => self.compare_bounds(&a.bound, &b.bound),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use ilion_schema::ClusteringOrder;
    use ilion_types::CqlType;

    use super::*;
    use crate::{BoundKind, Clustering, Values};

    #[test]
    fn a_lower_rank_comes_first_and_keys_stand_by_their_tokens() {
        for partitioner in [
            Partitioner::Murmur3,
            Partitioner::Random,
            Partitioner::ByteOrdered,
        ] {
            for order in [ClusteringOrder::Asc, ClusteringOrder::Desc] {
                let comparator = ClusteringComparator::new([
                    (CqlType::partition_keys(partitioner), order),
                    (CqlType::Text, ClusteringOrder::Asc),
                ]);
                let keys = ["", "a", "b", "ab", "key 1", "key 2", "key 3"].map(str::as_bytes);
                let keys = keys.map(|key| Some(Bytes::from_static(key)));
                let of_key = |key: &Option<Bytes>| -> Values { [key.clone()].into_iter().collect() };
                let mut all: Vec<Unfiltered> = Vec::new();
                for key in keys.iter().chain([&None]) {
                    for last in ["x", "y"] {
                        let values = [key.clone(), Some(Bytes::from_static(last.as_bytes()))];
                        all.push(Unfiltered::Row(Row::empty(Clustering::new(
                            values.into_iter().collect(),
                        ))));
                    }
                    for kind in [BoundKind::InclStart, BoundKind::ExclStart] {
                        all.push(marker(Bound::new(kind, of_key(key))));
                    }
                }
                all.push(marker(Bound::bottom()));
                all.push(marker(Bound::new(BoundKind::ExclStart, Values::new())));
                for a in &all {
                    for b in &all {
                        let whole = comparator.compare_unfiltered(a, b);
                        let ranks = comparator.rank(a).cmp(&comparator.rank(b));
                        assert_eq!(ranks.then(whole), whole, "{a:?} {b:?}");
                    }
                }
                for pair in [(0, 1), (1, 2), (3, 5)] {
                    let (Some(a), Some(b)) = (&keys[pair.0], &keys[pair.1]) else {
                        continue;
                    };
                    let tokens = partitioner.token(a).cmp(&partitioner.token(b));
                    let expected = match order {
                        ClusteringOrder::Asc => tokens,
                        ClusteringOrder::Desc => tokens.reverse(),
                    };
                    assert_eq!(comparator.compare_values(0, Some(a), Some(b)), expected);
                }
            }
        }
    }

    fn marker(bound: Bound) -> Unfiltered {
        Unfiltered::Marker(Marker {
            bound,
            end: None,
            start: Some(DeletionTime::new(1, 1)),
        })
    }
}
