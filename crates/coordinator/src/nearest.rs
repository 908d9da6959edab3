//! [`ClusterRanked`]: the nearest vectors of all nodes, merged by their scores.
//!
//! Each replica ranks the places of the ranges that it is asked for. The merge takes the nearest of their heads. A ranking has no
//! position to resume from, so the request for a later page skips as many places as were received. A replica that takes over begins anew,
//! so places may come twice, as `Ranked` allows.

use std::collections::VecDeque;
use std::sync::Arc;

use ilion_index::{Place, Ranked};
use ilion_rows::{ClusteringComparator, KeyRange, ReadError};
use ilion_schema::TableSchema;

use crate::answer::{Answer, ReplicaError};
use crate::client::Pending;
use crate::command::{PageSize, Read};
use crate::fan_out::{Share, shares};
use crate::reads::Reads;
use crate::route::Failures;
use crate::serve::has_clustering;

/// Places of the first page of each node, and of the largest one.
const PLACES_FIRST: u32 = 64;
const PLACES_MAX: u32 = 4096;

/// One node's ranking.
struct Source {
    share: Share,
    /// The ranking of this node; `None` if another node is asked.
    local: Option<Box<dyn Ranked>>,
    pending: Option<Box<dyn Pending>>,
    places: VecDeque<(Place, f32)>,
    received: u32,
    places_max: u32,
    is_last: bool,
}

/// See the module.
pub(crate) struct ClusterRanked {
    reads: Reads,
    table: Arc<TableSchema>,
    index: String,
    vector: Vec<f32>,
    comparator: ClusteringComparator,
    failures: Failures,
    sources: Vec<Source>,
}

/// The answer of this node, if it does not follow one of the tablets any more.
struct Refused(ReplicaError);

impl Pending for Refused {
    fn wait(self: Box<Self>, _deadline_nanos: u64) -> Result<Answer, ReplicaError> {
        Err(self.0)
    }
}

impl ClusterRanked {
    pub fn begin(
        reads: Reads,
        table: &Arc<TableSchema>,
        index: &str,
        vector: &[f32],
    ) -> Result<Self, ReadError> {
        let shares = shares(&reads, table, &[KeyRange::all()], &Failures::new())?;
        let mut ranked = Self {
            reads,
            comparator: ClusteringComparator::of(table),
            table: table.clone(),
            index: index.to_owned(),
            vector: vector.to_vec(),
            failures: Failures::new(),
            sources: Vec::new(),
        };
        for share in shares {
            let source = ranked.open(share)?;
            ranked.sources.push(source);
        }
        Ok(ranked)
    }

    fn open(&self, share: Share) -> Result<Source, ReadError> {
        let mut source = Source {
            local: None,
            pending: None,
            places: VecDeque::new(),
            received: 0,
            places_max: PLACES_FIRST,
            is_last: false,
            share,
        };
        match self.reads.is_here(source.share.node) {
            true => {
                for tablets in &source.share.tablets {
                    if let Err(refused) = self.reads.wait_here(&self.table, tablets.clone())? {
                        source.pending = Some(Box::new(Refused(refused)));
                        return Ok(source);
                    }
                }
                let local = self.reads.shared.local();
                let ranked = local.index_nearest(&self.table, &self.index, &self.vector);
                source.local = Some(ranked.map_err(|error| self.reads.of_local(error))?);
            }
            false => self.ask(&mut source)?,
        }
        Ok(source)
    }

    fn ask(&self, source: &mut Source) -> Result<(), ReadError> {
        let read = Read::Nearest {
            index: self.index.clone(),
            vector: self.vector.clone(),
            ranges: source.share.ranges.clone(),
            skip: source.received,
        };
        let page = PageSize {
            rows: source.places_max,
            bytes: self.reads.shared.options.page_max.bytes,
        };
        let applied = source.share.barrier(&self.reads, &self.table)?;
        let pending = self
            .reads
            .send(source.share.node, self.table.id, applied, page, read);
        source.pending = Some(pending);
        Ok(())
    }

    /// Fetches the head of a source, unless it is there or the source has ended.
    fn fetch(&self, source: &mut Source) -> Result<Result<(), ReplicaError>, ReadError> {
        while source.places.is_empty() && !source.is_last {
            if let Some(local) = &mut source.local {
                match local.next()? {
                    None => source.is_last = true,
                    Some(ranked) if source.share.contains(&ranked.0) => source.places.push_back(ranked),
                    Some(_) => {}
                }
                continue;
            }
            if source.pending.is_none() {
                self.ask(source)?;
            }
            let Some(pending) = source.pending.take() else {
                continue;
            };
            let answered = self.reads.wait(pending)?;
            match answered.and_then(|answer| self.checked(answer, &source.share)) {
                Err(error) => return Ok(Err(error)),
                Ok((places, is_last)) => {
                    source.received = source.received.saturating_add(places.len() as u32);
                    source.places_max = (source.places_max * 4).min(PLACES_MAX);
                    source.places.extend(places);
                    source.is_last = is_last;
                }
            }
        }
        Ok(Ok(()))
    }

    fn checked(&self, answer: Answer, share: &Share) -> Result<(Vec<(Place, f32)>, bool), ReplicaError> {
        let broken = |rule: &str| Err(ReplicaError::Failed(format!("its answer breaks a rule: {rule}")));
        let Answer::Ranked { places, is_last } = answer else {
            return broken("nearest vectors were asked for");
        };
        let is_inside =
            |(place, _): &(Place, f32)| has_clustering(place, &self.comparator) && share.contains(place);
        match places.iter().all(is_inside) && (is_last || !places.is_empty()) {
            true => Ok((places, is_last)),
            false => broken("places lie in the ranges that were asked for"),
        }
    }

    /// Gives the ranges of a source, whose node did not answer, to other replicas.
    fn replace(&mut self, at: usize, error: ReplicaError) -> Result<(), ReadError> {
        let Share { node, versions, .. } = self.sources[at].share;
        tracing::debug!(node, %error, index = self.index, "a ranking begins anew at other replicas");
        self.reads.lose(&mut self.failures, node, versions, error);
        let ranges = self.sources.swap_remove(at).share.ranges;
        for share in shares(&self.reads, &self.table, &ranges, &self.failures)? {
            let source = self.open(share)?;
            self.sources.push(source);
        }
        Ok(())
    }
}

impl Ranked for ClusterRanked {
    fn next(&mut self) -> Result<Option<(Place, f32)>, ReadError> {
        let mut at = 0;
        while at < self.sources.len() {
            let mut sources = std::mem::take(&mut self.sources);
            let fetched = self.fetch(&mut sources[at]);
            self.sources = sources;
            match fetched? {
                Ok(()) => at += 1,
                // `replace` removes this source, so another one is at the index now.
                Err(error) => self.replace(at, error)?,
            }
        }
        let heads = self.sources.iter_mut().filter(|source| !source.places.is_empty());
        let score = |source: &Source| {
            source
                .places
                .front()
                .map_or(f32::NEG_INFINITY, |(_, score)| *score)
        };
        let nearest = heads.max_by(|one, other| score(one).total_cmp(&score(other)));
        Ok(nearest.and_then(|source| source.places.pop_front()))
    }
}
