//! The tail that is written to, the unsorted tails cut from it, and the sorted runs.

use std::sync::Arc;

use crate::run::{Record, Room, Run};
use crate::sort::Sorter;
use crate::{Order, Walk};

/// Size at which a tail is cut: number of records, and bytes.
const TAIL_RECORDS: usize = 8192;
const TAIL_BYTES: usize = 512 << 10;
/// Number of probable duplicates that triggers a sort.
const AGAIN_MIN: usize = 2048;
/// Backoff factor after a sort that freed little memory.
const AGAIN_GROWTH: usize = 4;
/// Number of runs of one level that are merged to one of the next.
const MERGED_RUNS: usize = 8;
/// Runs with more records or bytes than this are not merged, since a writer may wait for the merge.
const MERGED_RECORDS_MAX: usize = 32 << 10;
const MERGED_BYTES_MAX: usize = 16 << 20;

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
    /// Sorted runs with their level, the oldest first.
    runs: Vec<(u8, Arc<Run>)>,
    sorter: Sorter,
}

impl Default for Runs {
    fn default() -> Self {
        Self {
            tail: Run::default(),
            unsorted: Vec::new(),
            again: 0,
            again_max: AGAIN_MIN,
            runs: Vec::new(),
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
        while let Some(level) = self.level_to_merge() {
            grown += self.merge(order, level);
        }
        grown
    }

    /// The sorted runs, the oldest first.
    pub fn runs(&self) -> impl Iterator<Item = &Arc<Run>> {
        self.runs.iter().map(|(_, run)| run)
    }

    /// The unsorted tails, the oldest first, without the current tail.
    pub(crate) fn unsorted(&self) -> &[Arc<Run>] {
        &self.unsorted
    }

    /// The current tail.
    pub(crate) fn tail(&self) -> &Run {
        &self.tail
    }

    /// All records, as sorted runs and unsorted tails, the oldest first.
    pub(crate) fn all(&mut self) -> Vec<Arc<Run>> {
        if !self.tail.is_empty() {
            self.end_tail();
        }
        self.runs().chain(&self.unsorted).cloned().collect()
    }

    /// Number of records; equal records that are not merged yet count separately.
    pub fn len(&self) -> usize {
        let unsorted: usize = self.unsorted.iter().map(|tail| tail.len()).sum();
        self.tail.len() + unsorted + self.runs.iter().map(|(_, run)| run.len()).sum::<usize>()
    }

    /// True if there are no records.
    pub fn is_empty(&self) -> bool {
        self.is_closed() && self.runs.is_empty()
    }

    /// The level of the last runs, if there are enough of them and they are not too large together. Readers also sort tails
    /// that are not full, so a level does not determine a size.
    fn level_to_merge(&self) -> Option<u8> {
        let last = &self.runs[self.runs.len().checked_sub(MERGED_RUNS)?..];
        let level = last[0].0;
        let records: usize = last.iter().map(|(_, run)| run.len()).sum();
        let bytes: usize = last.iter().map(|(_, run)| run.bytes_len()).sum();
        let is_small = records <= MERGED_RECORDS_MAX && bytes <= MERGED_BYTES_MAX;
        let is_due = is_small && last.iter().all(|(known, _)| *known == level);
        is_due.then_some(level)
    }

    fn merge(&mut self, order: &impl Order, level: u8) -> isize {
        let old: Vec<Arc<Run>> = self
            .runs
            .drain(self.runs.len() - MERGED_RUNS..)
            .map(|(_, run)| run)
            .collect();
        let before: usize = old.iter().map(|run| run.size_bytes()).sum();
        let records = old.iter().map(|run| run.len()).sum();
        let bytes = old.iter().map(|run| run.bytes_len()).sum();
        let mut run = Run::with_capacity(records, bytes);
        let mut walk = Walk::all(order, old);
        let mut merged = Vec::new();
        while let Some(head) = walk.peek().map(|record| record.head) {
            merged.clear();
            walk.take(order, &mut merged);
            run.push_record(Record { head, bytes: &merged });
        }
        self.keep(order, level.saturating_add(1), run).cast_signed() - before.cast_signed()
    }

    /// Appends a run; returns its memory in bytes.
    fn keep(&mut self, order: &impl Order, level: u8, mut run: Run) -> usize {
        if self.runs.is_empty() {
            run = without_void(order, run);
        }
        run.shrink();
        let size_bytes = run.size_bytes();
        if !run.is_empty() {
            self.runs.push((level, Arc::new(run)));
        }
        size_bytes
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

/// The records of the oldest run that are not void.
fn without_void(order: &impl Order, run: Run) -> Run {
    let is_void = |number: &usize| order.is_void(run.record(*number).bytes);
    if !(0..run.len()).any(|number| is_void(&number)) {
        return run;
    }
    let mut kept = Run::default();
    for number in (0..run.len()).filter(|number| !is_void(number)) {
        kept.push_record(run.record(number));
    }
    kept
}
