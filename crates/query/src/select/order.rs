//! ORDER BY: forwards, backwards, or sorted in memory over the partitions of an IN.
//!
//! Compat: `SelectStatement.RawStatement` of Cassandra 5.0.

use std::cmp::Ordering;

use bytes::Bytes;
use ilion_codec::Rope;
use ilion_cql::ast::{self, Direction};
use ilion_schema::{ClusteringOrder, Column, ColumnKind, TableSchema};

use super::RowView;
use super::rows_out::RowsOut;
use crate::Error;
use crate::restrictions::Restrictions;
use crate::restrictions::relation::existing;

/// The order of rows.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// True if each partition is read from its last row to its first.
    pub is_reversed: bool,
    /// The columns by which rows of several partitions are sorted.
    pub sort_by: Vec<(Column, Direction)>,
}

impl Order {
    /// Resolves ORDER BY.
    pub fn plan(
        orderings: &[ast::Ordering],
        table: &TableSchema,
        restrictions: &Restrictions,
    ) -> Result<Self, Error> {
        if orderings.is_empty() {
            return Ok(Self::default());
        }
        if restrictions.uses_index() {
            return Err(Error::invalid(
                "ORDER BY with 2ndary indexes is not supported, except for ANN queries.",
            ));
        }
        if !restrictions.is_by_key() {
            return Err(Error::invalid(
                "ORDER BY is only supported when the partition key is restricted by an EQ or an IN.",
            ));
        }
        let mut columns: Vec<(&Column, Direction)> = Vec::with_capacity(orderings.len());
        for ordering in orderings {
            let column = existing(table, &ordering.column)?;
            // Compat: if a column is named twice, its last direction counts.
            match columns.iter_mut().find(|(known, _)| known.id == column.id) {
                Some((_, direction)) => *direction = ordering.direction,
                None => columns.push((column, ordering.direction)),
            }
        }
        let is_reversed = is_reversed(&columns, table, restrictions)?;
        let mut sort_by = Vec::new();
        if restrictions.has_key_in() {
            sort_by = columns
                .into_iter()
                .map(|(column, direction)| (column.clone(), direction))
                .collect();
        }
        Ok(Self { is_reversed, sort_by })
    }

    /// True if rows are sorted in memory.
    pub fn is_sorting(&self) -> bool {
        !self.sort_by.is_empty()
    }

    /// The sort keys of a row.
    pub fn keys(&self, row: RowView<'_>) -> Vec<Option<Bytes>> {
        self.sort_by.iter().map(|(column, _)| row.value(column)).collect()
    }

    fn compare(&self, a: &[Option<Bytes>], b: &[Option<Bytes>]) -> Ordering {
        for ((column, direction), (a, b)) in self.sort_by.iter().zip(a.iter().zip(b)) {
            let order = match (a, b, direction) {
                (Some(a), Some(b), Direction::Ascending) => column.ty.compare(a, b),
                (Some(a), Some(b), Direction::Descending) => column.ty.compare(b, a),
                // Compat: a partition with only static values comes first in stored order, in any direction.
                (a, b, _) if self.is_reversed => b.is_some().cmp(&a.is_some()),
                (a, b, _) => a.is_some().cmp(&b.is_some()),
            };
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    }
}

fn is_reversed(
    columns: &[(&Column, Direction)],
    table: &TableSchema,
    restrictions: &Restrictions,
) -> Result<bool, Error> {
    let mut clustering = table.clustering();
    let mut reversed = None;
    for (column, direction) in columns {
        if column.kind != ColumnKind::Clustering {
            return Err(Error::invalid(format!(
                "Order by is currently only supported on the clustered columns of the PRIMARY KEY, got {}",
                column.name
            )));
        }
        while let Some(next) = clustering.next().filter(|next| next.id != column.id) {
            if !restrictions.is_equal_on(next) {
                return Err(Error::invalid(
                    "Order by currently only supports the ordering of columns following their declared order in the \
                     PRIMARY KEY",
                ));
            }
        }
        let is_stored = match column.order {
            ClusteringOrder::Asc => *direction == Direction::Ascending,
            ClusteringOrder::Desc => *direction == Direction::Descending,
        };
        if reversed.is_some_and(|known: bool| known == is_stored) {
            return Err(Error::invalid("Unsupported order by relation"));
        }
        reversed = Some(!is_stored);
    }
    Ok(reversed.unwrap_or(false))
}

/// Collects rows and returns them in order.
pub(super) struct Sink<'p> {
    order: &'p Order,
    pub out: RowsOut,
    sorted: Vec<(Vec<Option<Bytes>>, Rope)>,
}

impl<'p> Sink<'p> {
    pub fn new(order: &'p Order) -> Self {
        Self {
            order,
            out: RowsOut::default(),
            sorted: Vec::new(),
        }
    }

    /// Records that a row with these sort keys was appended.
    pub fn took(&mut self, keys: impl FnOnce() -> Vec<Option<Bytes>>) {
        if self.order.is_sorting() {
            self.sorted.push((keys(), std::mem::take(&mut self.out.cells)));
        }
    }

    /// The rows in order, at most `limit` of them.
    pub fn finish(mut self, limit: Option<u32>) -> RowsOut {
        if !self.order.is_sorting() {
            return self.out;
        }
        self.sorted.sort_by(|a, b| self.order.compare(&a.0, &b.0));
        let count = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        self.sorted.truncate(count);
        let mut out = RowsOut::default();
        for (_, cells) in self.sorted {
            out.cells.append(&cells);
            out.end_row();
        }
        out
    }
}
