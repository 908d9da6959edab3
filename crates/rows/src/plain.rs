//! Simple live rows that are read without a copy.
//!
//! A scan of many small rows spends most of its time on building rows that are read once and dropped. A partition is *plain* if
//! it has exactly one row and nothing else: no clustering, no static row, no deletion, and only simple cells that are live and
//! do not expire. Such rows need no purge, and no reconciling if no other source has the partition. So a source may show their
//! bytes in place (see [`Cursor::plain_partitions`](crate::Cursor::plain_partitions)) to an answer, or to the writer of an
//! SSTable. All other partitions are read row by row.
//!
//! Rows of a partition with clustering columns are shown in the same way ([`Cursor::plain_rows`](crate::Cursor::plain_rows)).
//! Such a row is plain if it is not deleted and has only simple cells that are live and do not expire.

use std::borrow::Cow;

use ilion_schema::{Column, ColumnId, TableSchema};
use ilion_types::{Partitioner, Token};

/// True if the table can have plain partitions.
pub fn may_be_plain(table: &TableSchema) -> bool {
    table.clustering().next().is_none()
        && !table.has_statics()
        && !table.is_counter()
        && !table.has_strict_liveness
        && !table.regulars().any(Column::is_complex)
}

/// True if the table has clustering columns and its rows can be plain.
pub fn rows_may_be_plain(table: &TableSchema) -> bool {
    table.clustering().next().is_some() && !table.is_counter() && !table.has_strict_liveness
}

/// A plain row, of a plain partition or of a partition with clustering columns.
#[derive(Clone, Copy, Debug)]
pub struct PlainRow<'b> {
    /// The partition key.
    pub key: &'b [u8],
    /// Its token, if it was already computed.
    pub token: Option<&'b Token>,
    /// The values of the clustering columns; empty if the table has none.
    pub clustering: &'b [Option<&'b [u8]>],
    /// The timestamp of the row and all its cells; `None` if their timestamps differ, or no INSERT wrote the row.
    pub timestamp_micros: Option<i64>,
    /// The column values in the order of ids; may include columns that were not selected.
    pub cells: &'b [(ColumnId, &'b [u8])],
    /// The cells in the form in which SSTables store cells that were written together with their row, one after the other; `None`
    /// if the source stores them in another form.
    pub stored: Option<&'b [u8]>,
}

impl<'b> PlainRow<'b> {
    /// The token of the key; computes it if it is not known yet.
    #[inline]
    pub fn token_by(&self, partitioner: Partitioner) -> Cow<'b, Token> {
        match self.token {
            Some(token) => Cow::Borrowed(token),
            None => Cow::Owned(partitioner.token(self.key)),
        }
    }

    /// The value of a column; `None` if it is null.
    #[inline]
    pub fn cell(&self, column: ColumnId) -> Option<&'b [u8]> {
        let at = self.cells.binary_search_by_key(&column, |(id, _)| *id).ok()?;
        Some(self.cells[at].1)
    }
}

/// What a visitor answers to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The row was taken; continue with the next one.
    Next,
    /// The row was taken; stop.
    Last,
    /// The row was not taken; stop and read it as an `Unfiltered`.
    Leave,
}
