//! Rows and their columns.
//!
//! Invariant: `columns` ascends by [`ColumnId`], with one entry for each column; the cells of a complex column ascend by path in
//! the order of the column's type (list: time of the UUID; set, map: element or key order; user type: field index).

use std::borrow::Cow;

use bytes::Bytes;
use ilion_schema::ColumnId;

use crate::{Cell, CellRef, Clustering, DeletionTime, Liveness};

/// A row, static or regular. A static row has an empty clustering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its position in the partition.
    pub clustering: Clustering,
    /// Primary key liveness.
    pub liveness: Liveness,
    /// Row deletion.
    pub deletion: DeletionTime,
    /// Columns by id.
    pub columns: Vec<ColumnData>,
}

/// The data of one column of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnData {
    /// Which column.
    pub column: ColumnId,
    /// Its cell or cells.
    pub data: Data,
}

/// The data of a column: one cell or many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// A simple column.
    Simple(Cell),
    /// An unfrozen collection or user type.
    Complex(Box<ComplexColumn>),
}

/// An unfrozen collection or user type: its deletion, and its cells by path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComplexColumn {
    /// Deletion of all older cells of the column.
    pub deletion: DeletionTime,
    /// Path and cell, ascending by path. List: 16-byte time UUID; set: element; map: key; user type: u16 field index.
    pub cells: Vec<(Bytes, Cell)>,
}

/// A change of one row of a memtable by one write.
#[derive(Clone, Copy, Debug)]
pub struct RowChange<'r> {
    /// The old row in this memtable; `None` if the memtable did not have it (older memtables or SSTables may).
    pub before: Option<Before<'r>>,
    /// The new row; empty if a partition deletion removed it.
    pub after: &'r Row,
}

/// A row of a memtable before a write.
#[derive(Clone, Copy, Debug)]
pub enum Before<'r> {
    /// The row, possibly with its observed columns only.
    Row(&'r Row),
    /// The observed cells of a row that has only simple columns.
    Cells(&'r [(ColumnId, CellRef<'r>)]),
}

impl<'r> RowChange<'r> {
    /// The old cell of a simple column; `None` if it did not exist.
    #[inline]
    pub fn cell_before(&self, column: ColumnId) -> Option<CellRef<'r>> {
        match self.before? {
            Before::Row(row) => row.cell(column),
            Before::Cells(cells) => {
                let found = cells.iter().find(|(known, _)| *known == column);
                found.map(|(_, cell)| *cell)
            }
        }
    }

    /// The old row, possibly with its observed columns only; `None` if the memtable did not have it.
    pub fn row_before(&self) -> Option<Cow<'r, Row>> {
        match self.before? {
            Before::Row(row) => Some(Cow::Borrowed(row)),
            Before::Cells(cells) => {
                let columns = cells.iter().map(|(column, cell)| ColumnData {
                    column: *column,
                    data: Data::Simple(cell.to_cell()),
                });
                Some(Cow::Owned(Row {
                    columns: columns.collect(),
                    ..Row::empty(self.after.clustering.clone())
                }))
            }
        }
    }
}

impl Data {
    fn newest_micros(&self) -> i64 {
        match self {
            Self::Simple(cell) => cell.timestamp_micros,
            Self::Complex(complex) => {
                let cells = complex.cells.iter().map(|(_, cell)| cell.timestamp_micros);
                cells.fold(complex.deletion.marked_at_micros, i64::max)
            }
        }
    }
}

impl Row {
    /// A row without data.
    pub fn empty(clustering: Clustering) -> Self {
        Self {
            clustering,
            liveness: Liveness::NONE,
            deletion: DeletionTime::LIVE,
            columns: Vec::new(),
        }
    }

    /// A row that is not deleted.
    #[inline]
    pub fn live(clustering: Clustering, liveness: Liveness, columns: Vec<ColumnData>) -> Self {
        Self {
            clustering,
            liveness,
            deletion: DeletionTime::LIVE,
            columns,
        }
    }

    /// The data of `column`.
    #[inline]
    pub fn column(&self, column: ColumnId) -> Option<&Data> {
        self.columns
            .binary_search_by_key(&column, |entry| entry.column)
            .ok()
            .map(|index| &self.columns[index].data)
    }

    /// The cell of a simple column.
    #[inline]
    pub fn cell(&self, column: ColumnId) -> Option<CellRef<'_>> {
        match self.column(column)? {
            Data::Simple(cell) => Some(cell.into()),
            Data::Complex(_) => None,
        }
    }

    /// The newest timestamp of the row's liveness, cells and deletions; [`crate::NO_TIMESTAMP`] if the row is empty.
    pub fn newest_micros(&self) -> i64 {
        let of_columns = self.columns.iter().map(|entry| entry.data.newest_micros()).max();
        let of_row = self.liveness.timestamp_micros.max(self.deletion.marked_at_micros);
        of_columns.map_or(of_row, |newest| newest.max(of_row))
    }

    /// True if the row is a deletion and has nothing else.
    pub fn is_deletion(&self) -> bool {
        !self.deletion.is_live() && self.liveness.is_none() && self.columns.is_empty()
    }

    /// True if the row has no liveness, no deletion and no columns.
    pub fn is_empty(&self) -> bool {
        self.liveness.is_none() && self.deletion.is_live() && self.columns.is_empty()
    }
}
