//! Rows of the commonest kind, seen where they lie.
//!
//! A scan of many small rows spends most of its time on making rows that are read once and dropped. A partition is *plain* if it
//! has one row and nothing else: no clustering, no static row, no deletion, and only simple cells that live and do not expire.
//! Such rows need neither to be reconciled (if no other source has the partition) nor purged, so a source may show their bytes as it
//! has them, see [`Cursor::plain_partitions`](crate::Cursor::plain_partitions): to an answer, or to the writer of an SSTable. What is
//! not plain is read as any row is.
//!
//! The rows of a partition with clustering are shown one after another in the same way ([`Cursor::plain_rows`](crate::Cursor::plain_rows)):
//! such a row is plain if it is not deleted and has only simple cells that live and do not expire.

use std::borrow::Cow;

use ilion_schema::{Column, ColumnId, TableSchema};
use ilion_types::{Partitioner, Token};

use crate::{AlikeRows, DecoratedKey};

/// True if partitions of the table may be plain.
pub fn may_be_plain(table: &TableSchema) -> bool {
    table.clustering().next().is_none()
        && !table.has_statics()
        && !table.is_counter()
        && !table.has_strict_liveness
        && !table.regulars().any(Column::is_complex)
}

/// True if rows of the table may be plain that are not alone in their partition.
pub fn rows_may_be_plain(table: &TableSchema) -> bool {
    table.clustering().next().is_some() && !table.is_counter() && !table.has_strict_liveness
}

/// A plain row: that of a plain partition, or one of a partition with clustering.
#[derive(Clone, Copy, Debug)]
pub struct PlainRow<'b> {
    /// The partition key.
    pub key: &'b [u8],
    /// Its token, if somebody had to know it.
    pub token: Option<&'b Token>,
    /// The values of the clustering columns; none if the table has no such columns.
    pub clustering: &'b [Option<&'b [u8]>],
    /// When the row and all its cells were written; `None` if they were not written at once, or the row was never inserted.
    pub timestamp_micros: Option<i64>,
    /// The values of its columns, by id; they may be more than are wanted.
    pub cells: &'b [(ColumnId, &'b [u8])],
    /// These cells as SSTables store what was written together with its row, one behind the other; `None` if the source has them in
    /// another form.
    pub stored: Option<&'b [u8]>,
}

impl<'b> PlainRow<'b> {
    /// The token of its key, computed if nobody had to know it before.
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

/// What becomes of the rows that follow one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The next one is wanted.
    Next,
    /// This one was the last.
    Last,
    /// Not even this one was taken: it is to be read as any row is.
    Leave,
}

/// Takes plain rows.
pub trait PlainVisitor {
    /// Takes one, whose bytes are gone afterwards.
    fn row(&mut self, row: &PlainRow<'_>) -> Flow;

    /// Takes such that are laid out alike, as if it was shown one after the other; returns how many were taken, and what becomes of those
    /// that follow.
    fn rows(&mut self, rows: &AlikeRows<'_>) -> (usize, Flow) {
        rows.each(|row| self.row(row))
    }
}

/// Plain partitions that were taken one after another.
#[derive(Clone, Debug, PartialEq)]
pub struct PlainRun {
    /// How many; at least one.
    pub count: u64,
    /// The key of the last one.
    pub last: DecoratedKey,
    /// The visitor wants no more.
    pub is_over: bool,
}
