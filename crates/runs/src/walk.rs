//! Reads several runs as one.

use std::cmp::Ordering;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::{All, Order, Record, Run, Stretch, compare};

/// Number of removed records that [`Walk::take_living`] passes one by one before it jumps. The number doubles with each jump, up to the number
/// of sources, since a jump costs about as much as a step of each.
const PASSED_MIN: usize = 4;

/// A range of a run.
#[derive(Debug)]
struct Source {
    run: Arc<Run>,
    at: usize,
    end: usize,
}

/// Reads ranges of runs in order. Of equal records, the one of the older run comes first.
#[derive(Debug)]
pub struct Walk {
    /// The oldest run first.
    sources: Vec<Source>,
    /// A heap of the sources that are not at their end; the least is first.
    heap: Vec<u32>,
}

impl Walk {
    /// Reads whole runs, which are given the oldest first.
    pub fn all(order: &impl Order, runs: impl IntoIterator<Item = Arc<Run>>) -> Self {
        Self::between(order, runs, &All)
    }

    /// Reads a stretch of the runs, which are given the oldest first.
    pub fn between(
        order: &impl Order,
        runs: impl IntoIterator<Item = Arc<Run>>,
        stretch: &impl Stretch,
    ) -> Self {
        let sources = runs.into_iter().filter_map(|run| {
            let at = run.find(0, run.len(), |record| stretch.is_before_start(record));
            let end = run.find(at, run.len(), |record| stretch.is_before_end(record));
            (at < end).then_some(Source { run, at, end })
        });
        let mut walk = Self {
            sources: sources.collect(),
            heap: Vec::new(),
        };
        walk.gather(order);
        walk
    }

    /// Number of records left.
    pub fn len(&self) -> usize {
        self.sources.iter().map(|source| source.end - source.at).sum()
    }

    /// Number of records left whose bits are not set.
    pub fn len_living(&self) -> usize {
        let sources = self.sources.iter();
        sources
            .map(|source| source.run.count_living(source.at..source.end))
            .sum()
    }

    /// True if no records are left.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// The next record.
    #[inline]
    pub fn peek(&self) -> Option<Record<'_>> {
        let source = &self.sources[*self.heap.first()? as usize];
        Some(source.run.record(source.at))
    }

    /// Skips the next record.
    #[inline]
    pub fn step(&mut self, order: &impl Order) {
        let Some(first) = self.heap.first() else {
            return;
        };
        let source = &mut self.sources[*first as usize];
        source.at += 1;
        if source.at == source.end {
            self.heap.swap_remove(0);
        }
        self.sink(order, 0);
    }

    /// Appends the merge of the next records that are equal, and skips them. Returns false at the end.
    pub fn take(&mut self, order: &impl Order, out: &mut Vec<u8>) -> bool {
        let (Some(record), Some(place)) = (self.peek(), self.place()) else {
            return false;
        };
        let (head, start) = (record.head, out.len());
        out.extend_from_slice(record.bytes);
        self.step(order);
        let mut others: SmallVec<[(usize, usize); 4]> = SmallVec::new();
        while let (Some(next), Some(place)) = (self.peek(), self.place()) {
            if next.head != head || order.compare(&out[start..], next.bytes).is_ne() {
                break;
            }
            let older = out.split_off(start);
            order.merge(&older, next.bytes, out);
            others.push(place);
            self.step(order);
        }
        if !others.is_empty() && order.is_removal(&out[start..]) {
            for (source, at) in others.into_iter().chain([place]) {
                self.sources[source].run.mark_removed(at);
            }
        }
        true
    }

    /// Like [`Self::take`], but passes records whose merge is a removal.
    pub fn take_living(&mut self, order: &impl Order, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        let (mut passed, mut passed_max) = (0, PASSED_MIN);
        while self.take(order, out) {
            if !order.is_removal(&out[start..]) {
                return true;
            }
            out.truncate(start);
            passed += 1;
            if passed == passed_max {
                self.skip_removed(order, |_| true);
                (passed, passed_max) = (0, (2 * passed_max).min(self.sources.len().max(PASSED_MIN)));
            }
        }
        false
    }

    /// Skips records up to the first one in any source whose bit is not set, as long as `is_before` is true. Requires: it is true for a prefix
    /// only.
    pub fn skip_removed(&mut self, order: &impl Order, mut is_before: impl FnMut(Record<'_>) -> bool) {
        let mut first: Option<(&Arc<Run>, usize)> = None;
        for Source { run, at, end } in &self.sources {
            let living = run.next_living(*at, *end);
            let is_first = |(known, at): (&Arc<Run>, usize)| {
                compare(order, run.record(living), known.record(at)).is_lt()
            };
            if living < *end && first.is_none_or(is_first) {
                first = Some((run, living));
            }
        }
        match first.map(|(run, at)| (run.clone(), at)) {
            // Removals that are equal to this record are not skipped: they must be merged with it.
            Some((run, at)) if is_before(run.record(at)) => {
                let first = run.record(at);
                self.seek(order, |record| compare(order, record, first).is_lt());
            }
            _ => self.seek(order, is_before),
        }
    }

    /// The source of the next record, and the number of the record in its run.
    #[inline]
    fn place(&self) -> Option<(usize, usize)> {
        let source = *self.heap.first()? as usize;
        Some((source, self.sources[source].at))
    }

    /// Skips all records for which `is_before` is true.
    pub fn seek(&mut self, order: &impl Order, mut is_before: impl FnMut(Record<'_>) -> bool) {
        if !self.peek().is_some_and(&mut is_before) {
            return;
        }
        for source in &mut self.sources {
            source.at = source.run.find_near(source.at, source.end, &mut is_before);
        }
        self.gather(order);
    }

    /// Builds the heap.
    fn gather(&mut self, order: &impl Order) {
        let with_more = (0_u32..).zip(&self.sources);
        self.heap = with_more
            .filter(|(_, source)| source.at < source.end)
            .map(|(number, _)| number)
            .collect();
        for place in (0..self.heap.len() / 2).rev() {
            self.sink(order, place);
        }
    }

    #[inline]
    fn is_less(&self, order: &impl Order, a: u32, b: u32) -> bool {
        let of = |number: u32| {
            let source = &self.sources[number as usize];
            source.run.record(source.at)
        };
        match compare(order, of(a), of(b)) {
            Ordering::Less => true,
            Ordering::Equal => a < b,
            Ordering::Greater => false,
        }
    }

    fn sink(&mut self, order: &impl Order, mut place: usize) {
        loop {
            let mut least = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if child < self.heap.len() && self.is_less(order, self.heap[child], self.heap[least]) {
                    least = child;
                }
            }
            if least == place {
                return;
            }
            self.heap.swap(place, least);
            place = least;
        }
    }
}
