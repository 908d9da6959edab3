//! Reports about statements: their costs, and the share of requests that are traced at random.

use std::collections::BTreeMap;
use std::fmt;

use ilion_env::Count;
use serde::{Deserialize, Serialize};

use ilion_node::costs::StatementFacts;

/// Costs of statements; the shape that took most time comes first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatementsReport {
    /// One report per shape.
    pub statements: Vec<StatementReport>,
}

/// Costs of the statements of one shape.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatementReport {
    /// Keyspace of its table or, without a table, the keyspace of its unqualified names.
    pub keyspace: String,
    /// The text with `?` for each value.
    pub statement: String,
    /// Executions.
    pub calls: u64,
    /// Executions that ended with an error.
    pub errors: u64,
    /// Sum of their latencies, in milliseconds.
    pub total_millis: f64,
    /// Latency in milliseconds: percentiles 50, 95, 99 and the maximum.
    pub latency_millis: [f64; 4],
    /// Sum of the bytes read from disk.
    pub disk_bytes: u64,
    /// Bytes read from disk for each byte of the answer, 99th percentile.
    pub amplification_p99: f64,
    /// Rows read, 99th percentile.
    pub rows_p99: u64,
    /// Tombstones read, 99th percentile.
    pub tombstones_p99: u64,
    /// Sums of all counters, by their names in EXPLAIN ANALYZE.
    #[serde(default)]
    pub counts: BTreeMap<String, u64>,
}

impl StatementsReport {
    /// Sorts the shapes by total time.
    pub(super) fn of(facts: &[StatementFacts]) -> Self {
        let mut statements: Vec<StatementReport> = facts.iter().map(report).collect();
        statements.sort_by(|a, b| b.total_millis.total_cmp(&a.total_millis));
        Self { statements }
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown to people")]
fn report(facts: &StatementFacts) -> StatementReport {
    let costs = &facts.costs;
    let latency = costs.latency.summary();
    let millis = |nanos: u64| nanos as f64 / 1e6;
    StatementReport {
        keyspace: facts.shape.keyspace.clone(),
        statement: facts.shape.text.clone(),
        calls: costs.calls,
        errors: costs.errors,
        total_millis: millis(latency.sum),
        latency_millis: [latency.p50, latency.p95, latency.p99, latency.max].map(millis),
        disk_bytes: costs.disk_bytes.summary().sum,
        amplification_p99: costs.amplification.summary().p99 as f64 / 100.0,
        rows_p99: costs.rows.summary().p99,
        tombstones_p99: costs.tombstones.summary().p99,
        counts: Count::ALL
            .iter()
            .map(|count| (count.name().to_owned(), costs.total.of(*count)))
            .chain([("disk_wait_nanos".to_owned(), costs.total.io.read_nanos)])
            .collect(),
    }
}

impl fmt::Display for StatementsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>10} {:>7} {:>9} {:>9} {:>9} {:>12} {:>9} {:>8} {:>8}  statement",
            "calls", "errors", "p50 ms", "p99 ms", "max ms", "disk bytes", "read amp", "rows", "tombst."
        )?;
        for statement in &self.statements {
            let [p50, _, p99, max] = statement.latency_millis;
            write!(
                f,
                "\n{:>10} {:>7} {p50:>9.3} {p99:>9.3} {max:>9.3} {:>12} {:>9.2} {:>8} {:>8}  {}{}",
                statement.calls,
                statement.errors,
                statement.disk_bytes,
                statement.amplification_p99,
                statement.rows_p99,
                statement.tombstones_p99,
                match statement.keyspace.as_str() {
                    "" => String::new(),
                    keyspace => format!("[{keyspace}] "),
                },
                statement.statement,
            )?;
        }
        Ok(())
    }
}

/// Share of the requests that are traced although their clients did not request it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceProbabilityReport {
    /// From 0 to 1.
    pub probability: f64,
}

impl fmt::Display for TraceProbabilityReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "trace probability: {}", self.probability)
    }
}
