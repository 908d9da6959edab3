//! The HTTP server of the administration: routes and handlers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Extension, Query, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use ilion_env::Env;
use ilion_settings::Settings;
use ilion_tls::Encryption;
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::time::{MissedTickBehavior, interval};

use super::entry::{Caller, Entry, admit, routes};
use super::handling::{Shared, in_thread};
use super::listen::{Serving, serve};
use super::{
    Access, AccessError, Admin, AuditLogOrder, AutoCompactionOrder, BackupOrder, BackupReport, BinaryReport,
    CacheChoice, CacheOrder, CidrGroupOrder, CidrGroupsOrder, ClearOrder, CompactionOrder, DataPathsOrder,
    GarbageOrder, IndexOrder, KeysOrder, NodeTable, RewriteOrder, RingOrder, RoleLogins, SSTablesOrder,
    ScrubOrder, SettingsOrder, SnapshotOrder, StopOrder, TableChoice, TablePlace, ThresholdsOrder,
    ThroughputOrder, TopPartitionsOrder, TraceProbabilityReport,
};
use crate::certificate::CertificateLogins;
use crate::dashboard::{
    self, HistoryOrder, QueryOrder, SAMPLE_INTERVAL, SlowestOrder, SpectrogramOrder, SpectrogramReport,
};
use crate::encryption::admin_encryption;
use crate::server::runtime_of;
use crate::{Port, StartError};

/// The running HTTP server; dropping it stops it.
pub struct AdminDoor {
    address: SocketAddr,
    runtime: Option<Runtime>,
}

/// How the HTTP port is open.
pub struct DoorOptions {
    access: Access,
    serving: Serving,
}

impl DoorOptions {
    /// The options in the settings.
    ///
    /// # Errors
    /// See [`AccessError`].
    pub fn of(env: &Arc<dyn Env>, settings: &Settings) -> Result<Self, AccessError> {
        let encryption = admin_encryption(settings);
        Ok(Self {
            access: Access::of(&**env, settings)?,
            serving: Serving {
                timeout: settings.admin_timeout,
                encryption: encryption
                    .map(|options| Encryption::load(env, options))
                    .transpose()?
                    .map(Arc::new),
                certificate_logins: CertificateLogins::of(settings),
            },
        })
    }

    /// Open to this machine, without encryption and logins.
    pub fn of_this_machine(timeout: Duration) -> Self {
        Self {
            access: Access::of_this_machine(),
            serving: Serving {
                timeout,
                encryption: None,
                certificate_logins: None,
            },
        }
    }

    /// How connections are served, for a door that is open before this one.
    pub(super) fn serving(&self) -> Serving {
        self.serving.clone()
    }

    /// True if requests are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.serving.encryption.is_some()
    }
}

