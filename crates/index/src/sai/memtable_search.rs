//! Searches in the terms of a memtable, in the order of places.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use ilion_rows::ReadError;

use super::entry::{ByPlace, Entry, Layout};
use super::lookup::TermRange;
use super::memtable::{Shards, entries_of};
use crate::{Candidate, Candidates, Place};

/// Entries that are taken from a shard at once.
const TAKEN: usize = 64;
/// Places of a first pass, and at most.
const PASS_PLACES: usize = 256;
const PASS_PLACES_MAX: usize = 1 << 16;

/// The places of one term: each shard has them in order.
pub(super) struct ByTerm {
    shards: Arc<Shards>,
    term: Vec<u8>,
    to: Entry,
    /// What was taken of each shard, and where it goes on; nothing: it has no more.
    taken: Vec<(VecDeque<Entry>, Option<Bound<Entry>>)>,
}

impl ByTerm {
    /// Requires: the range has one term.
    pub(super) fn new(shards: Arc<Shards>, range: TermRange) -> Self {
        let from = Layout::before_term(&range.from);
        let taken = shards
            .all()
            .iter()
            .map(|_| (VecDeque::new(), Some(Bound::Included(from.clone()))))
            .collect();
        Self {
            shards,
            to: Layout::before_term(range.to.as_deref().unwrap_or_default()),
            term: range.from,
            taken,
        }
    }

    fn refill(&mut self) {
        for (shard, (entries, from)) in self.shards.all().iter().zip(&mut self.taken) {
            if !entries.is_empty() {
                continue;
            }
            let Some(start) = from.take() else {
                continue;
            };
            let shard = shard.read();
            let found = shard.set.range((start, Bound::Excluded(self.to.clone())));
            entries.extend(found.take(TAKEN).cloned());
            if entries.len() == TAKEN {
                *from = entries.back().cloned().map(Bound::Excluded);
            }
        }
    }
}

impl Candidates for ByTerm {
    fn next(&mut self) -> Result<Option<Candidate>, ReadError> {
        self.refill();
        let heads = self.taken.iter_mut().map(|(entries, _)| entries);
        let least = heads
            .filter(|entries| !entries.is_empty())
            .min_by(|a, b| match (a.front(), b.front()) {
                (Some(a), Some(b)) => a.compare_places(b),
                _ => std::cmp::Ordering::Equal,
            });
        let entry = least.and_then(VecDeque::pop_front);
        Ok(entry.map(|entry| candidate(&entry, &self.shards)))
    }

    fn seek(&mut self, place: &Place) -> Result<(), ReadError> {
        let target = self.shards.layout.at(&self.term, place);
        for (entries, from) in &mut self.taken {
            let below = entries.partition_point(|entry| *entry < target);
            entries.drain(..below);
            let is_ahead = match from {
                Some(Bound::Included(start) | Bound::Excluded(start)) => *start < target,
                _ => false,
            };
            if entries.is_empty() && is_ahead {
                *from = Some(Bound::Included(target.clone()));
            }
        }
        Ok(())
    }
}

/// The places of many terms: each pass over them takes the least that have not been given, more each time.
pub(super) struct ByPasses {
    shards: Arc<Shards>,
    ranges: Vec<TermRange>,
    taken: VecDeque<Entry>,
    /// Where the next pass goes on; an inner nothing: at the start. Nothing: there is no more.
    from: Option<Option<Bound<Entry>>>,
    places: usize,
}

impl ByPasses {
    pub(super) fn new(shards: Arc<Shards>, ranges: Vec<TermRange>) -> Self {
        Self {
            shards,
            ranges,
            taken: VecDeque::new(),
            from: Some(None),
            places: PASS_PLACES,
        }
    }

    fn pass(&mut self) {
        let Some(from) = self.from.take() else {
            return;
        };
        let is_given = |entry: &Entry| match &from {
            Some(Bound::Included(start)) => entry.compare_places(start).is_lt(),
            Some(Bound::Excluded(start)) => entry.compare_places(start).is_le(),
            _ => false,
        };
        let mut least: BTreeSet<ByPlace> = BTreeSet::new();
        for shard in self.shards.all() {
            let shard = shard.read();
            for entry in self.ranges.iter().flat_map(|range| entries_of(&shard.set, range)) {
                let is_full = least.len() == self.places;
                let is_beyond = || {
                    least
                        .last()
                        .is_some_and(|last| entry.compare_places(&last.0).is_ge())
                };
                if is_given(entry) || (is_full && is_beyond()) {
                    continue;
                }
                if least.insert(ByPlace(entry.clone())) && is_full {
                    least.pop_last();
                }
            }
        }
        if least.len() == self.places {
            let last = least.last().map(|last| last.0.clone());
            self.from = Some(last.map(Bound::Excluded));
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
        Ok(entry.map(|entry| candidate(&entry, &self.shards)))
    }

    fn seek(&mut self, place: &Place) -> Result<(), ReadError> {
        let target = self.shards.layout.at(&[], place);
        let below = self
            .taken
            .partition_point(|entry| entry.compare_places(&target).is_lt());
        self.taken.drain(..below);
        let is_ahead = match &self.from {
            Some(Some(Bound::Included(start) | Bound::Excluded(start))) => {
                start.compare_places(&target).is_lt()
            }
            Some(_) => true,
            None => false,
        };
        if self.taken.is_empty() && is_ahead {
            self.from = Some(Some(Bound::Included(target)));
        }
        Ok(())
    }
}

fn candidate(entry: &Entry, shards: &Shards) -> Candidate {
    Candidate {
        place: entry.place(shards.partitioner()),
        entry: None,
    }
}
