//! A change to one partition of one table, as the write path carries it.

use std::sync::Arc;

use ilion_schema::TableSchema;

use crate::{Bound, DecoratedKey, DeletionTime, Row};

/// A change to one partition.
#[derive(Clone, Debug)]
pub struct Mutation {
    /// The schema of the table when the statement was bound.
    pub table: Arc<TableSchema>,
    /// The partition.
    pub key: DecoratedKey,
    /// What changes.
    pub update: PartitionUpdate,
}

/// What changes inside a partition.
/// Invariant: `rows` ascend by clustering, each clustering once. No row has data that its own deletion covers ([`Row::merge`]
/// maintains this). The start of each range is before its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartitionUpdate {
    /// Partition deletion.
    pub deletion: Option<DeletionTime>,
    /// Static row.
    pub static_row: Option<Row>,
    /// Rows by clustering.
    pub rows: Vec<Row>,
    /// Deleted ranges, in any order; they may overlap.
    pub ranges: Vec<RangeTombstone>,
}

/// A deleted range of clusterings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeTombstone {
    /// The start, of a start kind.
    pub start: Bound,
    /// The end, of an end kind.
    pub end: Bound,
    /// The deletion.
    pub deletion: DeletionTime,
}
