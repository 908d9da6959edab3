//! Rows of the commonest kind, seen where they lie.
//!
//! A scan of many small rows spends most of its time on making rows that are read once and dropped. A partition is *plain* if it
//! has one row and nothing else: no clustering, no static row, no deletion, and only simple cells that live and do not expire.
//! Such rows need neither to be reconciled (if no other source has the partition) nor purged, so a source may show their bytes as it
//! has them, see [`Cursor::plain_partitions`](crate::Cursor::plain_partitions). What is not plain is read as any row is.

use ilion_schema::ColumnId;

use crate::DecoratedKey;

/// The row of a plain partition.
#[derive(Clone, Copy, Debug)]
pub struct PlainRow<'b> {
    /// The partition key.
    pub key: &'b [u8],
    /// The values of its columns, by id; they may be more than are wanted.
    pub cells: &'b [(ColumnId, &'b [u8])],
}

impl<'b> PlainRow<'b> {
    /// The value of a column; nothing if it is null.
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
