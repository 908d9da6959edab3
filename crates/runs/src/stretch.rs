//! Which records a reader wants: those between two places in their order.

use std::ops::RangeInclusive;

use crate::Record;

/// The records between a start and an end.
pub trait Stretch {
    /// Heads that they may have.
    fn heads(&self) -> RangeInclusive<u64>;

    /// True if a record stands before them.
    fn is_before_start(&self, record: Record<'_>) -> bool;

    /// True if a record does not stand behind them.
    fn is_before_end(&self, record: Record<'_>) -> bool;

    /// True if it is one of them.
    fn has(&self, record: Record<'_>) -> bool {
        !self.is_before_start(record) && self.is_before_end(record)
    }
}

/// All records.
#[derive(Clone, Copy, Debug)]
pub struct All;

impl Stretch for All {
    fn heads(&self) -> RangeInclusive<u64> {
        0..=u64::MAX
    }

    fn is_before_start(&self, _record: Record<'_>) -> bool {
        false
    }

    fn is_before_end(&self, _record: Record<'_>) -> bool {
        true
    }
}
