//! Metrics of a node of a cluster: `ilion_cluster_*`. A single node has none of them.

use std::fmt;
use std::sync::Arc;

use ilion_cluster::{ClusterView, MemberView, Phase};
use ilion_node::costs::in_seconds;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use super::engine_metrics::{encode_counter, encode_gauge};
use crate::cluster_probe::{ClusterCounts, ClusterProbe, Waits};

/// Collects what the parts of a cluster have counted.
pub(super) struct ClusterMetrics(pub Arc<dyn ClusterProbe>);

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct MemberLabels {
    state: &'static str,
    up: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct TabletLabel {
    tablet: u32,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StepLabel {
    step: &'static str,
}

/// Name, help text and value.
type Metric = (&'static str, &'static str, u64);

impl fmt::Debug for ClusterMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterMetrics")
    }
}

impl Collector for ClusterMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        if let Some(view) = self.0.view() {
            encode_members(&mut encoder, &view)?;
            let help = "Feature level of the cluster: what all of its members understand";
            encode_gauge(&mut encoder, "cluster_feature_level", help, view.level.into())?;
        }
        let counts = self.0.counts();
        for (name, help, value) in gauges_of(&counts) {
            encode_gauge(&mut encoder, name, help, value)?;
        }
        for (name, help, value) in counters_of(&counts) {
            encode_counter(&mut encoder, name, help, value)?;
        }
        let help = "Records that a tablet's log has beyond what the node has applied, as far as it knows; tablets may share a log";
        let mut family =
            encoder.encode_descriptor("cluster_tablet_lag_records", help, None, MetricType::Gauge)?;
        for (tablet, lag) in &counts.lag_records {
            let labels = TabletLabel { tablet: *tablet };
            let lag = ConstGauge::new(i64::try_from(*lag).unwrap_or(i64::MAX));
            lag.encode(family.encode_family(&labels)?)?;
        }
        encode_waits(&mut encoder, &counts)
    }
}

fn encode_members(encoder: &mut DescriptorEncoder<'_>, view: &ClusterView) -> fmt::Result {
    let help = "Members of the cluster, as the node sees them, by state and by whether they are up";
    let mut family = encoder.encode_descriptor("cluster_members", help, None, MetricType::Gauge)?;
    let states = [
        (Phase::Joining, "joining"),
        (Phase::Normal, "normal"),
        (Phase::Leaving, "leaving"),
    ];
    for (phase, state) in states {
        for (is_up, up) in [(true, "true"), (false, "false")] {
            let is_counted = |member: &&MemberView| member.phase == phase && member.is_up == is_up;
            let count = view.members.iter().filter(is_counted).count();
            let count = ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX));
            count.encode(family.encode_family(&MemberLabels { state, up })?)?;
        }
    }
    Ok(())
}

fn gauges_of(counts: &ClusterCounts) -> [Metric; 6] {
    [
        (
            "cluster_tablets_followed",
            "Tablets whose logs the node follows",
            counts.followed,
        ),
        (
            "cluster_tablets_ready",
            "Tablets that the node may answer reads of",
            counts.ready,
        ),
        (
            "cluster_tablets_lacking",
            "Tablets that the node copies from other nodes",
            counts.lacking,
        ),
        (
            "cluster_tablets_halted",
            "Tablets whose records the node does not apply any more; its log has the reason",
            counts.halted,
        ),
        (
            "cluster_lag_records",
            "Records of all logs that the node has not applied yet, as far as it knows",
            counts.lag_records_sum,
        ),
        (
            "cluster_lag_records_max",
            "The same of the tablet that is furthest behind",
            counts.lag_records.values().max().copied().unwrap_or(0),
        ),
    ]
}

fn counters_of(counts: &ClusterCounts) -> [Metric; 16] {
    [
        (
            "cluster_applied_records",
            "Records of tablets that the node has applied, no-ops included",
            counts.applied,
        ),
        (
            "cluster_appends",
            "Records that the log has acknowledged, no-ops and those of the meta log included",
            counts.appended,
        ),
        (
            "cluster_appends_failed",
            "Records that the log refused, or whose outcome is unknown",
            counts.not_appended,
        ),
        (
            "cluster_appends_repeated",
            "Records that were sent again, since their acknowledgement was lost",
            counts.repeated,
        ),
        (
            "cluster_disputed_blocks",
            "Stretches of the logs of followed tablets in which replicas came to different outcomes, and none has a majority; the log of the node names them",
            counts.disputed,
        ),
        (
            "cluster_log_produce_requests",
            "Requests with records that brokers have answered",
            counts.produce_requests,
        ),
        (
            "cluster_log_produce_errors",
            "Batches that a broker did not acknowledge, and connections that could not be opened for them; they are tried again",
            counts.produce_errors,
        ),
        (
            "cluster_log_fetch_requests",
            "Requests for records that brokers have answered",
            counts.fetch_requests,
        ),
        (
            "cluster_log_fetch_errors",
            "Requests for records that failed, and logs that a broker refused in its answer; they are tried again",
            counts.fetch_errors,
        ),
        (
            "cluster_log_end_requests",
            "Requests for the ends of logs that brokers have answered, for reads with a barrier",
            counts.end_requests,
        ),
        (
            "cluster_log_end_errors",
            "Requests for the ends of logs that failed",
            counts.end_errors,
        ),
        (
            "cluster_barriers_appended",
            "No-ops that were appended for reads, since too few brokers confirmed the end of a log",
            counts.barriers_appended,
        ),
        (
            "cluster_internode_requests",
            "Requests to other nodes",
            counts.asked,
        ),
        (
            "cluster_internode_requests_failed",
            "Requests to other nodes without an answer: the node could not be reached, refused, failed, or was too slow",
            counts.unanswered,
        ),
        (
            "cluster_internode_served",
            "Requests of other nodes that the node began to answer",
            counts.served,
        ),
        (
            "cluster_internode_served_failed",
            "Requests of other nodes that the node refused or failed to answer",
            counts.failed,
        ),
    ]
}

fn encode_waits(encoder: &mut DescriptorEncoder<'_>, counts: &ClusterCounts) -> fmt::Result {
    let help = "Time of a step of read barriers: raise until a read knows the ends of its logs, apply until the node has applied all below them.";
    let (unit, histogram) = (Some(&Unit::Seconds), MetricType::Histogram);
    let mut family = encoder.encode_descriptor("cluster_barrier", help, unit, histogram)?;
    let steps = [
        ("raise", &counts.barriers_raised),
        ("apply", &counts.barriers_applied),
    ];
    for (step, Waits { sum_nanos, buckets }) in steps {
        let total = buckets.iter().map(|(_, count)| count).sum();
        let bound = |nanos: u64| match nanos {
            u64::MAX => f64::INFINITY,
            nanos => in_seconds(nanos),
        };
        let buckets: Vec<(f64, u64)> = buckets
            .iter()
            .map(|(nanos, count)| (bound(*nanos), *count))
            .collect();
        family
            .encode_family(&StepLabel { step })?
            .encode_histogram::<NoLabelSet>(in_seconds(*sum_nanos), total, &buckets, None)?;
    }
    Ok(())
}
