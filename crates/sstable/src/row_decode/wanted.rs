//! Which values of a row are wanted.
//!
//! Of a cell whose value is not, all the rest is read: whether a row lives depends on the times of all its cells.

use bytes::Bytes;
use ilion_rows::ClusteringFilter;

use super::columns::FileColumn;

/// The values that a filter wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'f>(Option<&'f ClusteringFilter>);

impl<'f> Wanted<'f> {
    pub(crate) const ALL: Self = Self(None);

    pub(crate) fn of(filter: &'f ClusteringFilter) -> Self {
        Self(filter.columns.is_some().then_some(filter))
    }

    #[inline]
    pub(super) fn is_all(self) -> bool {
        self.0.is_none()
    }

    /// True if a value of the column is wanted. Nobody wants what was dropped; counts are needed to be summed up.
    #[inline]
    pub(super) fn has(self, column: &FileColumn) -> bool {
        match (self.0, column.column) {
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
        self.0?.paths_of(column.column?)
    }
}
