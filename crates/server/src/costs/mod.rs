//! What statements cost, by their shapes: `system_views.statements`.
//!
//! Each thread that executes statements counts into a shard of its own, so that counting waits for nobody; who wants to know adds
//! the shards up.

mod histogram;
mod rates;
mod shard;
mod slow;
mod stages;
mod tally;

pub use histogram::{Histogram, Summary};
pub use rates::{RateWatch, RecentRates, Sort};
pub use shard::{CostShard, ShapeCosts, Spent};
pub use slow::{SlowLog, SlowStatement};
pub use stages::Stages;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use ilion_query::Shape;
use parking_lot::Mutex;

/// Shards for threads that are no workers, which share them.
const SHARED: usize = 8;

/// What statements have cost since the start, or since they were reset.
#[derive(Debug, Default)]
pub struct StatementCosts {
    shards: Mutex<Vec<Arc<Mutex<CostShard>>>>,
    shared: [Mutex<CostShard>; SHARED],
}

thread_local! {
    static SHARE: usize = NEXT_SHARE.fetch_add(1, Relaxed) % SHARED;
}

static NEXT_SHARE: AtomicUsize = AtomicUsize::new(0);

/// A shape and what its statements have cost.
#[derive(Clone, Debug)]
pub struct StatementFacts {
    /// Which statements.
    pub shape: Arc<Shape>,
    /// What they cost.
    pub costs: ShapeCosts,
}

/// What statements on a table have cost.
#[derive(Clone, Debug, Default)]
pub struct TableCosts {
    /// Those that read partitions by their keys.
    pub reads: ShapeCosts,
    /// Those that read partitions whose keys they do not say.
    pub scans: ShapeCosts,
    /// Those that change it.
    pub writes: ShapeCosts,
}

impl TableCosts {
    /// All that read it.
    pub fn all_reads(&self) -> ShapeCosts {
        let mut all = self.reads.clone();
        all.merge(&self.scans);
        all
    }
}

impl StatementCosts {
    /// Where one thread counts.
    pub fn new_shard(&self) -> Arc<Mutex<CostShard>> {
        let shard = Arc::<Mutex<CostShard>>::default();
        self.shards.lock().push(shard.clone());
        shard
    }

    /// Where threads count that have no shard of their own; another one for another thread, as far as there are enough.
    pub fn shared_shard(&self) -> &Mutex<CostShard> {
        &self.shared[SHARE.with(|share| *share)]
    }

    /// Does something with each shard.
    fn each(&self, mut act: impl FnMut(&mut CostShard)) {
        let owned = self.shards.lock();
        let all = owned.iter().map(AsRef::as_ref).chain(&self.shared);
        all.for_each(|shard| act(&mut shard.lock()));
    }

    /// All shapes, by keyspace and text.
    pub fn list(&self) -> Vec<StatementFacts> {
        let mut all: BTreeMap<(String, String), StatementFacts> = BTreeMap::new();
        let mut add = |shape: &Arc<Shape>, costs: &ShapeCosts| {
            let key = (shape.keyspace.clone(), shape.text.clone());
            let facts = all.entry(key).or_insert_with(|| StatementFacts {
                shape: shape.clone(),
                costs: ShapeCosts::default(),
            });
            facts.costs.merge(costs);
        };
        self.each(|shard| shard.known().for_each(|(shape, costs)| add(shape, &costs)));
        all.into_values().collect()
    }

    /// The same by table, as far as statements are about one; by keyspace and name.
    pub fn by_table(&self) -> BTreeMap<(String, String), TableCosts> {
        let mut tables: BTreeMap<(String, String), TableCosts> = BTreeMap::new();
        for StatementFacts { shape, costs } in self.list() {
            if shape.table.is_empty() {
                continue;
            }
            let key = (shape.keyspace.clone(), shape.table.clone());
            let table = tables.entry(key).or_default();
            match (shape.is_read, shape.is_scan) {
                (true, false) => table.reads.merge(&costs),
                (true, true) => table.scans.merge(&costs),
                (false, _) => table.writes.merge(&costs),
            }
        }
        tables
    }

    /// The shape with this id, if it is remembered.
    pub fn shape(&self, id: u64) -> Option<Arc<Shape>> {
        let mut found = None;
        self.each(|shard| found = found.take().or_else(|| shard.shape(id)));
        found
    }

    /// Forgets everything.
    pub fn reset(&self) {
        self.each(CostShard::clear);
    }
}
