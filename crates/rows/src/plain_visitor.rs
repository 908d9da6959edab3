//! Visitors of plain rows.

use crate::{AlikeRows, DecoratedKey, Flow, PlainRow};

/// Takes plain rows.
pub trait PlainVisitor {
    /// Takes a row. Its bytes are valid only during the call.
    fn row(&mut self, row: &PlainRow<'_>) -> Flow;

    /// Takes rows of one layout; has the same effect as showing each by itself. Returns how many it took, and how to continue.
    fn rows(&mut self, rows: &AlikeRows<'_>) -> (usize, Flow) {
        rows.each(|row| self.row(row))
    }
}

/// Result of showing plain partitions to a visitor.
#[derive(Clone, Debug, PartialEq)]
pub struct PlainRun {
    /// How many were taken; at least one.
    pub count: u64,
    /// The key of the last one taken.
    pub last: DecoratedKey,
    /// True if the visitor stopped.
    pub is_over: bool,
}
