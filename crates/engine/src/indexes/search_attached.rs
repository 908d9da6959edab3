//! A search in the attached indexes of memtables and SSTables.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use ilion_index::{
    Candidates, Estimate, MemtableIndex, NoCandidates, Place, Predicate, Ranked, SSTableIndex, Union,
};
use ilion_rows::{ClusteringComparator, ReadError};

use super::not_built;
use crate::table_store::{LiveIndex, TableStore};
use crate::view::View;
use crate::{Error, Result};

/// The parts of an index for the sources of one view.
pub(crate) struct AttachedSources {
    /// Keeps the SSTables of the view, so that their files are not removed.
    _view: View,
    memtables: Vec<Arc<dyn MemtableIndex>>,
    sstables: Vec<Arc<dyn SSTableIndex>>,
}

impl AttachedSources {
    pub(crate) fn of(store: &TableStore, live: &LiveIndex) -> Result<Self> {
        let view = View::clone(&store.view());
        let mut memtables = Vec::new();
        for memtable in &view.memtables {
            let beside = view
                .memtable_indexes
                .iter()
                .find(|(other, _)| Arc::ptr_eq(other, memtable));
            match beside.and_then(|(_, indexes)| indexes.attached(live.name())) {
                Some(index) => memtables.push(index.clone()),
                None if memtable.is_empty() => {}
                None => return Err(not_built(live)),
            }
        }
        let sstables = view.sstables.iter().map(|sstable| sstable.index(live.name()));
        Ok(Self {
            sstables: sstables.collect::<Option<_>>().ok_or_else(|| not_built(live))?,
            memtables,
            _view: view,
        })
    }

    pub(crate) fn estimate(&self, predicate: &Predicate) -> Estimate {
        let of_memtables = self.memtables.iter().map(|index| index.estimate(predicate));
        let of_sstables = self.sstables.iter().map(|index| index.estimate(predicate));
        of_memtables
            .chain(of_sstables)
            .fold(Estimate::default(), |sum, one| Estimate {
                rows: sum.rows + one.rows,
                files: sum.files + one.files,
            })
    }

    /// Rows that may match.
    pub(crate) fn search(self, live: &LiveIndex, predicate: &Predicate) -> Result<Box<dyn Candidates>> {
        let mut inputs: Vec<Box<dyn Candidates>> = Vec::new();
        for index in &self.memtables {
            inputs.push(index.search(predicate));
        }
        for index in &self.sstables {
            inputs.push(index.clone().search(predicate)?);
        }
        if inputs.is_empty() {
            return Ok(Box::new(NoCandidates));
        }
        let comparator = ClusteringComparator::of(&live.index.definition().table);
        Ok(Box::new(Holding {
            candidates: Union::of(inputs, comparator),
            _sources: self,
        }))
    }

    /// Rows by their distance, the nearest first.
    pub(crate) fn nearest(self, live: &LiveIndex, vector: &[f32]) -> Result<Box<dyn Ranked>> {
        let does_not = || Error::Refused(format!("index {} does not rank", live.name()));
        let mut inputs: Vec<Box<dyn Ranked>> = Vec::new();
        for index in &self.memtables {
            inputs.push(index.nearest(vector).ok_or_else(does_not)?);
        }
        for index in &self.sstables {
            inputs.push(index.clone().nearest(vector)?.ok_or_else(does_not)?);
        }
        Ok(Box::new(MergedRanks {
            heads: BinaryHeap::new(),
            unasked: (0..inputs.len()).collect(),
            inputs,
            _sources: self,
        }))
    }
}

/// Candidates together with the view that they come from, which keeps its files.
struct Holding {
    candidates: Union,
    _sources: AttachedSources,
}

impl Candidates for Holding {
    fn next(&mut self) -> std::result::Result<Option<ilion_index::Candidate>, ReadError> {
        self.candidates.next()
    }

    fn seek(&mut self, place: &Place) -> std::result::Result<(), ReadError> {
        self.candidates.seek(place)
    }
}

/// Merges the ranked rows of several sources: returns the nearest of their next rows first.
struct MergedRanks {
    heads: BinaryHeap<Head>,
    /// Sources whose next row is not read yet.
    unasked: Vec<usize>,
    inputs: Vec<Box<dyn Ranked>>,
    _sources: AttachedSources,
}

struct Head {
    score: f32,
    place: Place,
    input: usize,
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Head {}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score
            .total_cmp(&other.score)
            .then(other.input.cmp(&self.input))
    }
}

impl Ranked for MergedRanks {
    fn next(&mut self) -> std::result::Result<Option<(Place, f32)>, ReadError> {
        for input in self.unasked.drain(..) {
            if let Some((place, score)) = self.inputs[input].next()? {
                self.heads.push(Head { score, place, input });
            }
        }
        let Some(head) = self.heads.pop() else {
            return Ok(None);
        };
        self.unasked.push(head.input);
        Ok(Some((head.place, head.score)))
    }
}
