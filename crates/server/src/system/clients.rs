//! Tables of `system_views` about clients, prepared statements, thread pools and queries.
//!
//! Compat: names of rows are those of Cassandra 5.0.

use bytes::Bytes;
use ilion_engine::{EngineFacts, VirtualRow};
use ilion_node::values::{bigint, boolean, cell, double, inet, int, text, text_map};

use crate::client_facts::ClientFacts;
use crate::clients::PoolFacts;
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
    .map(|(name, value)| VirtualRow {
        partition_key: vec![text(name)],
        clustering: Vec::new(),
        cells: vec![cell("value", double(value))],
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

/// Compat: `QueriesTable`. Reads and writes by key, which take moments only, are left out.
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
