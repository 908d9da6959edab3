//! The stored rows that a statement depends on.

use std::sync::Arc;

use ilion_env::cost::{self, Count};
use ilion_rows::{
    Clustering, ClusteringComparator, ClusteringFilter, DecoratedKey, NO_TIMESTAMP, ReadError, Row, Slice,
    Unfiltered,
};
use ilion_schema::{ColumnId, TableSchema};

use crate::context::Execution;
use crate::{Error, StoreError};

/// Whether the stored rows are read that a plan depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    Stored,
    /// Nothing is read: the written values are computed as far as that is possible without stored data.
    Nothing,
}

/// The rows that a statement changes in each of its partitions.
#[derive(Debug)]
pub(super) enum Rows {
    /// Only the static row.
    Static,
    /// These rows, in stored order.
    Each(Vec<Clustering>),
    /// All rows within these slices, for DELETE.
    Slices(Vec<Slice>),
}

/// The live static row and rows of a partition.
#[derive(Debug)]
pub(super) struct Current {
    comparator: ClusteringComparator,
    static_row: Option<Row>,
    rows: Vec<Row>,
    newest_micros: i64,
}

impl Current {
    /// Reads `rows` and the static row.
    pub(super) fn read(
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        rows: &Rows,
        execution: &Execution<'_>,
    ) -> Result<Self, Error> {
        let slices = match rows {
            Rows::Static => Vec::new(),
            Rows::Each(clusterings) => clusterings.iter().map(Slice::exactly).collect(),
            Rows::Slices(slices) => slices.clone(),
        };
        Self::read_slices(table, key, slices, usize::MAX, execution)
    }

    /// Reads the static row and at most `limit` live rows within slices, which ascend and do not overlap.
    pub(super) fn read_slices(
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        slices: Vec<Slice>,
        limit: usize,
        execution: &Execution<'_>,
    ) -> Result<Self, Error> {
        let consistency = execution.options.consistency;
        let failed = |error: ReadError| StoreError::Read(error).of_read(consistency);
        let now_secs = execution.ttl_now_secs();
        let filter = ClusteringFilter {
            slices,
            now_secs: Some(now_secs),
            ..ClusteringFilter::all()
        };
        let cursor = execution.store.read_partition(table, key, &filter);
        let mut cursor = cursor.map_err(|refused| refused.of_read(consistency))?;
        let mut current = Self {
            comparator: ClusteringComparator::of(table),
            static_row: None,
            rows: Vec::new(),
            newest_micros: NO_TIMESTAMP,
        };
        let Some(head) = cursor.next_partition().map_err(failed)? else {
            return Ok(current);
        };
        cost::add(Count::Partitions, 1);
        let of_static = head.static_row.as_ref().map(Row::newest_micros);
        current.newest_micros = head
            .deletion
            .marked_at_micros
            .max(of_static.unwrap_or(NO_TIMESTAMP));
        current.static_row = head.static_row.and_then(|row| live(row, now_secs, table));
        while current.rows.len() < limit {
            let Some(unfiltered) = cursor.next_unfiltered().map_err(failed)? else {
                break;
            };
            current.newest_micros = current.newest_micros.max(unfiltered.newest_micros());
            if let Unfiltered::Row(row) = unfiltered {
                current.rows.extend(live(row, now_secs, table));
            }
        }
        cost::add(Count::Rows, current.rows.len() as u64);
        Ok(current)
    }

    pub(super) fn static_row(&self) -> Option<&Row> {
        self.static_row.as_ref()
    }

    /// The newest timestamp of everything that was read, including deletions and dead data.
    pub(super) fn newest_micros(&self) -> i64 {
        self.newest_micros
    }

    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub(super) fn row(&self, clustering: &Clustering) -> Option<&Row> {
        self.rows
            .iter()
            .find(|row| self.comparator.compare(&row.clustering, clustering).is_eq())
    }

    /// Drops columns that are not wanted; rows stay.
    pub(super) fn keep_columns(&mut self, wanted: impl Fn(ColumnId) -> bool) {
        for row in self.static_row.iter_mut().chain(&mut self.rows) {
            row.columns.retain(|column| wanted(column.column));
        }
        self.static_row.take_if(|row| row.columns.is_empty());
    }
}

/// The live part of a row; `None` if nothing is live.
fn live(mut row: Row, now_secs: u32, table: &TableSchema) -> Option<Row> {
    row.keep_live(now_secs, table).then_some(row)
}