impl AdminDoor {
    /// Listens on the port. A request that is not complete after the timeout is refused, and a connection that sends none is
    /// closed. `roles` is `None` on a node without logins.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn open(
        port: Port,
        options: DoorOptions,
        roles: Option<RoleLogins>,
        admin: Arc<dyn Admin>,
    ) -> Result<Self, StartError> {
        let runtime = runtime_of("ilion-admin", 1)?;
        let address = port.address();
        let roles = roles.map(|roles| roles.at_port(address.port(), options.is_encrypted()));
        let entry = Entry::new(options.access, roles, options.serving.timeout, admin.auditor());
        let listener = runtime.block_on(async { port.listen() })?;
        runtime.spawn(super::loads::watch(admin.clone()));
        runtime.spawn(take_samples(admin.clone()));
        runtime.spawn(serve(listener, router(entry, admin), options.serving));
        Ok(Self {
            address,
            runtime: Some(runtime),
        })
    }

    /// The address of the port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for AdminDoor {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn router(entry: Entry, admin: Arc<dyn Admin>) -> Router {
    let entry = Arc::new(entry);
    Router::new()
        .route("/metrics", get(metrics))
        .route("/admin/status", get(status))
        .route("/admin/info", get(info))
        .route("/admin/flush", post(flush))
        .route("/admin/compact", post(compact))
        .route("/admin/invalidate-caches", post(invalidate_caches))
        .route("/admin/cache", post(change_cache))
        .route("/admin/compactions", get(compactions))
        .route("/admin/stop", post(stop))
        .route("/admin/autocompaction", post(auto_compaction))
        .route("/admin/compaction-throughput", post(compaction_throughput))
        .route("/admin/statements", get(statements))
        .route("/admin/statements/reset", post(reset_statements))
        .route(
            "/admin/trace-probability",
            get(trace_probability).post(set_trace_probability),
        )
        .route("/admin/table-stats", get(table_stats))
        .route("/admin/index/rebuild", post(rebuild_index))
        .route("/admin/index/verify", post(verify_index))
        .route("/admin/top-partitions", post(top_partitions))
        .route("/admin/drain", post(drain))
        .route("/admin/snapshot", post(snapshot))
        .route("/admin/snapshots", get(snapshots))
        .route("/admin/clear-snapshot", post(clear_snapshot))
        .route("/admin/backup", get(backup).post(set_backup))
        .route("/admin/audit-log", get(audit_log).post(set_audit_log))
        .route("/admin/data-paths", get(data_paths))
        .route("/admin/sstables", get(sstables_with))
        .route("/admin/key-sample", get(key_sample))
        .route("/admin/compaction-history", get(compaction_history))
        .route("/admin/thread-pools", get(thread_pools))
        .route("/admin/clients", get(clients))
        .route("/admin/concurrency", get(concurrency))
        .route("/admin/cidr-counts", get(cidr_counts))
        .route("/admin/cidr-latencies", get(cidr_latencies))
        .route("/admin/node", get(node))
        .route("/admin/view-built", get(view_built))
        .route("/admin/settings", get(settings).post(change_settings))
        .route("/admin/reload", post(reload))
        .route("/admin/reload-certificates", post(reload_certificates))
        .route("/admin/binary", get(binary).post(set_binary))
        .route("/admin/rewrite", post(rewrite))
        .route("/admin/garbage", post(garbage))
        .route("/admin/ring-change", get(ring_change).post(change_ring))
        .route("/admin/cleanup", post(cleanup))
        .route("/admin/compact-keys", post(compact_keys))
        .route("/admin/compaction-thresholds", get(thresholds).post(thresholds))
        .route("/admin/cidr-groups", get(cidr_groups))
        .route("/admin/cidr-group", post(change_cidr_group))
        .route("/admin/stop-node", post(stop_node))
        .route("/admin/scrub", post(scrub))
        .route("/admin/verify", post(verify))
        .route("/admin/export", post(export))
        .route("/admin/import", post(import))
        .route("/admin/refresh", post(refresh))
        .route("/api/spectrogram", get(spectrogram))
        .route("/api/slowest", get(slowest))
        .route("/api/history", get(history))
        .route("/api/query", post(query))
        .merge(super::backups::routes())
        .merge(super::loads::routes())
        .merge(super::changes::routes())
        .merge(dashboard::pages())
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .with_state(admin)
        .merge(routes(entry.clone()))
        .layer(middleware::from_fn_with_state(entry, admit))
}

async fn metrics(State(admin): Shared) -> Response {
    const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    in_thread(move || Ok(([(header::CONTENT_TYPE, TYPE)], admin.metrics()).into_response())).await
}

async fn status(State(admin): Shared) -> Response {
    in_thread(move || Ok(Json(admin.status()).into_response())).await
}

async fn info(State(admin): Shared) -> Response {
    in_thread(move || Ok(Json(admin.info()).into_response())).await
}

async fn flush(State(admin): Shared, Query(tables): Query<TableChoice>) -> Response {
    in_thread(move || Ok(Json(json!({ "tables": admin.flush(&tables)? })).into_response())).await
}

async fn compact(State(admin): Shared, Query(order): Query<CompactionOrder>) -> Response {
    in_thread(move || Ok(Json(json!({ "tables": admin.compact(&order)? })).into_response())).await
}

