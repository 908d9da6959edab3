//! The tail that is written to, what was cut off it, and the runs behind.

use std::sync::Arc;

use crate::run::{Record, Room, Run};
use crate::sort::Sorter;
use crate::{Order, Walk};

/// Records of a tail, and bytes, from which on it is cut off.
const TAIL_RECORDS: usize = 8192;
const TAIL_BYTES: usize = 512 << 10;
/// Records that probably go with others, from which on some tails are sorted.
const AGAIN_MIN: usize = 2048;
/// So much longer it is waited after sorting gave little memory back.
const AGAIN_GROWTH: usize = 4;
/// So many runs of one level become one of the next.
const MERGED_RUNS: usize = 8;
/// No run is made of runs that have more together: a writer may wait for it.
const MERGED_RECORDS_MAX: usize = 32 << 10;
const MERGED_BYTES_MAX: usize = 16 << 20;

/// What a record says of the one that it is equal to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// There is probably none.
    First,
    /// There probably is one.
    Again,
}

/// What is known of a record before it is written.
#[derive(Clone, Copy, Debug)]
pub struct Coming {
    /// What it is ordered by first.
    pub head: u64,
    /// What it says of the one that it is equal to.
    pub kind: Kind,
    /// How many bytes it has.
    pub len: usize,
}

/// Records in the order that they came in, and in their own.
#[derive(Debug)]
pub struct Runs {
    tail: Run,
    /// Tails that are not sorted yet, the oldest first.
    unsorted: Vec<Arc<Run>>,
    /// How many records probably went with another one since some were sorted for that.
    again: usize,
    /// So many have some sorted.
    again_max: usize,
    /// With how often it was merged; the oldest first.
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
    /// Puts in a record; returns by how many bytes memory grew.
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

    /// Tails are sorted only if that gives much memory back, which it did or did not when it was tried.
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

    /// What comes begins another tail.
    fn end_tail(&mut self) {
        self.unsorted.push(Arc::new(std::mem::take(&mut self.tail)));
    }

    /// True if nothing was put in since all was sorted.
    pub fn is_closed(&self) -> bool {
        self.tail.is_empty() && self.unsorted.is_empty()
    }

    /// Sorts what is new; returns by how many bytes memory grew.
    #[cold]
    pub fn close_tail(&mut self, order: &impl Order) -> isize {
        let mut grown = 0;
        while !self.is_closed() {
            grown += self.sort_next(order).0;
        }
        grown
    }

    /// Sorts the oldest of what is new; returns by how many bytes memory grew, and how many records there were.
    pub(crate) fn sort_next(&mut self, order: &impl Order) -> (isize, usize) {
        if self.unsorted.is_empty() {
            self.end_tail();
        }
        let records = self.unsorted[0].len();
        (self.sort_oldest(order, 1), records)
    }

    /// How many records [`Runs::sort_next`] would sort.
    pub(crate) fn next_len(&self) -> usize {
        self.unsorted.first().map_or(self.tail.len(), |tail| tail.len())
    }

    /// Makes the oldest tails a run.
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

    /// The runs, the oldest first.
    pub fn runs(&self) -> impl Iterator<Item = &Arc<Run>> {
        self.runs.iter().map(|(_, run)| run)
    }

    /// What came in later and is not sorted yet, the oldest first, but for the tail.
    pub(crate) fn unsorted(&self) -> &[Arc<Run>] {
        &self.unsorted
    }

    /// What came in last.
    pub(crate) fn tail(&self) -> &Run {
        &self.tail
    }

    /// Everything that was put in, sorted or not, the oldest first.
    pub(crate) fn all(&mut self) -> Vec<Arc<Run>> {
        if !self.tail.is_empty() {
            self.end_tail();
        }
        self.runs().chain(&self.unsorted).cloned().collect()
    }

    /// Records, equal ones counted as often as they were not met yet.
    pub fn len(&self) -> usize {
        let unsorted: usize = self.unsorted.iter().map(|tail| tail.len()).sum();
        self.tail.len() + unsorted + self.runs.iter().map(|(_, run)| run.len()).sum::<usize>()
    }

    /// True if there are no records.
    pub fn is_empty(&self) -> bool {
        self.is_closed() && self.runs.is_empty()
    }

    /// The level of the last runs, if there are enough of it, and they are not too large together. Whoever reads makes runs of
    /// tails that are not full: so a level does not tell a size.
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

    /// Puts a run behind the others; returns what it takes.
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

/// How many of the oldest tails a writer may wait for, at least one.
fn few_of(tails: &[Arc<Run>]) -> usize {
    let mut records = 0;
    let few = tails.iter().take_while(|tail| {
        records += tail.len();
        records <= MERGED_RECORDS_MAX
    });
    few.count().max(1)
}

/// Whether sorting so many bytes, which made memory grow so much, gave at least a quarter of them back.
fn is_worth_sorting(bytes: usize, grown: isize) -> bool {
    grown < 0 && grown.unsigned_abs() >= bytes / 4
}

/// The records of the oldest run that mean something.
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
