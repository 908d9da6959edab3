//! Which values of a row are wanted.
//!
//! Of a cell whose value is not, all the rest is read: whether a row lives depends on the times of all its cells.

use bytes::Bytes;
use ilion_rows::ClusteringFilter;
use ilion_schema::ColumnId;

use super::columns::FileColumn;

/// What is given of columns that are not wanted, so that it is known whether a row lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwanted {
    /// Times of all their cells.
    Times,
    /// Of cells that live for ever, those of the newest may stand for all, which is never older than what is left out. A row that,
    /// merged with those of other sources, has something left and does not live, has to be read again with all times.
    Newest,
}

/// The values that a filter wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'f> {
    /// Nothing: everything.
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

    /// Columns of which something is wanted; `None`: all.
    pub(super) fn columns(self) -> Option<&'f [ColumnId]> {
        self.filter?.columns.as_deref()
    }

    /// What is given of the others.
    pub(super) fn unwanted(self) -> Unwanted {
        self.unwanted
    }

    /// True if a value of the column is wanted. Nobody wants what was dropped; counts are needed to be summed up.
    #[inline]
    pub(super) fn has(self, column: &FileColumn) -> bool {
        match (self.filter, column.column) {
            (_, None) => false,
            (None, _) => true,
            (Some(filter), Some(id)) => filter.wants_values(id) || column.is_counter,
        }
    }

    /// True if everything of the column is wanted.
    pub(super) fn has_all_of(self, column: &FileColumn) -> bool {
        self.has(column) && (!column.is_complex || self.paths_of(column).is_none())
    }

    /// True if the value with this path is wanted of a column of which [`Self::has`] holds.
    #[inline]
    pub(super) fn has_element(self, column: &FileColumn, path: &Bytes) -> bool {
        self.paths_of(column).is_none_or(|paths| paths.contains(path))
    }

    #[inline]
    fn paths_of(self, column: &FileColumn) -> Option<&'f [Bytes]> {
        self.filter?.paths_of(column.column?)
    }
}
