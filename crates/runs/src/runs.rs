//! The tail that is written to, and the runs behind it.

use std::sync::Arc;

use crate::run::Run;
use crate::{Order, Walk, compare};

/// Records of a tail, and bytes from which on it is closed.
const TAIL_RECORDS: usize = 512;
const TAIL_BYTES: usize = 256 << 10;
/// So many runs of one size become one of the next.
const MERGED_RUNS: usize = 8;
/// Runs of this size are not merged any more: a writer waits for a merge.
const LEVEL_MAX: u8 = 2;

/// Records in the order that they came in, and in their own.
#[derive(Debug, Default)]
pub struct Runs {
    tail: Run,
    /// With how often it was merged; the oldest first. Levels do not ascend.
    runs: Vec<(u8, Arc<Run>)>,
    /// Memory to sort in.
    sorted: Vec<(u64, u32)>,
}

impl Runs {
    /// Puts in a record; returns by how many bytes memory grew.
    #[inline]
    pub fn push(&mut self, order: &impl Order, head: u64, write: impl FnOnce(&mut Vec<u8>)) -> isize {
        let grown = self.tail.push(head, write).cast_signed();
        if self.tail.len() < TAIL_RECORDS && self.tail.bytes_len() < TAIL_BYTES {
            return grown;
        }
        grown + self.close_tail(order)
    }

    /// True if nothing was put in since the runs were shown last.
    pub fn is_closed(&self) -> bool {
        self.tail.is_empty()
    }

    /// Sorts what is new; returns by how many bytes memory grew.
    #[cold]
    pub fn close_tail(&mut self, order: &impl Order) -> isize {
        if self.tail.is_empty() {
            return 0;
        }
        let before = self.tail.size_bytes();
        let run = self.sort_tail(order);
        self.tail.clear();
        let mut grown = self.keep(order, 0, run).cast_signed() - before.cast_signed();
        while let Some(level) = self.level_to_merge() {
            grown += self.merge(order, level);
        }
        grown
    }

    /// The runs, the oldest first. Requires: the tail is closed.
    pub fn runs(&self) -> impl Iterator<Item = &Arc<Run>> {
        debug_assert!(self.tail.is_empty(), "whoever reads closes the tail first");
        self.runs.iter().map(|(_, run)| run)
    }

    /// Records, equal ones counted as often as they were not met yet.
    pub fn len(&self) -> usize {
        self.tail.len() + self.runs.iter().map(|(_, run)| run.len()).sum::<usize>()
    }

    /// True if there are no records.
    pub fn is_empty(&self) -> bool {
        self.tail.is_empty() && self.runs.is_empty()
    }

    fn sort_tail(&mut self, order: &impl Order) -> Run {
        let tail = &self.tail;
        self.sorted.clear();
        let numbers = 0..u32::try_from(tail.len()).unwrap_or(u32::MAX);
        self.sorted
            .extend(numbers.map(|number| (tail.record(number as usize).head, number)));
        self.sorted.sort_unstable_by(|a, b| {
            let of = |number: u32| tail.record(number as usize);
            a.0.cmp(&b.0)
                .then_with(|| order.compare(of(a.1).bytes, of(b.1).bytes))
                .then_with(|| a.1.cmp(&b.1))
        });
        let mut run = Run::with_capacity(tail.len(), tail.bytes_len());
        let mut equal = Equal::default();
        for (_, number) in &self.sorted {
            equal.take(order, tail.record(*number as usize), &mut run);
        }
        equal.finish(&mut run);
        run
    }

    /// The level of the last runs, if there are enough of it.
    fn level_to_merge(&self) -> Option<u8> {
        let first = self.runs.len().checked_sub(MERGED_RUNS)?;
        let level = self.runs[first].0;
        let is_due = level < LEVEL_MAX && self.runs[first..].iter().all(|(known, _)| *known == level);
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
        let mut equal = Equal::default();
        while let Some(record) = walk.peek() {
            equal.take(order, record, &mut run);
            walk.step(order);
        }
        equal.finish(&mut run);
        self.keep(order, level + 1, run).cast_signed() - before.cast_signed()
    }

    /// Puts a run behind the others; returns what it takes.
    fn keep(&mut self, order: &impl Order, level: u8, mut run: Run) -> usize {
        if self.runs.is_empty() {
            run = without_void(order, run);
        }
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

/// Makes one of records that are equal and come one after another.
#[derive(Debug, Default)]
struct Equal {
    /// What the last ones mean together, if there was more than one; else the last record of the run is all there is.
    merged: Option<(u64, Vec<u8>)>,
}

impl Equal {
    #[inline]
    fn take(&mut self, order: &impl Order, record: crate::Record<'_>, out: &mut Run) {
        if self.merged.is_none() && out.is_empty() {
            return out.push_record(record);
        }
        self.take_after(order, record, out);
    }

    #[inline]
    fn take_after(&mut self, order: &impl Order, record: crate::Record<'_>, out: &mut Run) {
        let known = match &self.merged {
            Some((head, bytes)) => crate::Record { head: *head, bytes },
            None => out.record(out.len() - 1),
        };
        if compare(order, known, record).is_ne() {
            if let Some((head, bytes)) = self.merged.take() {
                out.push(head, |all| all.extend_from_slice(&bytes));
            }
            return out.push_record(record);
        }
        let mut together = Vec::with_capacity(record.bytes.len());
        order.merge(known.bytes, record.bytes, &mut together);
        if self.merged.is_none() {
            out.pop();
        }
        self.merged = Some((record.head, together));
    }

    fn finish(self, out: &mut Run) {
        if let Some((head, bytes)) = self.merged {
            out.push(head, |all| all.extend_from_slice(&bytes));
        }
    }
}
