//! The range of records that a reader selects.

use std::ops::RangeInclusive;

use crate::Record;

/// The records between a start and an end in their order.
pub trait Stretch {
    /// A range that contains the heads of all selected records.
    fn heads(&self) -> RangeInclusive<u64>;

    /// True if a record comes before the start.
    fn is_before_start(&self, record: Record<'_>) -> bool;

    /// True if a record comes before the end.
    fn is_before_end(&self, record: Record<'_>) -> bool;

    /// True if the record is selected.
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
