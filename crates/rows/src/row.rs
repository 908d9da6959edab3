//! Rows and their columns.
//!
//! Invariant: `columns` ascends by [`ColumnId`], one entry a column; the cells of a complex column ascend by path in the
//! order of the column's type (list: time of the UUID; set, map: element or key order; user type: field index).

use bytes::Bytes;
use ilion_schema::ColumnId;

use crate::{Cell, Clustering, DeletionTime, Liveness};

/// A row, static or regular. A static row has an empty clustering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Where it is in the partition.
    pub clustering: Clustering,
    /// Primary key liveness.
    pub liveness: Liveness,
    /// Row deletion.
    pub deletion: DeletionTime,
    /// Columns by id.
    pub columns: Vec<ColumnData>,
}

/// What one column of a row holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnData {
    /// Which column.
    pub column: ColumnId,
    /// Its data.
    pub data: Data,
}

/// One cell or many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// A simple column.
    Simple(Cell),
    /// An unfrozen collection or user type.
    Complex(Box<ComplexColumn>),
}

/// An unfrozen collection or user type: a deletion of what was before, and cells by path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComplexColumn {
    /// Deletion of the whole collection.
    pub deletion: DeletionTime,
    /// Path and cell, ascending by path. List: 16-byte time UUID; set: element; map: key; user type: u16 field index.
    pub cells: Vec<(Bytes, Cell)>,
}

/// How one row of a memtable changed by one write.
#[derive(Clone, Copy, Debug)]
pub struct RowChange<'r> {
    /// The row in this memtable before, perhaps only the columns that are looked at; nothing if it was not here (it may be in an
    /// older source).
    pub before: Option<&'r Row>,
    /// The row after; empty if a deletion of the partition removed it.
    pub after: &'r Row,
}

impl Row {
    /// A row with nothing in it.
    pub fn empty(clustering: Clustering) -> Self {
        Self {
            clustering,
            liveness: Liveness::NONE,
            deletion: DeletionTime::LIVE,
            columns: Vec::new(),
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

    /// True if it says nothing at all.
    pub fn is_empty(&self) -> bool {
        self.liveness.is_none() && self.deletion.is_live() && self.columns.is_empty()
    }
}
