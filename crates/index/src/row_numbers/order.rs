//! How rows of the file compare with a place.

use std::cmp::Ordering;

use bytes::Bytes;
use ilion_rows::Clustering;
use ilion_schema::{ClusteringOrder, TableSchema};
use ilion_types::{CqlType, Partitioner, Token};

use super::block::ValuesOf;

const SIGN: u64 = 1 << 63;

/// The partitioner as the tail names it.
pub(super) fn order_byte(partitioner: Partitioner) -> u8 {
    match partitioner {
        Partitioner::Murmur3 => 1,
        Partitioner::Random => 2,
        Partitioner::ByteOrdered | Partitioner::Local | Partitioner::Ordered(_) => 3,
    }
}

/// Eight bytes that order as the tokens do; tokens that differ may have the same.
#[inline]
pub(crate) fn code_of(token: &Token) -> u64 {
    match token {
        Token::Murmur3(hash) => hash.cast_unsigned() ^ SIGN,
        Token::Random(random) => {
            // From -1 to 2^127: without the low 63 bits of what is one more.
            let plus_one = random.value().map_or(0, |value| value + 1);
            u64::try_from(plus_one >> 63).unwrap_or(u64::MAX)
        }
        Token::Bytes(bytes) | Token::Comparable(bytes) => {
            let mut padded = [0; 8];
            let len = bytes.len().min(8);
            padded[..len].copy_from_slice(&bytes[..len]);
            u64::from_be_bytes(padded)
        }
    }
}

/// The order of clusterings, of which one is encoded.
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

    /// Compares as `ClusteringComparator` does.
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
