//! Metrics of change data capture; all are 0 while it is off.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use super::consumers_report::{self, ConsumerReport};
use super::engine_metrics::{encode_counter, encode_gauge};
use crate::server_node::ServerNode;

pub(super) struct ChangeMetrics(pub ServerNode);

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ConsumerLabels {
    consumer: String,
    keyspace: String,
    table: String,
}

impl fmt::Debug for ChangeMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChangeMetrics")
    }
}

impl Collector for ChangeMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let stats = self.0.engine().capture_stats().unwrap_or_default();
        let counters = [
            (
                "cdc_segments_kept",
                "Segments of the commit log that were kept for consumers of changes",
                stats.kept,
            ),
            (
                "cdc_segments_dropped",
                "Segments with changes that were removed, since the space was used up",
                stats.dropped,
            ),
            (
                "cdc_refused_writes",
                "Writes that were refused, since the space for changes was used up",
                stats.refused,
            ),
        ];
        for (name, help, value) in counters {
            encode_counter(&mut encoder, name, help, value)?;
        }
        let consumers = self.0.consumers().list();
        let now = self.0.engine().env().now_micros();
        let lag = consumers.iter().map(|consumer| consumer.lag_micros(now)).max();
        let lag_millis = u64::try_from(lag.unwrap_or(0) / 1000).unwrap_or(0);
        let gauges = [
            (
                "cdc_used_bytes",
                "Bytes of segments with changes",
                stats.used_bytes,
            ),
            (
                "cdc_total_space_bytes",
                "Bytes that these may have (cdc_total_space)",
                stats.bytes_max,
            ),
            (
                "cdc_consumers",
                "Consumers that read changes now",
                consumers.len() as u64,
            ),
            (
                "cdc_consumer_lag_milliseconds",
                "Age of the last record that the slowest consumer read; 0 if all have read everything",
                lag_millis,
            ),
        ];
        for (name, help, value) in gauges {
            encode_gauge(&mut encoder, name, help, value)?;
        }
        let help = "Age of the last change that a named consumer has processed, by consumer, keyspace and table; 0 if it has processed all; \
                    missing for all consumers if consumers.json cannot be read (the log says why)";
        let name = "cdc_named_consumer_lag_milliseconds";
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        // A file of consumers that cannot be read was logged as an error at the start; an error here would hide all other metrics.
        for report in consumers_report::report(&self.0).unwrap_or_default().consumers {
            let gauge = ConstGauge::new(i64::try_from(report.lag_millis).unwrap_or(i64::MAX));
            let ConsumerReport {
                consumer,
                keyspace,
                table,
                ..
            } = report;
            let labels = ConsumerLabels {
                consumer,
                keyspace,
                table,
            };
            gauge.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
