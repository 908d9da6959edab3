//! `system_views` about clients, caches, thread pools, queries, compactions and sizes.

use bytes::Bytes;
use ilion_engine::{CacheFacts, CompactionFacts, EngineFacts, SnapshotFacts, TableFacts, VirtualRow};

use super::values::{bigint, boolean, cell, double, inet, int, text, text_map, timestamp, uuid};
use crate::client_facts::ClientFacts;
use crate::clients::PoolFacts;
use crate::costs::RecentRates;
use crate::queues::RunningRequest;

pub(super) fn clients(clients: &[ClientFacts]) -> Vec<VirtualRow> {
    clients.iter().map(client).collect()
}

fn client(client: &ClientFacts) -> VirtualRow {
    let option = |name: &str| {
        let found = client.options.iter().find(|(option, _)| option == name);
        found.map(|(_, value)| text(value))
    };
    let optional = |name: &str, value: Option<Bytes>| (name.to_owned(), value);
    let options = client
        .options
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    VirtualRow {
        partition_key: vec![inet(client.peer.ip())],
        clustering: vec![int(i32::from(client.peer.port()))],
        cells: vec![
            cell("client_options", text_map(options)),
            cell("connection_stage", text(&client.stage.to_ascii_lowercase())),
            optional("driver_name", option("DRIVER_NAME")),
            optional("driver_version", option("DRIVER_VERSION")),
            cell("hostname", text(&client.peer.ip().to_string())),
            optional("keyspace_name", client.keyspace.as_deref().map(text)),
            optional(
                "protocol_version",
                client.protocol_version.map(|version| int(i32::from(version))),
            ),
            cell("request_count", bigint(client.request_count)),
            optional(
                "ssl_cipher_suite",
                client.tls.as_ref().map(|tls| text(&tls.cipher_suite)),
            ),
            cell("ssl_enabled", boolean(client.tls.is_some())),
            optional("ssl_protocol", client.tls.as_ref().map(|tls| text(&tls.protocol))),
            // Compat: Cassandra's name of a client without a login.
            cell("username", text(client.user.as_deref().unwrap_or("anonymous"))),
        ],
    }
}

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

pub(super) fn thread_pools(pools: &[PoolFacts]) -> Vec<VirtualRow> {
    let count = |value: usize| int(i32::try_from(value).unwrap_or(i32::MAX));
    pools
        .iter()
        .map(|pool| VirtualRow {
            partition_key: vec![text(pool.name)],
            clustering: Vec::new(),
            cells: vec![
                cell("active_tasks", count(pool.active)),
                cell("active_tasks_limit", count(pool.threads)),
                // Tasks are never blocked: the queues have no bound.
                cell("blocked_tasks", bigint(0)),
                cell("blocked_tasks_all_time", bigint(0)),
                cell("completed_tasks", bigint(pool.completed)),
                cell("pending_tasks", count(pool.waiting)),
            ],
        })
        .collect()
}

/// Compat: `QueriesTable`. Statements that take moments only (reads and writes by key) are left out.
pub(super) fn queries(running: Vec<(String, RunningRequest)>, now_nanos: u64) -> Vec<VirtualRow> {
    let micros = |from: u64, to: u64| bigint(to.saturating_sub(from) / 1000);
    running
        .into_iter()
        .map(|(thread, request)| VirtualRow {
            partition_key: vec![text(&thread)],
            clustering: Vec::new(),
            cells: vec![
                cell(
                    "queued_micros",
                    micros(request.received_nanos, request.started_nanos),
                ),
                cell("running_micros", micros(request.started_nanos, now_nanos)),
                cell("task", text(&request.text)),
            ],
        })
        .collect()
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
