//! Metrics by table, computed at each scrape: sizes, what statements read of the table, and their latencies.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use ilion_engine::{Engine, TableFacts};
use ilion_env::Count;
use ilion_env::cost::Cost;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use ilion_node::LiveSettings;
use ilion_node::costs::{ShapeCosts, Stages, StatementCosts, TableCosts, in_seconds};

/// Upper bounds of the buckets, in nanoseconds: powers of two minus one, from about 1 us to about 4 s. At these bounds the
/// histograms of costs are exact.
const BOUNDS: [u64; 23] = {
    let mut bounds = [0; 23];
    let mut place = 0;
    while place < bounds.len() {
        bounds[place] = (1 << (10 + place)) - 1;
        place += 1;
    }
    bounds
};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct TableLabels {
    keyspace: String,
    table: String,
    operation: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StageLabels {
    keyspace: String,
    table: String,
    operation: &'static str,
    stage: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct NameLabels {
    keyspace: String,
    table: String,
}

/// Keyspace and name of a table.
type Name = (String, String);

/// Collects the metrics of the busiest tables, so that a scrape stays small on a node with thousands of them.
pub(super) struct TableMetrics {
    pub costs: Arc<StatementCosts>,
    pub engine: Arc<Engine>,
    /// The settings; `metrics_tables_max` is the largest number of tables.
    pub settings: Arc<LiveSettings>,
}

impl fmt::Debug for TableMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TableMetrics")
    }
}

/// Name of a metric, help text, and its value for a table.
type Metric<T> = (&'static str, &'static str, fn(&T) -> u64);

const GAUGES: [Metric<TableFacts>; 5] = [
    ("table_sstables", "SSTables of a table", |facts| facts.sstables),
    (
        "table_sstable_bytes",
        "Bytes of the SSTables of a table",
        |facts| facts.sstable_bytes,
    ),
    (
        "table_memtable_bytes",
        "Memory of the memtables of a table",
        |facts| facts.memtable_bytes,
    ),
    (
        "table_partitions",
        "About how many partitions a table has; one in several SSTables counts for each",
        |facts| facts.estimated_partitions,
    ),
    (
        "table_compactions_pending",
        "Compactions of a table that are due",
        |facts| facts.pending_compactions,
    ),
];

const COUNTERS: [Metric<Cost>; 9] = [
    (
        "table_rows_read",
        "Live rows of a table that statements read",
        |cost| cost.of(Count::Rows),
    ),
    (
        "table_tombstones_read",
        "Tombstones of a table that statements read, without those past gc grace",
        |cost| cost.of(Count::Tombstones),
    ),
    (
        "table_sstables_read",
        "SSTables of a table in which statements looked up partitions",
        |cost| cost.of(Count::SSTablesTouched),
    ),
    (
        "table_sstables_skipped_by_filter",
        "SSTables of a table that statements skipped, since a token map or Bloom filter excluded the key",
        |cost| cost.of(Count::SkippedByFilter),
    ),
    (
        "table_chunk_cache_hits",
        "Chunks of a table that statements found in the chunk cache",
        |cost| cost.of(Count::CachedChunks),
    ),
    (
        "table_key_cache_hits",
        "Positions of partitions of a table that statements found in the key cache",
        |cost| cost.of(Count::CachedKeys),
    ),
    (
        "table_row_cache_hits",
        "Partitions of a table that statements found in the row cache",
        |cost| cost.of(Count::CachedPartitions),
    ),
    (
        "table_disk_reads",
        "Reads of files for statements on a table",
        |cost| cost.io.reads,
    ),
    (
        "table_disk_read_bytes",
        "Bytes read from files for statements on a table",
        |cost| cost.io.bytes_read,
    ),
];

impl Collector for TableMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let most = self.settings.current().metrics_tables_max;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let (mut costs, mut facts) = (self.costs.by_table(), self.engine.table_facts());
        let count = ConstGauge::new(i64::try_from(facts.len()).unwrap_or(i64::MAX));
        let help = "Tables, those of the server included; metrics with the label table are of the busiest ones (metrics_tables_max)";
        count.encode(encoder.encode_descriptor("tables", help, None, MetricType::Gauge)?)?;
        let chosen = busiest(&costs, &facts, most);
        costs.retain(|name, _| chosen.contains(name));
        facts.retain(|facts| chosen.contains(&name_of(facts)));
        encode_facts(&mut encoder, &facts)?;
        encode_costs(&mut encoder, &costs)?;
        encode_times(&mut encoder, &costs)
    }
}

fn name_of(facts: &TableFacts) -> Name {
    (facts.keyspace.clone(), facts.table.clone())
}

/// The tables with the most statements; among those with equally many, the largest. Pure.
fn busiest(costs: &BTreeMap<Name, TableCosts>, facts: &[TableFacts], most: usize) -> BTreeSet<Name> {
    let mut all: BTreeMap<Name, (u64, u64)> = BTreeMap::new();
    for facts in facts {
        all.entry(name_of(facts)).or_default().1 = facts.sstable_bytes + facts.memtable_bytes;
    }
    for (name, costs) in costs {
        let TableCosts { reads, scans, writes } = costs;
        all.entry(name.clone()).or_default().0 = reads.calls + scans.calls + writes.calls;
    }
    let mut all: Vec<(Name, (u64, u64))> = all.into_iter().collect();
    // Stable: by name where nothing else differs.
    all.sort_by_key(|(_, weight)| Reverse(*weight));
    all.into_iter().take(most).map(|(name, _)| name).collect()
}

