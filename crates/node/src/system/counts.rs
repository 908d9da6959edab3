//! Tables of `system_views` about batches, properties of the process, and cached roles.
//!
//! Compat: names of rows are those of Cassandra 5.0.

use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use ilion_engine::VirtualRow;
use ilion_query::{BatchKind, BatchSizes, CidrCounts, KeptAccess};
use ilion_settings::Settings;

use crate::values::{bigint, cell, double, text};

fn named(name: &str, cells: Vec<(&str, Bytes)>) -> VirtualRow {
    VirtualRow {
        partition_key: vec![text(name)],
        clustering: Vec::new(),
        cells: cells
            .into_iter()
            .map(|(column, value)| cell(column, value))
            .collect(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown to people")]
fn shown(count: u64) -> f64 {
    count as f64
}

/// `batch_metrics`: partitions per batch.
pub(super) fn batches(sizes: &BatchSizes) -> Vec<VirtualRow> {
    [
        ("partitions_per_counter_batch", BatchKind::Counter),
        ("partitions_per_logged_batch", BatchKind::Logged),
        ("partitions_per_unlogged_batch", BatchKind::Unlogged),
    ]
    .into_iter()
    .map(|(name, kind)| {
        let sizes = sizes.of(kind);
        let below = |per_mille: u64| double(shown(sizes.per_mille(per_mille)));
        let cells = vec![
            ("max", bigint(sizes.max())),
            ("p50th", below(500)),
            ("p99th", below(990)),
            ("p999th", below(999)),
        ];
        named(name, cells)
    })
    .collect()
}

/// `system_properties`: those properties of the JVM that have a counterpart in Ilion.
pub(super) fn properties(settings: &Settings) -> Vec<VirtualRow> {
    // Compat: the names of processors and systems in Java.
    let processor = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        other => other,
    };
    let system = match std::env::consts::OS {
        "linux" => "Linux",
        "macos" => "Mac OS X",
        other => other,
    };
    let bits = usize::BITS.to_string();
    let directory = settings.directory.display().to_string();
    let logs = settings.log_path().display().to_string();
    [
        ("cassandra-foreground", "yes"),
        ("cassandra.logdir", &logs),
        ("cassandra.storagedir", &directory),
        ("line.separator", "\n"),
        ("os.arch", processor),
        ("os.name", system),
        ("sun.arch.data.model", &bits),
    ]
    .into_iter()
    .map(|(name, value)| named(name, vec![("value", text(value))]))
    .collect()
}

/// `cidr_filtering_metrics_counts`.
pub(super) fn cidr_counts(counts: &CidrCounts) -> Vec<VirtualRow> {
    let row = |name: &str, count: u64| named(name, vec![("value", bigint(count))]);
    let of_groups = [("accepted", &counts.accepted), ("rejected", &counts.rejected)];
    let mut rows = Vec::new();
    for (outcome, by_group) in of_groups {
        for (group, count) in &*by_group.lock() {
            let name = format!("Number of CIDR accesses {outcome} from CIDR group - {group}");
            rows.push(row(&name, *count));
        }
    }
    rows.push(row("CIDR groups cache reload count", counts.reads.load(Relaxed)));
    rows
}

/// `cidr_filtering_metrics_latencies`.
pub(super) fn cidr_latencies(counts: &CidrCounts) -> Vec<VirtualRow> {
    [
        ("CIDR checks latency (ns)", &counts.check_nanos),
        ("CIDR groups cache reload latency (ns)", &counts.read_nanos),
        (
            "Lookup IP in CIDR groups cache latency (ns)",
            &counts.search_nanos,
        ),
    ]
    .into_iter()
    .map(|(name, nanos)| {
        let below = |per_mille: u64| double(shown(nanos.per_mille(per_mille)));
        let cells = vec![
            ("max", double(shown(nanos.max()))),
            ("p50th", below(500)),
            ("p95th", below(950)),
            ("p999th", below(999)),
            ("p99th", below(990)),
        ];
        named(name, cells)
    })
    .collect()
}

/// Rows of `roles_cache_keys` and similar tables, which have only a key column.
pub(super) fn keys<'k>(keys: impl Iterator<Item = &'k str>) -> Vec<VirtualRow> {
    keys.map(|key| named(key, Vec::new())).collect()
}

/// Rows of `permissions_cache_keys`.
pub(super) fn permission_keys(kept: &KeptAccess) -> Vec<VirtualRow> {
    let row = |(role, resource): &(String, String)| VirtualRow {
        partition_key: vec![text(role), text(resource)],
        ..VirtualRow::default()
    };
    kept.permissions.iter().map(row).collect()
}
