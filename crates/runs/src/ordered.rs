//! All records of some runs in order, sorted or not, for one pass over them, as in a flush. Records are not copied.

use std::sync::Arc;

use crate::sort::{Locator, Sorter, join};
use crate::{Order, Record, Run};

/// Iterates over all records in order.
#[derive(Debug)]
pub struct Ordered {
    runs: Vec<Arc<Run>>,
    locators: Vec<Locator>,
    at: usize,
}

impl Ordered {
    /// Requires: of runs that may have equal records, the older comes first.
    pub fn of(order: &impl Order, runs: Vec<Arc<Run>>) -> Self {
        Self {
            locators: Sorter::default().arrange(order, &runs),
            runs,
            at: 0,
        }
    }

    /// The next record; more records may be equal to it.
    #[inline]
    pub fn peek(&self) -> Option<Record<'_>> {
        let locator = self.locators.get(self.at)?;
        Some(locator.record(&self.runs))
    }

    /// Skips records while their merge is not `wanted`.
    #[inline]
    pub fn skip_until(&mut self, order: &impl Order, room: &mut Vec<u8>, wanted: impl Fn(&[u8]) -> bool) {
        loop {
            let at = self.at;
            if self.next(order, room).is_none_or(&wanted) {
                self.at = at;
                return;
            }
        }
    }

    /// The merge of the next records that are equal: borrowed if there is only one, otherwise built in `room`.
    #[inline]
    pub fn next<'r>(&'r mut self, order: &impl Order, room: &'r mut Vec<u8>) -> Option<&'r [u8]> {
        let (first, rest) = self.locators.get(self.at..)?.split_first()?;
        self.at += 1;
        let first = first.record(&self.runs).bytes;
        if !rest.first().is_some_and(|next| next.may_be_as_before()) {
            return Some(first);
        }
        let alike = rest.iter().take_while(|next| next.may_be_as_before());
        let alike = alike.map(|next| next.record(&self.runs).bytes);
        let (joined, together) = join(order, first, alike, room);
        self.at += joined;
        Some(together)
    }
}
