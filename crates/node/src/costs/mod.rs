//! Costs of statements by shape: `system_views.statements`.
//!
//! Each thread that executes statements counts into its own shard, so counting does not contend for locks. Readers add the
//! shards up.

mod histogram;
mod rates;
mod shape_costs;
mod shard;
mod stages;
mod tally;

pub use histogram::{Histogram, Summary};
pub use rates::{OperationKind, RecentRates};
pub use shape_costs::{ShapeCosts, Spent};
pub use shard::CostShard;
pub use stages::Stages;
pub use stages::in_seconds;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use ilion_query::Shape;
use parking_lot::Mutex;

/// Number of shards for threads that have no shard of their own.
const SHARED: usize = 8;

/// Costs of statements since the start or the last reset.
#[derive(Debug, Default)]
pub struct StatementCosts {
    shards: Mutex<Vec<Arc<Mutex<CostShard>>>>,
    shared: [Mutex<CostShard>; SHARED],
}

thread_local! {
    static SHARE: usize = NEXT_SHARE.fetch_add(1, Relaxed) % SHARED;
}

static NEXT_SHARE: AtomicUsize = AtomicUsize::new(0);

/// A shape and the costs of its statements.
#[derive(Clone, Debug)]
pub struct StatementFacts {
    /// The shape.
    pub shape: Arc<Shape>,
    /// The costs of all its executions.
    pub costs: ShapeCosts,
}

/// Costs of the statements on one table.
#[derive(Clone, Debug, Default)]
pub struct TableCosts {
    /// SELECTs that name partition keys.
    pub reads: ShapeCosts,
    /// SELECTs that do not name partition keys.
    pub scans: ShapeCosts,
    /// Statements that write.
    pub writes: ShapeCosts,
}

impl TableCosts {
    /// Reads and scans together.
    pub fn all_reads(&self) -> ShapeCosts {
        let mut all = self.reads.clone();
        all.merge(&self.scans);
        all
    }
}

impl StatementCosts {
    /// A new shard for one thread.
    pub fn new_shard(&self) -> Arc<Mutex<CostShard>> {
        let shard = Arc::<Mutex<CostShard>>::default();
        self.shards.lock().push(shard.clone());
        shard
    }

    /// The shard for a thread without a shard of its own. These threads are spread over the shared shards.
    pub(crate) fn shared_shard(&self) -> &Mutex<CostShard> {
        &self.shared[SHARE.with(|share| *share)]
    }

    /// Calls `act` with each shard.
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

    /// The costs of each table, by keyspace and name, without statements on no table or on several.
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

    /// The shape with this id, if a shard has it.
    pub fn shape(&self, id: u64) -> Option<Arc<Shape>> {
        let mut found = None;
        self.each(|shard| found = found.take().or_else(|| shard.shape(id)));
        found
    }

    /// Deletes all costs.
    pub fn reset(&self) {
        self.each(CostShard::clear);
    }
}