async fn compactions(State(admin): Shared) -> Response {
    in_thread(move || Ok(Json(admin.compactions()).into_response())).await
}

async fn stop(State(admin): Shared, Query(order): Query<StopOrder>) -> Response {
    in_thread(move || Ok(Json(json!({ "stopped": admin.stop(&order)? })).into_response())).await
}

async fn auto_compaction(State(admin): Shared, Query(order): Query<AutoCompactionOrder>) -> Response {
    in_thread(move || Ok(Json(json!({ "tables": admin.set_auto_compaction(&order)? })).into_response())).await
}

async fn compaction_throughput(State(admin): Shared, Query(order): Query<ThroughputOrder>) -> Response {
    in_thread(move || {
        admin.set_compaction_throughput(&order)?;
        Ok(Json(json!({})).into_response())
    })
    .await
}

async fn rebuild_index(State(admin): Shared, Query(order): Query<IndexOrder>) -> Response {
    in_thread(move || {
        admin.rebuild_index(&order)?;
        Ok(Json(json!({})).into_response())
    })
    .await
}

async fn verify_index(State(admin): Shared, Query(order): Query<IndexOrder>) -> Response {
    in_thread(move || Ok(Json(admin.verify_index(&order)?).into_response())).await
}

async fn invalidate_caches(State(admin): Shared, Query(choice): Query<CacheChoice>) -> Response {
    in_thread(move || {
        let caches = admin.invalidate_caches(choice.cache.as_deref())?;
        Ok(Json(json!({ "caches": caches })).into_response())
    })
    .await
}

async fn change_cache(State(admin): Shared, Query(order): Query<CacheOrder>) -> Response {
    in_thread(move || {
        admin.change_cache(&order)?;
        Ok(Json(json!({})).into_response())
    })
    .await
}

async fn statements(State(admin): Shared) -> Response {
    in_thread(move || Ok(Json(admin.statements()).into_response())).await
}

async fn reset_statements(State(admin): Shared) -> Response {
    in_thread(move || {
        admin.reset_statements();
        Ok(Json(json!({})).into_response())
    })
    .await
}

async fn trace_probability(State(admin): Shared) -> Response {
    let probability = admin.trace_probability();
    Json(TraceProbabilityReport { probability }).into_response()
}

async fn set_trace_probability(
    State(admin): Shared,
    Query(wanted): Query<TraceProbabilityReport>,
) -> Response {
    in_thread(move || {
        admin.set_trace_probability(wanted.probability)?;
        Ok(Json(json!({})).into_response())
    })
    .await
}

async fn table_stats(State(admin): Shared, Query(tables): Query<TableChoice>) -> Response {
    in_thread(move || Ok(Json(admin.table_stats(&tables)?).into_response())).await
}

async fn top_partitions(State(admin): Shared, Query(order): Query<TopPartitionsOrder>) -> Response {
    in_thread(move || Ok(Json(admin.top_partitions(&order)?).into_response())).await
}

async fn drain(State(admin): Shared) -> Response {
    in_thread(move || {
        admin.drain()?;
        Ok(Json(json!({})).into_response())
    })
    .await
}

async fn snapshot(State(admin): Shared, Query(order): Query<SnapshotOrder>) -> Response {
    in_thread(move || Ok(Json(json!({ "tables": admin.snapshot(&order)? })).into_response())).await
}

async fn snapshots(State(admin): Shared) -> Response {
    in_thread(move || Ok(Json(admin.snapshots()?).into_response())).await
}

async fn clear_snapshot(State(admin): Shared, Query(order): Query<ClearOrder>) -> Response {
    in_thread(move || Ok(Json(json!({ "snapshots": admin.clear_snapshot(&order)? })).into_response())).await
}

async fn backup(State(admin): Shared) -> Response {
    let on = admin.is_backing_up();
    Json(BackupReport { on }).into_response()
}

