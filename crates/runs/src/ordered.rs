//! All records of runs in their order, whether the runs are sorted or not: for whoever reads them once, like a flush. Nothing is copied.

use std::sync::Arc;

use crate::sort::{Place, Sorter, join};
use crate::{Order, Record, Run};

/// Records in their order.
#[derive(Debug)]
pub struct Ordered {
    runs: Vec<Arc<Run>>,
    places: Vec<Place>,
    at: usize,
}

impl Ordered {
    /// Of runs, those that may have equal records the oldest first.
    pub fn of(order: &impl Order, runs: Vec<Arc<Run>>) -> Self {
        Self {
            places: Sorter::default().arrange(order, &runs),
            runs,
            at: 0,
        }
    }

    /// The next record; others may be equal to it.
    #[inline]
    pub fn peek(&self) -> Option<Record<'_>> {
        let place = self.places.get(self.at)?;
        Some(place.record(&self.runs))
    }

    /// What the next records, which are equal, mean together: where the only one lies, or in `room`, which is memory to use.
    #[inline]
    pub fn next<'r>(&'r mut self, order: &impl Order, room: &'r mut Vec<u8>) -> Option<&'r [u8]> {
        let (first, rest) = self.places.get(self.at..)?.split_first()?;
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
