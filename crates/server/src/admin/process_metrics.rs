//! Metrics of the process and its disk: `process_*`, with the customary names of Prometheus; the version; free space.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use ilion_env::Env;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::process;

/// Collects `process_*`, except those that the system does not report.
pub(super) struct ProcessMetrics {
    pub env: Arc<dyn Env>,
    /// When the process was started, in seconds since 1970.
    pub started_secs: i64,
}

impl fmt::Debug for ProcessMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProcessMetrics")
    }
}

impl Collector for ProcessMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let facts = process::facts(&*self.env);
        if let Some(facts) = facts {
            let counter = ConstCounter::new(facts.cpu_secs);
            let help = "Processor time of user and system in seconds";
            counter.encode(encoder.encode_descriptor(
                "process_cpu_seconds",
                help,
                None,
                counter.metric_type(),
            )?)?;
        }
        let gauges = [
            (
                "process_resident_memory_bytes",
                "Resident memory",
                process::resident_bytes(&*self.env),
            ),
            (
                "process_virtual_memory_bytes",
                "Virtual memory",
                facts.map(|facts| facts.virtual_bytes),
            ),
            ("process_threads", "Threads", facts.map(|facts| facts.threads)),
            (
                "process_open_fds",
                "Open file descriptors",
                process::open_descriptors(&*self.env),
            ),
            (
                "process_start_time_seconds",
                "When the node was started, in seconds since 1970",
                u64::try_from(self.started_secs).ok(),
            ),
        ];
        for (name, help, value) in gauges {
            if let Some(value) = value {
                encode_gauge(&mut encoder, name, help, value)?;
            }
        }
        Ok(())
    }
}

fn encode_gauge(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
    gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
}

/// Collects the free space on the disks of the tables and of the commit log.
pub(super) struct DiskMetrics {
    pub env: Arc<dyn Env>,
    pub data: PathBuf,
    pub commitlog: PathBuf,
}

impl fmt::Debug for DiskMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DiskMetrics")
    }
}

impl Collector for DiskMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (name, help, path) in [
            (
                "data_free_bytes",
                "Free space on the disk of the tables",
                &self.data,
            ),
            (
                "commit_log_free_bytes",
                "Free space on the disk of the commit log",
                &self.commitlog,
            ),
        ] {
            // If the free space cannot be read, the flush or segment that needs it logs the error.
            if let Ok(bytes) = self.env.free_space_bytes(path) {
                encode_gauge(&mut encoder, name, help, bytes)?;
            }
        }
        Ok(())
    }
}

/// Registers the version, as a metric whose labels contain it.
pub(super) fn register_build(registry: &mut Registry, release_version: &'static str) {
    let labels = vec![
        ("version", env!("CARGO_PKG_VERSION")),
        ("cassandra", release_version),
    ];
    registry.register(
        "build",
        "Versions of Ilion and of the Cassandra that clients are told",
        Info::new(labels),
    );
}
