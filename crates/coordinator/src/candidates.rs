//! [`ClusterCandidates`]: the candidates of an index on all nodes, in the order of the table.
//!
//! Candidates are ordered by token, and so are the parts of a range: so the candidates of the parts come one after the other, each
//! from one replica. A seek passes over parts without asking their replicas.
//!
//! Only candidates of this node name the entry that they come from: other nodes find and remove stale entries of their own.

use std::collections::VecDeque;
use std::sync::Arc;

use ilion_index::{Candidate, Candidates, Place, Predicate};
use ilion_rows::{ClusteringComparator, KeyBound, KeyRange, ReadError, Row};
use ilion_schema::TableSchema;

use crate::answer::{Answer, ReplicaError};
use crate::command::{PageSize, Read, SearchFrom};
use crate::reads::Reads;
use crate::route::{Failures, SubRange};
use crate::serve::has_clustering;

/// Each page has this many times the places of the page before.
const GROWTH: u32 = 4;
/// Maximum number of tablets of a part with a barrier.
const BARRIERS_MAX: u32 = 16;

/// The part that is searched.
enum Source {
    Local(LocalSource),
    Remote(RemoteSource),
}

/// The candidates of this node, which may have some of other parts, too.
struct LocalSource {
    range: KeyRange,
    candidates: Box<dyn Candidates>,
}

struct RemoteSource {
    part: SubRange,
    places: VecDeque<Place>,
    is_last: bool,
    page_size: PageSize,
}

/// See the module.
pub(crate) struct ClusterCandidates {
    reads: Reads,
    table: Arc<TableSchema>,
    index: String,
    predicate: Predicate,
    comparator: ClusteringComparator,
    failures: Failures,
    /// The rest of the range, which no source covers yet.
    rest: Option<KeyRange>,
    source: Option<Source>,
    /// The last part that this node answered: rows of its candidates may still be reported.
    left: Option<LocalSource>,
    /// Where the search goes on.
    from: Option<SearchFrom>,
}

impl ClusterCandidates {
    pub fn new(
        reads: Reads,
        table: &Arc<TableSchema>,
        index: &str,
        predicate: &Predicate,
        range: &KeyRange,
    ) -> Self {
        Self {
            reads,
            comparator: ClusteringComparator::of(table),
            table: table.clone(),
            index: index.to_owned(),
            predicate: predicate.clone(),
            failures: Failures::new(),
            rest: Some(range.clone()),
            source: None,
            left: None,
            from: None,
        }
    }

    /// Plans the next part; `None` at the end of the range.
    fn next_part(&mut self) -> Result<Option<SubRange>, ReadError> {
        let Some(range) = self.rest.take() else {
            return Ok(None);
        };
        let tablets_max = match self.reads.has_barrier(&self.table) {
            true => BARRIERS_MAX,
            false => u32::MAX,
        };
        let planned = self.reads.choose(&self.table, &self.failures, |chooser| {
            chooser.first_part(&range, tablets_max)
        })?;
        Ok(planned.map(|(part, rest)| {
            self.rest = rest;
            part
        }))
    }

    /// Makes the search plan the rest of a part again, from `start` on, without the replica that failed.
    fn plan_again(&mut self, part: SubRange, start: KeyBound, error: ReplicaError) {
        let SubRange {
            node,
            range,
            versions,
            ..
        } = part;
        tracing::debug!(node, %error, index = self.index, "a search goes on at another replica");
        self.reads.lose(&mut self.failures, node, versions, error);
        let end = self.rest.take().map_or(range.end, |rest| rest.end);
        self.rest = Some(KeyRange { start, end });
    }

    /// Begins the next part; `None` at the end of the range.
    fn begin(&mut self) -> Result<Option<Source>, ReadError> {
        let part = loop {
            let Some(part) = self.next_part()? else {
                return Ok(None);
            };
            if !self.reads.is_here(part.node) {
                let options = &self.reads.shared.options;
                return Ok(Some(Source::Remote(RemoteSource {
                    part,
                    places: VecDeque::new(),
                    is_last: false,
                    page_size: options.page_first,
                })));
            }
            match self.reads.wait_here(&self.table, part.tablets.clone())? {
                Ok(()) => break part,
                Err(refused) => {
                    let start = part.range.start.clone();
                    self.plan_again(part, start, refused);
                }
            }
        };
        let local = self.reads.shared.local();
        let searched = local.index_search(&self.table, &self.index, &self.predicate, &part.range);
        let mut candidates = searched.map_err(|error| self.reads.of_local(error))?;
        let from = self.start_within(&part.range).map(|from| from.place().clone());
        if let Some(first) = from.or_else(|| Place::first_of(&part.range.start)) {
            candidates.seek(&first)?;
        }
        Ok(Some(Source::Local(LocalSource {
            range: part.range,
            candidates,
        })))
    }

    /// Where the search goes on, if that is inside a part.
    fn start_within(&self, range: &KeyRange) -> Option<&SearchFrom> {
        self.from
            .as_ref()
            .filter(|from| range.contains(&from.place().key))
    }

    fn is_passed(&self, place: &Place) -> bool {
        let from = self.from.as_ref();
        from.is_some_and(|from| from.passes(place, &self.comparator))
    }

