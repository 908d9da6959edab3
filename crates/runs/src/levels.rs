//! Sorted runs by level: several runs of one level are merged to one of the next.

use std::sync::Arc;

use crate::{Order, Record, Run, Walk};

/// Number of runs of one level that are merged to one of the next.
const MERGED_RUNS: usize = 8;
/// Runs with more records or bytes than this are not merged, since a writer may wait for the merge.
pub(crate) const MERGED_RECORDS_MAX: usize = 32 << 10;
const MERGED_BYTES_MAX: usize = 16 << 20;

/// Sorted runs with their levels, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Levels(Vec<(u8, Arc<Run>)>);

/// The merge of the last runs.
pub(crate) struct Merged {
    pub(crate) level: u8,
    pub(crate) run: Run,
    /// Memory of the runs that it replaces.
    pub(crate) replaced_bytes: usize,
}

impl Levels {
    /// The runs, the oldest first.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &Arc<Run>> {
        self.0.iter().map(|(_, run)| run)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of records.
    pub(crate) fn len(&self) -> usize {
        self.runs().map(|run| run.len()).sum()
    }

    /// Appends a run; returns its memory in bytes.
    pub(crate) fn push(&mut self, level: u8, mut run: Run) -> usize {
        run.shrink();
        let size_bytes = run.size_bytes();
        if !run.is_empty() {
            self.0.push((level, Arc::new(run)));
        }
        size_bytes
    }

    /// Takes the last runs and merges them, if there are enough of one level and they are not too large together.
    pub(crate) fn merge_last(&mut self, order: &impl Order) -> Option<Merged> {
        let level = self.level_to_merge()?;
        let old: Vec<Arc<Run>> = self
            .0
            .drain(self.0.len() - MERGED_RUNS..)
            .map(|(_, run)| run)
            .collect();
        let replaced_bytes = old.iter().map(|run| run.size_bytes()).sum();
        let records = old.iter().map(|run| run.len()).sum();
        let bytes = old.iter().map(|run| run.bytes_len()).sum();
        let mut run = Run::with_capacity(records, bytes);
        let mut walk = Walk::all(order, old);
        let mut merged = Vec::new();
        while let Some(head) = walk.peek().map(|record| record.head) {
            merged.clear();
            walk.take(order, &mut merged);
            let bytes = &merged;
            run.push_sorted(order, Record { head, bytes });
        }
        Some(Merged {
            level: level.saturating_add(1),
            run,
            replaced_bytes,
        })
    }

    /// The level of the last runs, if they are to be merged. Readers also sort tails that are not full, so a level does not determine
    /// a size.
    fn level_to_merge(&self) -> Option<u8> {
        let last = &self.0[self.0.len().checked_sub(MERGED_RUNS)?..];
        let level = last[0].0;
        let records: usize = last.iter().map(|(_, run)| run.len()).sum();
        let bytes: usize = last.iter().map(|(_, run)| run.bytes_len()).sum();
        let is_small = records <= MERGED_RECORDS_MAX && bytes <= MERGED_BYTES_MAX;
        let is_due = is_small && last.iter().all(|(known, _)| *known == level);
        is_due.then_some(level)
    }
}
