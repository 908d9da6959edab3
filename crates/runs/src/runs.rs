//! The tail that is written to, what was cut off it, and the runs behind.

use std::sync::Arc;

use crate::run::Run;
use crate::sort::Sorter;
use crate::{Order, Walk};

/// Records of a tail, and bytes, from which on it is cut off.
const TAIL_RECORDS: usize = 8192;
const TAIL_BYTES: usize = 512 << 10;
/// Records that probably go with others, from which on it is cut off.
const TAIL_AGAIN: usize = 2048;
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

/// Records in the order that they came in, and in their own.
#[derive(Debug, Default)]
pub struct Runs {
    tail: Run,
    /// How many of the tail probably go with another record.
    again: usize,
    /// Tails that nobody has asked for yet, the oldest first.
    unsorted: Vec<Run>,
    /// With how often it was merged; the oldest first.
    runs: Vec<(u8, Arc<Run>)>,
    sorter: Sorter,
}

impl Runs {
    /// Puts in a record; returns by how many bytes memory grew.
    #[inline]
    pub fn push(
        &mut self,
        order: &impl Order,
        head: u64,
        kind: Kind,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> isize {
        self.again += usize::from(kind == Kind::Again);
        let grown = self.tail.push(head, write).cast_signed();
        if self.tail.len() < TAIL_RECORDS && self.tail.bytes_len() < TAIL_BYTES && self.again < TAIL_AGAIN {
            return grown;
        }
        grown + self.cut_tail(order)
    }

    /// A full tail is sorted only if that gives much memory back.
    #[cold]
    fn cut_tail(&mut self, order: &impl Order) -> isize {
        if self.again * 4 > self.tail.len() {
            return self.close_tail(order);
        }
        self.again = 0;
        self.unsorted.push(std::mem::take(&mut self.tail));
        0
    }

    /// True if nothing was put in since the runs were shown last.
    pub fn is_closed(&self) -> bool {
        self.tail.is_empty() && self.unsorted.is_empty()
    }

    /// Sorts what is new; returns by how many bytes memory grew.
    #[cold]
    pub fn close_tail(&mut self, order: &impl Order) -> isize {
        let mut grown = 0;
        for tail in std::mem::take(&mut self.unsorted) {
            grown += self.sort(order, &tail);
        }
        if !self.tail.is_empty() {
            let mut tail = std::mem::take(&mut self.tail);
            grown += self.sort(order, &tail);
            tail.clear();
            self.tail = tail;
        }
        self.again = 0;
        grown
    }

    fn sort(&mut self, order: &impl Order, tail: &Run) -> isize {
        let run = self.sorter.sort(order, tail);
        let mut grown = self.keep(order, 0, run).cast_signed() - tail.size_bytes().cast_signed();
        while let Some(level) = self.level_to_merge() {
            grown += self.merge(order, level);
        }
        grown
    }

    /// The runs, the oldest first. Requires: the tail is closed.
    pub fn runs(&self) -> impl Iterator<Item = &Arc<Run>> {
        debug_assert!(self.is_closed(), "whoever reads closes the tail first");
        self.runs.iter().map(|(_, run)| run)
    }

    /// Records, equal ones counted as often as they were not met yet.
    pub fn len(&self) -> usize {
        let unsorted: usize = self.unsorted.iter().map(Run::len).sum();
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
        while let Some(head) = walk.peek().map(|record| record.head) {
            run.push(head, |out| {
                walk.take(order, out);
            });
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
