//! Visitors of plain rows.

use crate::{AlikeRows, DecoratedKey, Flow, PlainRow};

/// Takes plain rows.
pub trait PlainVisitor {
    /// Takes a row. Its bytes are valid only during the call.
    fn row(&mut self, row: &PlainRow<'_>) -> Flow;

    /// Takes rows of one layout, as if each were passed to [`Self::row`]. Returns the number of rows taken, and how to continue.
    fn rows(&mut self, rows: &AlikeRows<'_>) -> (usize, Flow) {
        rows.each(|row| self.row(row))
    }
}

/// Result of showing plain partitions to a visitor.
#[derive(Clone, Debug, PartialEq)]
pub struct PlainRun {
    /// Number of partitions taken; at least one.
    pub count: u64,
    /// The key of the last partition taken.
    pub last: DecoratedKey,
    /// True if the visitor stopped.
    pub is_over: bool,
}
