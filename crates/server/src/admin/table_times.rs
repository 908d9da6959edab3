//! Latencies of statements by table as Prometheus metrics, computed at each scrape.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::registry::Unit;

use crate::costs::{ShapeCosts, Stages, StatementCosts, TableCosts, in_seconds};

/// Upper bounds of the buckets, in nanoseconds: powers of two less one, from about 1 us to about 4 s. At these bounds the
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

/// Collects the latencies of all tables that statements were about.
pub(super) struct TableTimes(pub Arc<StatementCosts>);

impl fmt::Debug for TableTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TableTimes")
    }
}

impl Collector for TableTimes {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let tables = self.0.by_table();
        let of_tables = || {
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
        };
        let help =
            "Time of statements on a table, from the last byte of a request to the first byte of its answer.";
        let seconds = Some(&Unit::Seconds);
        let mut family = encoder.encode_descriptor("table_request", help, seconds, MetricType::Histogram)?;
        for (labels, costs) in of_tables() {
            encode_latency(&mut family, &labels, costs)?;
        }
        let help = "Time of a stage of all statements on a table, see ilion_cql_request_stage_seconds.";
        let mut family =
            encoder.encode_descriptor("table_request_stage", help, seconds, MetricType::Counter)?;
        for (labels, costs) in of_tables() {
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
