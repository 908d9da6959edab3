//! The vectors of one memtable: a graph that is searched while rows are written.

use std::sync::Arc;

use bytes::Bytes;
use ilion_rows::DecoratedKey;
use ilion_vector::MemoryGraph;
use parking_lot::RwLock;

use super::ranking::{Failed, Ranking};
use super::values::Values;
use crate::{Candidates, Estimate, MemtableIndex, NoCandidates, Place, Predicate, Ranked, RowChange};

/// Places of rows by their ordinals in the graph.
type Places = Arc<RwLock<Vec<Place>>>;

/// The vectors of one memtable.
pub(super) struct MemtableVectors {
    values: Arc<Values>,
    graph: Arc<MemoryGraph>,
    places: Places,
}

impl MemtableVectors {
    pub(super) fn new(values: Arc<Values>, graph: Arc<MemoryGraph>) -> Self {
        Self {
            graph,
            places: Places::default(),
            values,
        }
    }

    /// Removes a row's old vector, so that the row is no longer found by it.
    fn remove(&self, place: &Place, vector: &[f32]) {
        let places = self.places.read();
        let is_of_place = |ordinal: u32| places.get(ordinal as usize) == Some(place);
        self.graph.remove(vector, is_of_place);
    }

    fn insert(&self, place: Place, vector: &[f32]) -> isize {
        if self.values.options.similarity.check(vector).is_err() {
            // New writes are checked, so this vector comes from a replay or a cluster's log, under another definition.
            return 0;
        }
        let weight = size_of::<Place>() + place.key.key.len() + CLUSTERING_BYTES;
        let ordinal = {
            let mut places = self.places.write();
            places.push(place);
            u32::try_from(places.len() - 1).unwrap_or(u32::MAX)
        };
        let grown = self.graph.insert(ordinal, vector).unwrap_or_default();
        isize::try_from(grown + weight).unwrap_or(isize::MAX)
    }
}

/// Estimated memory of a clustering's values.
const CLUSTERING_BYTES: usize = 32;

impl MemtableIndex for MemtableVectors {
    fn apply(&self, key: &DecoratedKey, change: RowChange<'_>, _scratch: &mut Vec<u8>) -> isize {
        let before = change.row_before();
        let before = before.as_deref().and_then(|row| self.values.bytes(row));
        let after = self.values.bytes(change.after);
        if before == after {
            return 0;
        }
        let place = Place {
            key: DecoratedKey {
                token: key.token.clone(),
                key: Bytes::copy_from_slice(&key.key),
            },
            row: self.values.part(change.after),
        };
        if let Some(old) = before.and_then(|bytes| self.values.decode(bytes)) {
            self.remove(&place, &old);
        }
        let new = after.and_then(|bytes| self.values.decode(bytes));
        new.map_or(0, |vector| self.insert(place, &vector))
    }

    fn estimate(&self, _predicate: &Predicate) -> Estimate {
        Estimate::default()
    }

    fn search(&self, _predicate: &Predicate) -> Box<dyn Candidates> {
        Box::new(NoCandidates)
    }

    fn nearest(&self, vector: &[f32]) -> Option<Box<dyn Ranked>> {
        let places = self.places.clone();
        let locate = move |ordinal: u32| Ok(places.read().get(ordinal as usize).cloned());
        let ranking = Ranking::of(self.graph.clone(), None, vector, locate);
        Some(match ranking {
            Ok(ranking) => Box::new(ranking),
            Err(error) => Box::new(Failed(Some(error))),
        })
    }
}