async fn set_backup(State(admin): Shared, Query(order): Query<BackupOrder>) -> Response {
    in_thread(move || {
        admin.set_backing_up(order.on)?;
        Ok(Json(json!({})).into_response())
    })
    .await
}

async fn audit_log(State(admin): Shared) -> Response {
    Json(admin.audit_log()).into_response()
}

async fn set_audit_log(State(admin): Shared, Query(order): Query<AuditLogOrder>) -> Response {
    in_thread(move || {
        admin.set_audit_log(&order)?;
        Ok(Json(json!({})).into_response())
    })
    .await
}

async fn data_paths(State(admin): Shared, Query(order): Query<DataPathsOrder>) -> Response {
    in_thread(move || Ok(Json(admin.data_paths(&order)?).into_response())).await
}

async fn key_sample(State(admin): Shared) -> Response {
    in_thread(move || Ok(Json(admin.key_sample()?).into_response())).await
}

async fn sstables_with(State(admin): Shared, Query(order): Query<SSTablesOrder>) -> Response {
    in_thread(move || Ok(Json(admin.sstables_with(&order)?).into_response())).await
}

async fn node_table(State(admin): Shared, table: NodeTable) -> Response {
    in_thread(move || Ok(Json(admin.node_table(table)?).into_response())).await
}

async fn concurrency(admin: Shared) -> Response {
    node_table(admin, NodeTable::Concurrency).await
}

async fn cidr_counts(admin: Shared) -> Response {
    node_table(admin, NodeTable::CidrCounts).await
}

async fn cidr_latencies(admin: Shared) -> Response {
    node_table(admin, NodeTable::CidrLatencies).await
}

async fn compaction_history(admin: Shared) -> Response {
    node_table(admin, NodeTable::CompactionHistory).await
}

async fn thread_pools(admin: Shared) -> Response {
    node_table(admin, NodeTable::ThreadPools).await
}

async fn clients(admin: Shared) -> Response {
    node_table(admin, NodeTable::Clients).await
}

async fn healthz() -> &'static str {
    "ok\n"
}

async fn readyz(State(admin): Shared) -> Response {
    in_thread(move || {
        Ok(match admin.unready() {
            None => "ok\n".into_response(),
            Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")).into_response(),
        })
    })
    .await
}

async fn node(State(admin): Shared) -> Response {
    in_thread(move || Ok(Json(admin.node()).into_response())).await
}

async fn view_built(State(admin): Shared, Query(view): Query<TableChoice>) -> Response {
    in_thread(move || Ok(Json(json!({ "built": admin.is_view_built(&view)? })).into_response())).await
}

async fn settings(State(admin): Shared) -> Response {
    in_thread(move || Ok(Json(admin.settings()).into_response())).await
}

async fn change_settings(State(admin): Shared, Query(order): Query<SettingsOrder>) -> Response {
    in_thread(move || {
        admin.change_settings(&order)?;
        Ok(Json(json!({})).into_response())
    })
    .await
}

async fn reload(State(admin): Shared) -> Response {
    in_thread(move || Ok(Json(admin.reload()?).into_response())).await
}

async fn reload_certificates(State(admin): Shared) -> Response {
    in_thread(move || {
        admin.reload_certificates()?;
        Ok(Json(json!({})).into_response())
    })
    .await
}

async fn binary(State(admin): Shared) -> Response {
    let on = admin.is_open();
    Json(BinaryReport { on }).into_response()
}

async fn set_binary(State(admin): Shared, Query(wanted): Query<BinaryReport>) -> Response {
    in_thread(move || {
        admin.set_open(wanted.on)?;
        Ok(Json(json!({})).into_response())
    })
    .await
}

async fn ring_change(State(admin): Shared) -> Response {
    in_thread(move || Ok(Json(admin.ring()?.report()).into_response())).await
}

async fn change_ring(State(admin): Shared, Query(order): Query<RingOrder>) -> Response {
    in_thread(move || Ok(Json(admin.ring()?.change(&order)?).into_response())).await
}

