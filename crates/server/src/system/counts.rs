//! `system_views` about the process: prepared statements, batches, thread pools, log, properties, cached roles.
//!
//! Compat: names of rows are those of Cassandra 5.0.

use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use ilion_engine::{EngineFacts, VirtualRow};
use ilion_query::{BatchKind, BatchSizes, CidrCounts, KeptAccess};

use super::values::{bigint, cell, double, int, text, timestamp};
use crate::clients::PoolFacts;
use crate::recent_log::LogLine;
use crate::settings::Settings;

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

/// `cql_metrics`: executed statements, as text and prepared; prepared statements in memory and evicted.
pub(super) fn cql(regular: u64, prepared: u64, (known, evicted): (u64, u64)) -> Vec<VirtualRow> {
    let ratio = match regular + prepared {
        0 => 0.0,
        all => shown(prepared) / shown(all),
    };
    [
        ("prepared_statements_count", shown(known)),
        ("prepared_statements_evicted", shown(evicted)),
        ("prepared_statements_executed", shown(prepared)),
        ("prepared_statements_ratio", ratio),
        ("regular_statements_executed", shown(regular)),
    ]
    .into_iter()
    .map(|(name, value)| named(name, vec![("value", double(value))]))
    .collect()
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

/// The thread pools of the engine.
pub(super) fn engine_pools(facts: &EngineFacts, pending_compactions: u64) -> [PoolFacts; 2] {
    let count = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    [
        PoolFacts {
            name: "CompactionExecutor",
            threads: count(facts.compaction_threads),
            waiting: count(pending_compactions),
            active: count(facts.compactions_running),
            completed: facts.compactions,
        },
        PoolFacts {
            name: "MemtableFlushWriter",
            threads: 1,
            waiting: count(facts.flushes_waiting),
            active: count(facts.flushes_running),
            completed: facts.flushes,
        },
    ]
}

/// `system_properties`: properties of the JVM that have a counterpart.
pub(super) fn properties(settings: &Settings) -> Vec<VirtualRow> {
    // Compat: Java's names of processors and systems.
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

/// `system_logs`: lines of the log, oldest first.
pub(super) fn logs(lines: Vec<LogLine>) -> Vec<VirtualRow> {
    let (mut last_millis, mut order) = (i64::MIN, 0);
    let row = |line: LogLine| {
        order = if line.millis == last_millis { order + 1 } else { 0 };
        last_millis = line.millis;
        VirtualRow {
            partition_key: vec![timestamp(line.millis)],
            clustering: vec![int(order)],
            cells: [
                ("level", text(line.level)),
                ("logger", text(&line.logger)),
                ("message", text(&line.message)),
            ]
            .map(|(name, value)| cell(name, value))
            .into(),
        }
    };
    lines.into_iter().map(row).collect()
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

/// Rows of `roles_cache_keys` and its kind: no column but the key.
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
