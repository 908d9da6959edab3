//! The selected values of a row.
//!
//! If a value is not selected, the other parts of its cell are still read: whether a row is live depends on the times of all its
//! cells.

use bytes::Bytes;
use ilion_rows::ClusteringFilter;
use ilion_schema::ColumnId;

use super::columns::FileColumn;

/// Which cells of columns that are not selected are returned, so that the reader knows whether the row is live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwanted {
    /// All cells, with their times.
    Times,
    /// One cell in place of all cells that never expire and are no tombstones: the newest of them. If the row, merged with other
    /// sources, is neither empty nor live, it must be read again with all times.
    Newest,
}

/// The values that a filter selects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'f> {
    /// `None` selects every value.
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

    /// Which cells of the other columns are returned.
    pub(super) fn unwanted(self) -> Unwanted {
        self.unwanted
    }

    /// True if a value of the column is selected. False for dropped columns. True for all counters, since counts must be added.
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
