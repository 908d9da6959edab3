//! A change to one partition of one table, as the write path carries it.

use std::sync::Arc;

use ilion_schema::TableSchema;

use crate::{Bound, Data, DecoratedKey, DeletionTime, Row};

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

impl Mutation {
    /// Removes cells that are not newer than the drop of their column, if a column of that name was added again. Files and the commit log
    /// have the names of columns, so such cells are removed when they are read from there.
    pub fn remove_dropped(&mut self) {
        let table = &self.table;
        if table.dropped.is_empty() {
            return;
        }
        let update = &mut self.update;
        for row in update.rows.iter_mut().chain(&mut update.static_row) {
            row.columns.retain_mut(|entry| {
                let column = table.column(entry.column);
                let dropped = column.and_then(|column| table.dropped.get(&column.name));
                dropped.is_none_or(|dropped| entry.data.keep_newer(dropped.dropped_micros))
            });
        }
        update.rows.retain(|row| !row.is_empty());
        update.static_row.take_if(|row| row.is_empty());
    }
}

impl Data {
    /// Removes cells and a deletion whose timestamps are at or below `micros`. Returns true if a cell or a deletion is left.
    fn keep_newer(&mut self, micros: i64) -> bool {
        match self {
            Self::Simple(cell) => cell.timestamp_micros > micros,
            Self::Complex(complex) => {
                if complex.deletion.marked_at_micros <= micros {
                    complex.deletion = DeletionTime::LIVE;
                }
                complex.cells.retain(|(_, cell)| cell.timestamp_micros > micros);
                !complex.deletion.is_live() || !complex.cells.is_empty()
            }
        }
    }
}