fn encode_facts(encoder: &mut DescriptorEncoder<'_>, tables: &[TableFacts]) -> fmt::Result {
    for (name, help, value) in GAUGES {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for facts in tables {
            let (keyspace, table) = name_of(facts);
            let gauge = ConstGauge::new(i64::try_from(value(facts)).unwrap_or(i64::MAX));
            gauge.encode(family.encode_family(&NameLabels { keyspace, table })?)?;
        }
    }
    Ok(())
}

fn encode_costs(encoder: &mut DescriptorEncoder<'_>, tables: &BTreeMap<Name, TableCosts>) -> fmt::Result {
    let help = "Statements on a table that ended with an error";
    let mut family = encoder.encode_descriptor("table_requests_failed", help, None, MetricType::Counter)?;
    for (labels, costs) in by_operation(tables) {
        ConstCounter::new(costs.errors).encode(family.encode_family(&labels)?)?;
    }
    for (name, help, value) in COUNTERS {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for ((keyspace, table), costs) in tables {
            let TableCosts { reads, scans, writes } = costs;
            let sum = [reads, scans, writes]
                .map(|costs| value(&costs.total))
                .into_iter()
                .sum();
            let labels = NameLabels {
                keyspace: keyspace.clone(),
                table: table.clone(),
            };
            ConstCounter::<u64>::new(sum).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

/// The costs of each operation that a table has seen.
fn by_operation(tables: &BTreeMap<Name, TableCosts>) -> impl Iterator<Item = (TableLabels, &ShapeCosts)> {
    tables.iter().flat_map(|((keyspace, table), costs)| {
        let TableCosts { reads, scans, writes } = costs;
        let all = [("read", reads), ("scan", scans), ("write", writes)].into_iter();
        all.filter(|(_, costs)| costs.latency.count() > 0)
            .map(move |(operation, costs)| {
                let labels = TableLabels {
                    keyspace: keyspace.clone(),
                    table: table.clone(),
                    operation,
                };
                (labels, costs)
            })
    })
}

fn encode_times(encoder: &mut DescriptorEncoder<'_>, tables: &BTreeMap<Name, TableCosts>) -> fmt::Result {
    let help =
        "Time of statements on a table, from the last byte of a request to the first byte of its answer.";
    let seconds = Some(&Unit::Seconds);
    let mut family = encoder.encode_descriptor("table_request", help, seconds, MetricType::Histogram)?;
    for (labels, costs) in by_operation(tables) {
        encode_latency(&mut family, &labels, costs)?;
    }
    let help = "Time of a stage of all statements on a table, see ilion_cql_request_stage_seconds.";
    let mut family = encoder.encode_descriptor("table_request_stage", help, seconds, MetricType::Counter)?;
    for (labels, costs) in by_operation(tables) {
        for (stage, nanos) in Stages::NAMES.into_iter().zip(costs.stage_nanos) {
            let labels = StageLabels {
                keyspace: labels.keyspace.clone(),
                table: labels.table.clone(),
                operation: labels.operation,
                stage,
            };
            ConstCounter::new(in_seconds(nanos)).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn encode_latency(family: &mut MetricEncoder<'_>, labels: &TableLabels, costs: &ShapeCosts) -> fmt::Result {
    let all = costs.latency.count();
    let mut below = 0;
    let counts = costs.latency.counts_up_to(BOUNDS).into_iter();
    let mut buckets: Vec<(f64, u64)> = counts
        .zip(BOUNDS)
        .map(|(count, bound)| {
            let in_bucket = count - below;
            below = count;
            (in_seconds(bound + 1), in_bucket)
        })
        .collect();
    buckets.push((f64::INFINITY, all - below));
    let sum = in_seconds(costs.latency.summary().sum);
    family
        .encode_family(labels)?
        .encode_histogram::<NoLabelSet>(sum, all, &buckets, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_tables_come_first_then_the_largest() {
        let name = |table: &str| ("ks".to_owned(), table.to_owned());
        let facts = |table: &str, sstable_bytes| TableFacts {
            keyspace: "ks".to_owned(),
            table: table.to_owned(),
            sstable_bytes,
            ..TableFacts::default()
        };
        let called = |calls| {
            let mut costs = TableCosts::default();
            costs.writes.calls = calls;
            costs
        };
        let costs = [(name("busy"), called(9)), (name("gone"), called(1))].into();
        let facts = [
            facts("idle", 0),
            facts("large", 500),
            facts("busy", 1),
            facts("small", 5),
        ];
        let chosen = |most| {
            busiest(&costs, &facts, most)
                .into_iter()
                .map(|(_, table)| table)
                .collect::<Vec<_>>()
        };
        assert!(chosen(0).is_empty());
        assert_eq!(chosen(1), ["busy"]);
        assert_eq!(chosen(3), ["busy", "gone", "large"]);
        assert_eq!(chosen(100).len(), 5);
    }
}
