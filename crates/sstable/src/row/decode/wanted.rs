//! The selected values of a row.
//!
//! All other parts of a cell are read even if its value is not selected: whether a row is live depends on the times of all its
//! cells.

use bytes::Bytes;
use ilion_rows::ClusteringFilter;
use ilion_schema::ColumnId;

use super::columns::FileColumn;

/// What is returned of columns that are not selected, so that the reader knows whether the row is live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwanted {
    /// The times of all their cells.
    Times,
    /// The newest cell without an end stands for all cells that have no end; it is never older than those left out. If such a
    /// row, merged with other sources, is not empty and not live, it must be read again with all times.
    Newest,
}

/// The values that a filter selects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'f> {
    /// `None` selects everything.
    filter: Option<&'f ClusteringFilter>,
    unwanted: Unwanted,
}

impl<'f> Wanted<'f> {
    pub(crate) const ALL: Self = Self {
        filter: None,
        unwanted: Unwanted::Times,
    };

    pub(crate) fn of(filter: &'f ClusteringFilter, unwanted: Unwanted) -> Self {
        Self {
            filter: filter.columns.is_some().then_some(filter),
            unwanted,
        }
    }

    #[inline]
    pub(super) fn is_all(self) -> bool {
        self.filter.is_none()
    }

    /// The selected columns; `None` if all are.
    pub(super) fn columns(self) -> Option<&'f [ColumnId]> {
        self.filter?.columns.as_deref()
    }

    /// What is returned of the other columns.
    pub(super) fn unwanted(self) -> Unwanted {
        self.unwanted
    }

    /// True if a value of the column is selected. Dropped columns never are; counters always are, since counts must be added.
    #[inline]
    pub(super) fn has(self, column: &FileColumn) -> bool {
        match (self.filter, column.column) {
            (_, None) => false,
            (None, _) => true,
            (Some(filter), Some(id)) => filter.wants_values(id) || column.is_counter,
        }
    }

    /// True if all values of the column are selected.
    pub(super) fn has_all_of(self, column: &FileColumn) -> bool {
        self.has(column) && (!column.is_complex || self.paths_of(column).is_none())
    }

    /// True if the value with this path is selected. Requires: [`Self::has`] is true for the column.
    #[inline]
    pub(super) fn has_element(self, column: &FileColumn, path: &Bytes) -> bool {
        self.paths_of(column).is_none_or(|paths| paths.contains(path))
    }

    #[inline]
    fn paths_of(self, column: &FileColumn) -> Option<&'f [Bytes]> {
        self.filter?.paths_of(column.column?)
    }
}
