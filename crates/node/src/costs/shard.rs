//! The costs that one thread has counted, by shape.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;
use ilion_query::Shape;

use super::tally::Tally;
use super::{ShapeCosts, Spent, Stages};

/// Most shapes that a shard counts separately; above this number, shapes are evicted.
const SHAPES_MAX: usize = 500;

/// A shape and its costs.
#[derive(Clone, Debug)]
struct KnownShape {
    id: u64,
    shape: Arc<Shape>,
    tally: Tally,
}

/// Evicted shapes of one table, counted as one shape.
#[derive(Clone, Debug)]
struct EvictedShapes {
    shape: Arc<Shape>,
    costs: ShapeCosts,
}

/// The costs that one thread has counted.
#[derive(Debug, Default)]
pub struct CostShard {
    known: Vec<KnownShape>,
    /// Id of each shape to its index in `known`.
    places: HashMap<u64, usize, foldhash::fast::FixedState>,
    /// Id and index of the last look-up: many look-ups repeat the last id.
    last: (u64, usize),
    /// The costs of evicted shapes.
    others: BTreeMap<EvictedKey, EvictedShapes>,
}

/// Keyspace, table, [`Shape::is_read`] and [`Shape::is_scan`].
type EvictedKey = (String, String, bool, bool);

impl CostShard {
    /// Counts an execution. `shape` is called only if the id is new.
    #[inline]
    pub fn record(&mut self, id: u64, shape: impl FnOnce() -> Arc<Shape>, spent: &Spent<'_>) {
        let place = match self.last {
            (last, place) if last == id => Some(place),
            _ => self.places.get(&id).copied(),
        };
        let place = place.unwrap_or_else(|| self.place_for(id, shape()));
        self.last = (id, place);
        if let Some(known) = self.known.get_mut(place) {
            known.tally.record(spent);
        }
    }

    #[cold]
    fn place_for(&mut self, id: u64, shape: Arc<Shape>) -> usize {
        if self.known.len() >= SHAPES_MAX {
            self.make_room();
        }
        self.known.push(KnownShape {
            id,
            shape,
            tally: Tally::default(),
        });
        let place = self.known.len() - 1;
        self.places.insert(id, place);
        place
    }

    /// Counts the times of an execution that was recorded without `elapsed_nanos`.
    #[inline]
    pub fn record_times(&mut self, id: u64, stages: &Stages) {
        let place = match self.last {
            (last, place) if last == id => Some(place),
            _ => self.places.get(&id).copied(),
        };
        // If the shape was evicted meanwhile, its times are lost.
        if let Some(known) = place.and_then(|place| self.known.get_mut(place)) {
            known.tally.record_times(stages);
        }
    }

    /// Evicts an eighth of the shapes: those with the fewest calls.
    fn make_room(&mut self) {
        self.known
            .sort_by_key(|known| std::cmp::Reverse(known.tally.calls()));
        let kept = SHAPES_MAX - SHAPES_MAX / 8;
        for known in self.known.split_off(kept.min(self.known.len())) {
            self.make_one_of_others(&known);
        }
        let places = self.known.iter().enumerate();
        self.places = places.map(|(place, known)| (known.id, place)).collect();
        self.last = (0, 0);
    }

    fn make_one_of_others(&mut self, known: &KnownShape) {
        let shape = &known.shape;
        let key = (
            shape.keyspace.clone(),
            shape.table.clone(),
            shape.is_read,
            shape.is_scan,
        );
        let others = self.others.entry(key).or_insert_with(|| EvictedShapes {
            shape: Arc::new(Shape {
                text: others_of(shape),
                ..Shape::clone(shape)
            }),
            costs: ShapeCosts::default(),
        });
        others.costs.merge(&known.tally.costs());
    }

    pub(super) fn shape(&self, id: u64) -> Option<Arc<Shape>> {
        let place = *self.places.get(&id)?;
        self.known.get(place).map(|known| known.shape.clone())
    }

    /// Each shape with its costs. Evicted shapes are counted as one shape per table and kind.
    pub(super) fn known(&self) -> impl Iterator<Item = (&Arc<Shape>, ShapeCosts)> {
        let known = self.known.iter().map(|known| (&known.shape, known.tally.costs()));
        let others = self.others.values();
        known.chain(others.map(|others| (&others.shape, others.costs.clone())))
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

fn others_of(shape: &Shape) -> String {
    match (shape.table.as_str(), shape.is_read) {
        ("", _) => "(other statements)".to_owned(),
        (table, true) if shape.is_scan => format!("(other scans of {table})"),
        (table, true) => format!("(other reads of {table})"),
        (table, false) => format!("(other writes of {table})"),
    }
}

#[cfg(test)]
mod tests {
    use ilion_env::{Count, cost};

    use super::*;

    /// One execution that looks at this many rows; an error if at none.
    fn record(shard: &mut CostShard, id: u64, rows: u64, elapsed_nanos: Option<u64>) {
        let scope = cost::begin();
        cost::add(Count::Rows, rows);
        let spent = Spent {
            cost: &scope,
            elapsed_nanos,
            is_error: rows == 0,
        };
        shard.record(id, || shape(id), &spent);
    }

    fn shape(id: u64) -> Arc<Shape> {
        Arc::new(Shape {
            id,
            ..Shape::default()
        })
    }

    #[test]
    fn executions_of_a_shape_are_added_up() {
        let mut shard = CostShard::default();
        for rows in [3, 0, 4] {
            record(&mut shard, 7, rows, Some(1000));
        }
        let (_, costs) = shard.known().next().unwrap();
        assert_eq!(
            (costs.calls, costs.errors, costs.total.of(Count::Rows)),
            (3, 1, 7)
        );
        assert_eq!(costs.rows.summary().max, 4);
    }

    #[test]
    fn shapes_without_end_take_bounded_memory_and_lose_no_call() {
        let mut shard = CostShard::default();
        for id in 1..=10_000 {
            record(&mut shard, id, 1, Some(1000));
            record(&mut shard, 1, 1, Some(1000));
        }
        assert!(shard.known().count() <= SHAPES_MAX + 1);
        assert!(shard.shape(1).is_some(), "what is called most stays");
        assert!(shard.known().any(|(shape, _)| shape.text == "(other statements)"));
        let calls: u64 = shard.known().map(|(_, costs)| costs.calls).sum();
        assert_eq!(calls, 20_000);
    }

    #[test]
    fn every_stage_of_a_request_belongs_to_its_statement() {
        let mut shard = CostShard::default();
        record(&mut shard, 7, 1, None);
        let stages = Stages {
            queue: 600,
            execute: 300,
            log_wait: Some(4000),
            send: 100,
        };
        shard.record_times(7, &stages);
        let (_, costs) = shard.known().next().unwrap();
        assert_eq!(costs.latency.summary().max, 5000);
        assert_eq!(costs.local_latency.summary().max, 4300);
        assert_eq!(costs.stage_nanos, [600, 300, 4000, 100]);
        assert_eq!(costs.total.of(Count::LogNanos), 4000);
        assert_eq!(costs.calls, 1);
    }
}
