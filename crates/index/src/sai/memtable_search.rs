//! Searches of the terms of a memtable, in the order of places.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use ilion_rows::ReadError;
use ilion_runs::{Record, Run, Walk, head_of};

use super::entry::{ByPlace, Entry, KeptEntry, TermOrder};
use super::lookup::TermRange;
use super::memtable_runs::{Ends, Shards};
use crate::{Candidate, Candidates, Place};

/// Number of places of the first pass, and the maximum for later passes.
const PASS_PLACES: usize = 256;
const PASS_PLACES_MAX: usize = 1 << 16;

/// The places of one term: each run has them in order.
pub(super) struct ByTerm {
    shards: Arc<Shards>,
    term: Vec<u8>,
    walk: Walk,
    record: Vec<u8>,
}

impl ByTerm {
    /// Starts a search of one term. Requires: the range has only that term.
    pub(super) fn new(shards: Arc<Shards>, range: &TermRange) -> Self {
        let ends = Ends::of(range);
        let walk = Walk::between(&TermOrder, shards.runs(range, &ends), &ends);
        Self {
            shards,
            term: range.from.clone(),
            walk,
            record: Vec::new(),
        }
    }
}

impl Candidates for ByTerm {
    fn next(&mut self) -> Result<Option<Candidate>, ReadError> {
        self.record.clear();
        if !self.walk.take_living(&TermOrder, &mut self.record) {
            return Ok(None);
        }
        let entry = Entry::from(Record {
            head: head_of(&self.term),
            bytes: &self.record,
        });
        Ok(Some(candidate(entry, &self.shards)))
    }

    fn seek(&mut self, place: &Place) -> Result<(), ReadError> {
        let target = self.shards.layout.at(&self.term, place);
        self.walk.seek(&TermOrder, |record| {
            Entry::from(record).compare(&target.as_entry()).is_lt()
        });
        Ok(())
    }
}

/// Where a pass starts.
enum From {
    Start,
    After(KeptEntry),
    At(KeptEntry),
}

/// The places of many terms. Each pass scans the runs for the next places in order; passes grow.
///
/// An entry that was removed by a record in another run is still returned, unless a search of its term has met it ([`Walk::take_living`]).
pub(super) struct ByPasses {
    shards: Arc<Shards>,
    stretches: Vec<(Arc<Run>, std::ops::Range<usize>)>,
    taken: VecDeque<KeptEntry>,
    /// The start of the next pass; `None` at the end.
    from: Option<From>,
    places: usize,
}

impl ByPasses {
    pub(super) fn new(shards: Arc<Shards>, ranges: &[TermRange]) -> Self {
        let mut stretches = Vec::new();
        for range in ranges {
            let ends = Ends::of(range);
            for run in shards.runs(range, &ends) {
                let stretch = ends.stretch(&run);
                if !stretch.is_empty() {
                    stretches.push((run, stretch));
                }
            }
        }
        Self {
            shards,
            stretches,
            taken: VecDeque::new(),
            from: Some(From::Start),
            places: PASS_PLACES,
        }
    }

    fn pass(&mut self) {
        let Some(from) = self.from.take() else {
            return;
        };
        let is_given = |entry: &Entry<'_>| match &from {
            From::Start => false,
            From::At(start) => entry.compare_places(&start.as_entry()).is_lt(),
            From::After(start) => entry.compare_places(&start.as_entry()).is_le(),
        };
        let mut least: BTreeSet<ByPlace> = BTreeSet::new();
        for (run, stretch) in &self.stretches {
            for entry in run.living(stretch.clone()).map(Entry::from) {
                let is_full = least.len() == self.places;
                let is_beyond = || {
                    let last = least.last();
                    last.is_some_and(|last| entry.compare_places(&last.0.as_entry()).is_ge())
                };
                if !entry.is_there() || is_given(&entry) || (is_full && is_beyond()) {
                    continue;
                }
                if least.insert(ByPlace(entry.to_kept())) && is_full {
                    least.pop_last();
                }
            }
        }
        if least.len() == self.places {
            self.from = least.last().map(|last| From::After(last.0.clone()));
            self.places = (self.places * 4).min(PASS_PLACES_MAX);
        }
        self.taken.extend(least.into_iter().map(|entry| entry.0));
    }
}

impl Candidates for ByPasses {
    fn next(&mut self) -> Result<Option<Candidate>, ReadError> {
        if self.taken.is_empty() {
            self.pass();
        }
        let entry = self.taken.pop_front();
        Ok(entry.map(|entry| candidate(entry.as_entry(), &self.shards)))
    }

    fn seek(&mut self, place: &Place) -> Result<(), ReadError> {
        let target = self.shards.layout.at(&[], place);
        let is_before = |entry: &KeptEntry| entry.as_entry().compare_places(&target.as_entry()).is_lt();
        let below = self.taken.partition_point(&is_before);
        self.taken.drain(..below);
        let is_ahead = match &self.from {
            Some(From::At(start) | From::After(start)) => is_before(start),
            Some(From::Start) => true,
            None => false,
        };
        if self.taken.is_empty() && is_ahead {
            self.from = Some(From::At(target));
        }
        Ok(())
    }
}

fn candidate(entry: Entry<'_>, shards: &Shards) -> Candidate {
    Candidate {
        place: entry.place(shards.partitioner()),
        entry: None,
    }
}
