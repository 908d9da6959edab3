//! The order of encoded rows and places.

use std::cmp::Ordering;

use bytes::Bytes;
use ilion_rows::Clustering;
use ilion_schema::{ClusteringOrder, TableSchema};
use ilion_types::{CqlType, Partitioner};

use crate::clustering_bytes::ValuesOf;

/// The partitioner's byte in the tail.
pub(super) fn order_byte(partitioner: Partitioner) -> u8 {
    match partitioner {
        Partitioner::Murmur3 => 1,
        Partitioner::Random => 2,
        Partitioner::ByteOrdered | Partitioner::Local | Partitioner::Ordered(_) => 3,
    }
}

/// Compares encoded clusterings with others.
pub(super) struct Clusterings(Vec<(CqlType, ClusteringOrder)>);

impl Clusterings {
    pub(super) fn of(table: &TableSchema) -> Self {
        Self(
            table
                .clustering()
                .map(|column| (column.ty.clone(), column.order))
                .collect(),
        )
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same order as `ClusteringComparator`.
    #[inline]
    pub(super) fn compare(&self, encoded: &[u8], clustering: &Clustering) -> Ordering {
        let values = ValuesOf::of(encoded).zip(clustering.values());
        for ((ty, order), (left, right)) in self.0.iter().zip(values) {
            let ordering = match (left, right.as_ref().map(Bytes::as_ref)) {
                (Some(left), Some(right)) => ty.compare(left, right),
                (left, right) => left.is_some().cmp(&right.is_some()),
            };
            let ordering = if *order == ClusteringOrder::Desc {
                ordering.reverse()
            } else {
                ordering
            };
            if ordering.is_ne() {
                return ordering;
            }
        }
        Ordering::Equal
    }
}
