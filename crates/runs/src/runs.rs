//! The tail that is written to, the unsorted tails cut from it, and the sorted runs.

use std::sync::Arc;

use crate::Order;
use crate::levels::{Levels, MERGED_RECORDS_MAX};
use crate::run::{Room, Run};
use crate::sort::Sorter;

/// Size at which a tail is cut: number of records, and bytes.
const TAIL_RECORDS: usize = 8192;
const TAIL_BYTES: usize = 512 << 10;
/// Number of probable duplicates that triggers a sort.
const AGAIN_MIN: usize = 2048;
/// Backoff factor after a sort that freed little memory.
const AGAIN_GROWTH: usize = 4;
/// Whether an equal record probably exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Probably not.
    First,
    /// Probably yes.
    Again,
}

/// What is known of a record before it is written.
#[derive(Clone, Copy, Debug)]
pub struct Coming {
    /// The number that it is ordered by first.
    pub head: u64,
    /// Whether an equal record probably exists.
    pub kind: Kind,
    /// Length in bytes.
    pub len: usize,
}

/// Records in the order of writing (tails), and in their own order (runs).
#[derive(Debug)]
pub struct Runs {
    tail: Run,
    /// Full tails that are not sorted yet, the oldest first.
    unsorted: Vec<Arc<Run>>,
    /// Number of probable duplicates since the last sort that they triggered.
    again: usize,
    /// Number of probable duplicates that triggers the next sort.
    again_max: usize,
    /// Sorted runs.
    runs: Levels,
    /// Sorted runs of void records, if they are kept ([`Order::KEEPS_VOID`]).
    void: Levels,
    sorter: Sorter,
}

impl Default for Runs {
    fn default() -> Self {
        Self {
            tail: Run::default(),
            unsorted: Vec::new(),
            again: 0,
            again_max: AGAIN_MIN,
            runs: Levels::default(),
            void: Levels::default(),
            sorter: Sorter::default(),
        }
    }
}

impl Runs {
    /// Appends a record; returns the growth of memory in bytes.
    #[inline]
    pub fn push(&mut self, order: &impl Order, coming: Coming, write: impl FnOnce(&mut Room<'_>)) -> isize {
        self.again += usize::from(coming.kind == Kind::Again);
        let grown = self.tail.push(coming.head, coming.len, write).cast_signed();
        let is_tail_full = self.tail.len() >= TAIL_RECORDS || self.tail.bytes_len() >= TAIL_BYTES;
        if !is_tail_full && self.again < self.again_max {
            return grown;
        }
        grown + self.cut_tail(order)
    }

    /// Ends the tail. Sorts unsorted tails only if that is expected to free memory, judging by earlier sorts.
    #[cold]
    fn cut_tail(&mut self, order: &impl Order) -> isize {
        self.end_tail();
        if self.again < self.again_max {
            return 0;
        }
        let few = few_of(&self.unsorted);
        let before: usize = self.unsorted[..few].iter().map(|tail| tail.size_bytes()).sum();
        let grown = self.sort_oldest(order, few);
        self.again = 0;
        self.again_max = match is_worth_sorting(before, grown) {
            true => AGAIN_MIN,
            false => self.again_max.saturating_mul(AGAIN_GROWTH),
        };
        grown
    }

    /// Moves the tail to `unsorted`; the next record starts another one.
    fn end_tail(&mut self) {
        self.unsorted.push(Arc::new(std::mem::take(&mut self.tail)));
    }

    /// True if every record is in a sorted run.
    pub fn is_closed(&self) -> bool {
        self.tail.is_empty() && self.unsorted.is_empty()
    }

    /// Sorts the oldest unsorted tail; returns the growth of memory in bytes, and the number of its records.
    pub(crate) fn sort_next(&mut self, order: &impl Order) -> (isize, usize) {
        if self.unsorted.is_empty() {
            self.end_tail();
        }
        let records = self.unsorted[0].len();
        (self.sort_oldest(order, 1), records)
    }

    /// Number of records that [`Runs::sort_next`] would sort.
    pub(crate) fn next_len(&self) -> usize {
        self.unsorted.first().map_or(self.tail.len(), |tail| tail.len())
    }

    /// Sorts the oldest tails to one run.
    fn sort_oldest(&mut self, order: &impl Order, tails: usize) -> isize {
        let tails: Vec<Arc<Run>> = self.unsorted.drain(..tails).collect();
        let run = self.sorter.sort(order, &tails);
        let before: usize = tails.iter().map(|tail| tail.size_bytes()).sum();
        let mut grown = self.keep(order, 0, run).cast_signed() - before.cast_signed();
        while let Some(merged) = self.runs.merge_last(order) {
            grown += self.keep(order, merged.level, merged.run).cast_signed();
            grown -= merged.replaced_bytes.cast_signed();
        }
        while let Some(merged) = self.void.merge_last(order) {
            grown += self.void.push(merged.level, merged.run).cast_signed();
            grown -= merged.replaced_bytes.cast_signed();
        }
        grown
    }

    /// Appends a sorted run; returns its memory in bytes.
    fn keep<O: Order>(&mut self, order: &O, level: u8, run: Run) -> usize {
        let (run, void) = run.without_void(order);
        let void = void.filter(|_| O::KEEPS_VOID);
        self.runs.push(level, run) + void.map_or(0, |void| self.void.push(0, void))
    }

    /// The sorted runs, the oldest first.
    pub fn runs(&self) -> impl Iterator<Item = &Arc<Run>> {
        self.runs.runs()
    }

    /// The unsorted tails, the oldest first, without the current tail.
    pub(crate) fn unsorted(&self) -> &[Arc<Run>] {
        &self.unsorted
    }

    /// The current tail.
    pub(crate) fn tail(&self) -> &Run {
        &self.tail
    }

    /// All records, as sorted runs and unsorted tails, the oldest first; void records come before the others.
    pub(crate) fn all(&mut self) -> Vec<Arc<Run>> {
        if !self.tail.is_empty() {
            self.end_tail();
        }
        let void = self.void.runs();
        void.chain(self.runs()).chain(&self.unsorted).cloned().collect()
    }

    /// Number of records; equal records that are not merged yet count separately.
    pub fn len(&self) -> usize {
        let unsorted: usize = self.unsorted.iter().map(|tail| tail.len()).sum();
        self.tail.len() + unsorted + self.runs.len() + self.void.len()
    }

    /// True if there are no records.
    pub fn is_empty(&self) -> bool {
        self.is_closed() && self.runs.is_empty() && self.void.is_empty()
    }
}

/// Number of the oldest tails whose sort a writer may wait for, at least one.
fn few_of(tails: &[Arc<Run>]) -> usize {
    let mut records = 0;
    let few = tails.iter().take_while(|tail| {
        records += tail.len();
        records <= MERGED_RECORDS_MAX
    });
    few.count().max(1)
}

/// True if a sort of `bytes`, by which memory grew by `grown`, freed at least a quarter of them.
fn is_worth_sorting(bytes: usize, grown: isize) -> bool {
    grown < 0 && grown.unsigned_abs() >= bytes / 4
}
