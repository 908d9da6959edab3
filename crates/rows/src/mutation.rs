//! A change to one partition of one table, as the write path carries it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ilion_schema::TableSchema;

use crate::{Bound, Data, DecoratedKey, DeletionTime, NO_TIMESTAMP, Row};

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

/// Replaces the timestamps of mutations by `first_micros`, `first_micros + 1` and so on, in their order: equal ones stay equal. So the
/// mutations have the same effect on each other as before.
pub fn number_timestamps(mutations: &mut [Mutation], first_micros: i64) {
    let mut known = BTreeSet::new();
    for mutation in mutations.iter_mut() {
        mutation.update.each_timestamp(|micros| {
            known.insert(*micros);
        });
    }
    let numbered: BTreeMap<i64, i64> = known.into_iter().zip(first_micros..).collect();
    for mutation in mutations {
        mutation
            .update
            .each_timestamp(|micros| *micros = numbered[micros]);
    }
}

impl PartitionUpdate {
    /// Calls `change` with each timestamp of a cell, deletion or liveness.
    fn each_timestamp(&mut self, mut change: impl FnMut(&mut i64)) {
        let mut change = |micros: &mut i64| {
            if *micros != NO_TIMESTAMP {
                change(micros);
            }
        };
        let ranges = self.ranges.iter_mut().map(|range| &mut range.deletion);
        for deletion in self.deletion.iter_mut().chain(ranges) {
            change(&mut deletion.marked_at_micros);
        }
        for row in self.static_row.iter_mut().chain(&mut self.rows) {
            change(&mut row.liveness.timestamp_micros);
            change(&mut row.deletion.marked_at_micros);
            for entry in &mut row.columns {
                match &mut entry.data {
                    Data::Simple(cell) => change(&mut cell.timestamp_micros),
                    Data::Complex(complex) => {
                        change(&mut complex.deletion.marked_at_micros);
                        for (_, cell) in &mut complex.cells {
                            change(&mut cell.timestamp_micros);
                        }
                    }
                }
            }
        }
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
