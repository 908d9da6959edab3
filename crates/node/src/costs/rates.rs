//! Rates per second over the last minutes: statements on each table, look-ups in caches.
//!
//! Compat: exponentially weighted averages as in Cassandra's timers (five minutes) and caches (fifteen minutes), updated every
//! five seconds.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use ilion_engine::{CacheFacts, Engine};
use parking_lot::Mutex;

use super::{StatementCosts, TableCosts};
use crate::ticker::Ticker;

const TICK: Duration = Duration::from_secs(5);
/// 1 - exp(-5 s / 5 min).
const WEIGHT_OF_5_MINUTES: f64 = 0.016_528_546_178_382_5;
/// 1 - exp(-5 s / 15 min).
const WEIGHT_OF_15_MINUTES: f64 = 0.005_540_151_995_103_3;

/// How a statement uses its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// A SELECT that names partition keys.
    Reads,
    /// A SELECT that does not name partition keys.
    Scans,
    /// A statement that writes.
    Writes,
}

/// The current rates.
#[derive(Debug, Default)]
pub struct RecentRates {
    tables: Mutex<HashMap<(String, String), [Rate; 3]>>,
    /// For each cache, the rate of requests and the rate of hits.
    caches: Mutex<HashMap<&'static str, [Rate; 2]>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    /// The count at the last tick.
    count: u64,
    per_second: f64,
}

impl Rate {
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    fn tick(&mut self, count: u64, weight: f64) {
        // A lower count means that the counter was reset.
        let more = count.checked_sub(self.count).unwrap_or(count);
        self.count = count;
        let now = more as f64 / TICK.as_secs_f64();
        self.per_second += weight * (now - self.per_second);
    }
}

impl RecentRates {
    /// Statements per second of one kind on a table.
    pub fn of_table(&self, table: &(String, String), kind: OperationKind) -> f64 {
        let tables = self.tables.lock();
        tables
            .get(table)
            .map_or(0.0, |rates| rates[kind as usize].per_second)
    }

    /// Requests of a cache per second, and hits per second.
    pub(crate) fn of_cache(&self, name: &str) -> [f64; 2] {
        let caches = self.caches.lock();
        let rates = caches.get(name).copied().unwrap_or_default();
        rates.map(|rate| rate.per_second)
    }

    /// Starts a thread that updates the rates until the returned ticker is dropped.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn update(
        self: Arc<Self>,
        costs: &Arc<StatementCosts>,
        engine: &Arc<Engine>,
    ) -> io::Result<Ticker> {
        let (costs, engine) = (Arc::downgrade(costs), Arc::downgrade(engine));
        Ticker::start("ilion-rates", TICK, move || {
            if let Some(costs) = costs.upgrade() {
                self.tick_tables(&costs.by_table());
            }
            if let Some(engine) = engine.upgrade() {
                self.tick_caches(&engine.facts().caches);
            }
        })
    }

    fn tick_tables(&self, tables: &BTreeMap<(String, String), TableCosts>) {
        let mut known = self.tables.lock();
        for name in tables.keys() {
            if !known.contains_key(name) {
                known.insert(name.clone(), Default::default());
            }
        }
        for (name, rates) in &mut *known {
            let costs = tables.get(name);
            let calls = costs.map_or([0; 3], |costs| {
                [costs.reads.calls, costs.scans.calls, costs.writes.calls]
            });
            for (rate, calls) in rates.iter_mut().zip(calls) {
                rate.tick(calls, WEIGHT_OF_5_MINUTES);
            }
        }
    }

    fn tick_caches(&self, caches: &[CacheFacts]) {
        let mut known = self.caches.lock();
        for cache in caches {
            let [requests, hits] = known.entry(cache.name).or_default();
            requests.tick(cache.hits + cache.misses, WEIGHT_OF_15_MINUTES);
            hits.tick(cache.hits, WEIGHT_OF_15_MINUTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_rises_and_falls_with_the_statements_of_five_minutes() {
        let table = ("ks".to_owned(), "t".to_owned());
        let mut costs = BTreeMap::from([(table.clone(), TableCosts::default())]);
        let rates = RecentRates::default();
        rates.tick_tables(&costs);
        assert_eq!(rates.of_table(&table, OperationKind::Writes), 0.0);
        // An hour of 100 writes a second.
        for _ in 0..720 {
            costs.get_mut(&table).unwrap().writes.calls += 500;
            rates.tick_tables(&costs);
        }
        assert!((rates.of_table(&table, OperationKind::Writes) - 100.0).abs() < 0.01);
        assert_eq!(rates.of_table(&table, OperationKind::Reads), 0.0);
        // Five minutes of none leave a share of 1 / e.
        for _ in 0..60 {
            rates.tick_tables(&costs);
        }
        assert!((rates.of_table(&table, OperationKind::Writes) - 100.0 / std::f64::consts::E).abs() < 0.01);
        // What was reset counts from zero on.
        costs.get_mut(&table).unwrap().writes.calls = 0;
        rates.tick_tables(&costs);
        assert!(rates.of_table(&table, OperationKind::Writes) < 37.0);
    }

    #[test]
    fn a_cache_has_the_rates_of_fifteen_minutes() {
        let rates = RecentRates::default();
        let mut cache = CacheFacts {
            name: "keys",
            ..CacheFacts::default()
        };
        for _ in 0..2000 {
            cache.hits += 10;
            cache.misses += 40;
            rates.tick_caches(std::slice::from_ref(&cache));
        }
        let [requests, hits] = rates.of_cache("keys");
        assert!((requests - 10.0).abs() < 0.01 && (hits - 2.0).abs() < 0.01);
        assert_eq!(rates.of_cache("rows"), [0.0; 2]);
    }
}
