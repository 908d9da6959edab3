//! Reads several runs as one.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::{All, Order, Record, Run, Stretch, compare};

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
        let Some(record) = self.peek() else {
            return false;
        };
        let (head, start) = (record.head, out.len());
        out.extend_from_slice(record.bytes);
        self.step(order);
        while let Some(next) = self.peek() {
            if next.head != head || order.compare(&out[start..], next.bytes).is_ne() {
                break;
            }
            let older = out.split_off(start);
            order.merge(&older, next.bytes, out);
            self.step(order);
        }
        true
    }

    /// Skips all records for which `is_before` is true.
    pub fn seek(&mut self, order: &impl Order, mut is_before: impl FnMut(Record<'_>) -> bool) {
        if !self.peek().is_some_and(&mut is_before) {
            return;
        }
        for source in &mut self.sources {
            source.at = source.run.find(source.at, source.end, &mut is_before);
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