async fn cleanup(State(admin): Shared) -> Response {
    in_thread(move || {
        admin.ring()?.clean()?;
        Ok(Json(json!({})).into_response())
    })
    .await
}

async fn rewrite(State(admin): Shared, Query(order): Query<RewriteOrder>) -> Response {
    in_thread(move || Ok(Json(json!({ "sstables": admin.rewrite(&order)? })).into_response())).await
}

async fn garbage(State(admin): Shared, Query(order): Query<GarbageOrder>) -> Response {
    in_thread(move || Ok(Json(json!({ "sstables": admin.collect_garbage(&order)? })).into_response())).await
}

async fn compact_keys(State(admin): Shared, Query(order): Query<KeysOrder>) -> Response {
    in_thread(move || Ok(Json(json!({ "compactions": admin.compact_keys(&order)? })).into_response())).await
}

async fn thresholds(method: Method, State(admin): Shared, Query(order): Query<ThresholdsOrder>) -> Response {
    in_thread(move || {
        // GET needs the permission to watch only, so it must not change thresholds.
        let order = match method {
            Method::POST => order,
            _ => ThresholdsOrder {
                min: None,
                max: None,
                ..order
            },
        };
        Ok(Json(admin.thresholds(&order)?).into_response())
    })
    .await
}

async fn cidr_groups(State(admin): Shared, Query(order): Query<CidrGroupsOrder>) -> Response {
    in_thread(move || Ok(Json(admin.cidr_groups(&order)?).into_response())).await
}

async fn change_cidr_group(State(admin): Shared, Query(order): Query<CidrGroupOrder>) -> Response {
    in_thread(move || {
        admin.change_cidr_group(&order)?;
        Ok(Json(json!({})).into_response())
    })
    .await
}

async fn stop_node(State(admin): Shared) -> Response {
    in_thread(move || {
        admin.stop_node()?;
        Ok(Json(json!({})).into_response())
    })
    .await
}

async fn scrub(State(admin): Shared, Query(order): Query<ScrubOrder>) -> Response {
    in_thread(move || Ok(Json(admin.scrub(&order)?).into_response())).await
}

async fn verify(State(admin): Shared, Query(tables): Query<TableChoice>) -> Response {
    in_thread(move || Ok(Json(admin.verify(&tables)?).into_response())).await
}

async fn export(State(admin): Shared, Query(place): Query<TablePlace>) -> Response {
    in_thread(move || Ok(Json(admin.export(&place)?).into_response())).await
}

async fn refresh(State(admin): Shared, Query(table): Query<TableChoice>) -> Response {
    in_thread(move || Ok(Json(admin.refresh(&table)?).into_response())).await
}

async fn import(State(admin): Shared, Query(place): Query<TablePlace>) -> Response {
    in_thread(move || Ok(Json(admin.import(&place)?).into_response())).await
}

async fn spectrogram(Query(order): Query<SpectrogramOrder>) -> Response {
    in_thread(move || Ok(Json(SpectrogramReport::since(order)).into_response())).await
}

async fn slowest(State(admin): Shared, Query(order): Query<SlowestOrder>) -> Response {
    in_thread(move || Ok(Json(admin.slowest(&order)).into_response())).await
}

/// Takes samples for the history, for ever.
async fn take_samples(admin: Arc<dyn Admin>) {
    let mut ticks = interval(SAMPLE_INTERVAL);
    // After a pause of the machine one sample is enough.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let admin = admin.clone();
        // On a thread that may block, like everything that asks the engine. A panic was logged; the next sample may succeed.
        let _ = tokio::task::spawn_blocking(move || admin.take_sample()).await;
    }
}

async fn history(State(admin): Shared, Query(order): Query<HistoryOrder>) -> Response {
    in_thread(move || Ok(Json(admin.history(order)).into_response())).await
}

async fn query(
    State(admin): Shared,
    Extension(caller): Extension<Caller>,
    Json(order): Json<QueryOrder>,
) -> Response {
    in_thread(move || Ok(Json(admin.query(&order, &caller)?).into_response())).await
}