    /// Asks for the next places of a part. If its replica does not answer, plans the rest without it, and returns `None`.
    fn receive(&mut self, mut source: RemoteSource) -> Result<Option<RemoteSource>, ReadError> {
        let part = &source.part;
        let from = self.start_within(&part.range).cloned();
        let read = Read::Search {
            index: self.index.clone(),
            predicate: self.predicate.clone(),
            range: part.range.clone(),
            from: from.clone(),
        };
        let applied = self.reads.barrier(&self.table, part.tablets.clone())?;
        let pending = self
            .reads
            .send(part.node, self.table.id, applied, source.page_size, read);
        let answered = self.reads.wait(pending)?;
        match answered.and_then(|answer| self.checked(answer, &part.range, from.as_ref())) {
            Ok((places, is_last)) => {
                if let Some(last) = places.last() {
                    self.from = Some(SearchFrom::Behind(last.clone()));
                }
                source.places.extend(places);
                source.is_last = is_last;
                let max = self.reads.shared.options.page_max;
                source.page_size = PageSize {
                    rows: source.page_size.rows.saturating_mul(GROWTH).min(max.rows),
                    bytes: source.page_size.bytes.saturating_mul(GROWTH).min(max.bytes),
                };
                Ok(Some(source))
            }
            Err(error) => {
                let start = match from {
                    Some(from) => KeyBound::Before(from.place().key.clone()),
                    None => source.part.range.start.clone(),
                };
                self.plan_again(source.part, start, error);
                Ok(None)
            }
        }
    }

    fn checked(
        &self,
        answer: Answer,
        range: &KeyRange,
        from: Option<&SearchFrom>,
    ) -> Result<(Vec<Place>, bool), ReplicaError> {
        let broken = |rule: &str| Err(ReplicaError::Failed(format!("its answer breaks a rule: {rule}")));
        let Answer::Candidates { places, is_last } = answer else {
            return broken("candidates were asked for");
        };
        let is_inside = |place: &Place| has_clustering(place, &self.comparator) && range.contains(&place.key);
        if !places.iter().all(is_inside) {
            return broken("candidates lie in the range that was asked for");
        }
        if !places.is_sorted_by(|before, after| before.compare(after, &self.comparator).is_lt()) {
            return broken("candidates ascend");
        }
        let is_passed = |place: &Place| from.is_some_and(|from| from.passes(place, &self.comparator));
        if places.first().is_some_and(is_passed) || (places.is_empty() && !is_last) {
            return broken("a page of candidates begins behind the last one");
        }
        Ok((places, is_last))
    }

    fn next_local(&mut self, mut source: LocalSource) -> Result<Option<Candidate>, ReadError> {
        while let Some(candidate) = source.candidates.next()? {
            let key = &candidate.place.key;
            if source.range.end.compare(key).is_lt() {
                break;
            }
            if source.range.contains(key) && !self.is_passed(&candidate.place) {
                self.source = Some(Source::Local(source));
                return Ok(Some(candidate));
            }
        }
        self.left = Some(source);
        Ok(None)
    }
}

impl Candidates for ClusterCandidates {
    fn next(&mut self) -> Result<Option<Candidate>, ReadError> {
        loop {
            let source = match self.source.take() {
                Some(source) => source,
                None => match self.begin()? {
                    Some(source) => source,
                    None => return Ok(None),
                },
            };
            match source {
                Source::Local(source) => {
                    if let Some(candidate) = self.next_local(source)? {
                        return Ok(Some(candidate));
                    }
                }
                Source::Remote(mut source) => {
                    if let Some(place) = source.places.pop_front() {
                        self.source = Some(Source::Remote(source));
                        return Ok(Some(Candidate { place, entry: None }));
                    }
                    if !source.is_last {
                        self.source = self.receive(source)?.map(Source::Remote);
                    }
                }
            }
        }
    }

    fn seek(&mut self, place: &Place) -> Result<(), ReadError> {
        let is_behind = |range: &KeyRange| range.end.compare(&place.key).is_lt();
        let is_seeking_on = self.from.as_ref().is_none_or(|from| {
            let known = from.place().compare(place, &self.comparator);
            known.is_lt()
        });
        match self.source.take() {
            Some(Source::Local(mut source)) => match is_behind(&source.range) {
                true => self.left = Some(source),
                false => {
                    source.candidates.seek(place)?;
                    self.source = Some(Source::Local(source));
                }
            },
            Some(Source::Remote(mut source)) if !is_behind(&source.part.range) => {
                let is_passed = |known: &mut Place| (*known).compare(place, &self.comparator).is_lt();
                while source.places.pop_front_if(is_passed).is_some() {}
                self.source = Some(Source::Remote(source));
            }
            _ => {}
        }
        if is_seeking_on {
            self.from = Some(SearchFrom::At(place.clone()));
        }
        self.rest.take_if(|rest| is_behind(rest));
        if let Some(rest) = &mut self.rest
            && rest.start.compare(&place.key).is_lt()
        {
            rest.start = KeyBound::Before(place.key.clone());
        }
        Ok(())
    }

    fn met(&mut self, candidate: &Candidate, row: Option<&Row>) {
        if candidate.entry.is_none() {
            return;
        }
        let current = match &mut self.source {
            Some(Source::Local(source)) => Some(source),
            _ => None,
        };
        let of_candidate = |source: &&mut LocalSource| source.range.contains(&candidate.place.key);
        if let Some(source) = current.into_iter().chain(&mut self.left).find(of_candidate) {
            source.candidates.met(candidate, row);
        }
    }
}
