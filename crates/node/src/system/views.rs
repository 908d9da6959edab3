//! Tables of `system_views` about caches, compactions and sizes.

use ilion_engine::{CacheFacts, CompactionFacts, EngineFacts, SnapshotFacts, TableFacts, VirtualRow};

use crate::costs::RecentRates;
use crate::values::{bigint, boolean, cell, double, int, text, timestamp, uuid};

pub(super) fn caches(facts: &EngineFacts, rates: &RecentRates) -> Vec<VirtualRow> {
    let row = |facts: &CacheFacts| cache(facts, rates.of_cache(facts.name));
    facts.caches.iter().map(row).collect()
}

fn cache(facts: &CacheFacts, rates: [f64; 2]) -> VirtualRow {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "Cassandra has them so"
    )]
    let [requests_per_second, hits_per_second] = rates.map(|rate| bigint(rate as u64));
    let requests = facts.hits + facts.misses;
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    let ratio = match requests {
        0 => f64::NAN,
        _ => facts.hits as f64 / requests as f64,
    };
    VirtualRow {
        partition_key: vec![text(facts.name)],
        clustering: Vec::new(),
        cells: vec![
            cell("capacity_bytes", bigint(facts.bytes_max)),
            cell(
                "entry_count",
                int(i32::try_from(facts.entries).unwrap_or(i32::MAX)),
            ),
            cell("hit_count", bigint(facts.hits)),
            cell("hit_ratio", double(ratio)),
            cell("recent_hit_rate_per_second", hits_per_second),
            cell("recent_request_rate_per_second", requests_per_second),
            cell("request_count", bigint(requests)),
            cell("size_bytes", bigint(facts.bytes)),
        ],
    }
}

pub(super) fn sstable_tasks(tasks: &[CompactionFacts]) -> Vec<VirtualRow> {
    tasks
        .iter()
        .map(|task| {
            #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
            let ratio = match task.total_bytes {
                0 => 1.0,
                total => task.done_bytes as f64 / total as f64,
            };
            VirtualRow {
                partition_key: vec![text(&task.keyspace)],
                clustering: vec![text(&task.table), uuid(task.id)],
                cells: vec![
                    cell("completion_ratio", double(ratio)),
                    cell("kind", text(task.kind)),
                    cell("progress", bigint(task.done_bytes)),
                    cell("sstables", int(i32::try_from(task.sstables).unwrap_or(i32::MAX))),
                    cell("target_directory", text(&task.directory.display().to_string())),
                    cell("total", bigint(task.total_bytes)),
                    cell("total_compressed", bigint(task.total_bytes)),
                    cell("unit", text("bytes")),
                ],
            }
        })
        .collect()
}

pub(super) fn snapshots(snapshots: Vec<SnapshotFacts>) -> Vec<VirtualRow> {
    let row = |facts: SnapshotFacts| {
        let expires_at = facts.expires_millis.map(timestamp);
        VirtualRow {
            partition_key: vec![text(&facts.tag)],
            clustering: vec![text(&facts.keyspace), text(&facts.table)],
            cells: vec![
                cell("created_at", timestamp(facts.created_millis)),
                cell("ephemeral", boolean(facts.is_ephemeral)),
                ("expires_at".to_owned(), expires_at),
                cell("size_on_disk", bigint(facts.size_bytes)),
                cell("true_size", bigint(facts.true_size_bytes)),
            ],
        }
    };
    snapshots.into_iter().map(row).collect()
}

pub(super) fn disk_usage(tables: &[TableFacts]) -> Vec<VirtualRow> {
    tables
        .iter()
        .map(|table| VirtualRow {
            partition_key: vec![text(&table.keyspace), text(&table.table)],
            clustering: Vec::new(),
            cells: vec![cell("mebibytes", bigint(table.sstable_bytes.div_ceil(1 << 20)))],
        })
        .collect()
}
