//! A node: engine, query layer and system tables, built from the settings; with or without a server.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ilion_auth::password;
use ilion_commitlog::{Damage, Mode};
use ilion_engine::{
    CacheOptions, Engine, EngineOptions, Finding, LargeLimits, SSTableVersion, SnapshotOptions,
};
use ilion_env::cost::timed;
use ilion_env::{Count, Env};
use ilion_index::IndexClasses;
use ilion_query::{
    AccessOptions, ClusterFacts, EngineStore, Executed, LogPosition, QueryOptions, QueryProcessor, Store,
};
use ilion_rows::TombstoneLimits;
use ilion_schema::TableId;

use crate::audit_options::{audit_options, check_audit_logger};
use crate::auditor::Auditor;
use crate::budgets::Budgets;
use crate::costs::{RecentRates, SlowLog};
use crate::disk_watch::watch_disk;
use crate::durability::{Durability, DurableCallback};
use crate::guardrails::guardrails;
use crate::memory::machine_bytes;
use crate::observers::Observers;
use crate::open_error::OpenError;
use crate::port::ClientPorts;
use crate::server::{Server, Services, StartError};
use crate::settings::{
    self, AuditLogger, ClientCertificates, CommitLogSync, Limit, SSTableFormat, SSTableLookup, Settings,
    StorageCompatibility,
};
use crate::system::{self, LocalNode, NodeFacts, StoredTraces};
use crate::ticker::Ticker;
use crate::traces::TraceProbability;
use crate::{ServerOptions, Statements};

/// An open node.
#[derive(Clone)]
pub struct Node {
    engine: Arc<Engine>,
    processor: Arc<QueryProcessor>,
    local: Arc<LocalNode>,
    observers: Arc<Observers>,
    auditor: Arc<Auditor>,
    /// Threads that end with the node.
    _tickers: Arc<[Ticker]>,
}

impl Node {
    /// Opens the data directory, created if absent, and replays the commit log.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(env: Arc<dyn Env>, settings: &Settings) -> Result<Self, OpenError> {
        Self::open_with_indexes(env, settings, IndexClasses::own())
    }

    /// As [`Self::open`], with these classes for `CREATE CUSTOM INDEX`.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_with_indexes(
        env: Arc<dyn Env>,
        settings: &Settings,
        index_classes: IndexClasses,
    ) -> Result<Self, OpenError> {
        check_access(settings)?;
        check_audit_logger(settings).map_err(OpenError::Settings)?;
        let options = EngineOptions {
            index_classes,
            ..engine_options(&*env, settings)?
        };
        let engine = Arc::new(Engine::open(env, options)?);
        let nobody = ClusterFacts {
            name: settings.cluster_name.clone(),
            snitch: String::new(),
            ranges: Vec::new(),
        };
        let store: Arc<dyn Store> = Arc::new(EngineStore::new(engine.clone(), nobody));
        let local = Arc::new(LocalNode::open(store, node_facts(settings, &engine))?);
        if local.is_of_another_version() {
            // The next start reads this row before it replays the commit log.
            let flushed = engine.flush(TableId::of_system_table("system", "local"));
            if let Err(error) = flushed
                && !error.is_shortage()
            {
                return Err(error.into());
            }
        }
        let store: Arc<dyn Store> = Arc::new(EngineStore::new(engine.clone(), local.cluster()));
        let query_options = query_options(settings, machine_bytes(&**engine.env()));
        let disk_watch = watch_disk(&engine, settings, query_options.disk_usage.clone())?;
        let processor = Arc::new(QueryProcessor::new(store.clone(), query_options));
        system::register(&engine, settings);
        let observers = Arc::new(observers(&engine, store, settings)?);
        let rates = Arc::<RecentRates>::default();
        system::register_costs(&engine, &observers.costs, &rates);
        let rate_updates = rates
            .update(&observers.costs, &engine)
            .map_err(OpenError::Threads)?;
        system::register_ring(&engine, &local);
        system::register_batches(&engine, processor.batch_sizes());
        if let Err(error) = processor.access().sweep(&engine.schema()) {
            // What was granted on objects that are gone is tidied up at a later start; serving matters more.
            tracing::warn!(%error, "grants on dropped objects cannot be removed");
        }
        let auditor = Arc::new(auditor(&engine, settings)?);
        Ok(Self {
            engine,
            processor,
            local,
            observers,
            auditor,
            _tickers: disk_watch.into_iter().chain([rate_updates]).collect(),
        })
    }

    /// The engine.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Waits until the writes of a statement are durable, in the sense of the commit log's sync mode.
    ///
    /// # Errors
    /// The commit log has failed.
    pub fn wait_durable(&self, executed: &Executed) -> ilion_engine::Result<()> {
        self.wait_until_durable(executed.durable_at)
    }

    /// Waits until everything up to a position is durable.
    ///
    /// # Errors
    /// The commit log has failed.
    pub fn wait_until_durable(&self, position: Option<LogPosition>) -> ilion_engine::Result<()> {
        let Some(position) = position else {
            return Ok(());
        };
        timed(Count::LogNanos, || self.engine.wait_durable(position.into()))
    }

    /// The query layer.
    pub fn processor(&self) -> &Arc<QueryProcessor> {
        &self.processor
    }

    /// Ends long-running SELECTs, since the node is about to stop.
    pub fn end_long_reads(&self) {
        self.processor.end_long_reads();
    }

    /// This node as `system.local` has it.
    pub fn local(&self) -> &Arc<LocalNode> {
        &self.local
    }

    /// Costs, slow-query log and traces.
    pub fn observers(&self) -> &Arc<Observers> {
        &self.observers
    }

    /// The audit log.
    pub fn auditor(&self) -> &Arc<Auditor> {
        &self.auditor
    }

    /// Starts the CQL server.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn serve(&self, options: &ServerOptions) -> Result<Server, StartError> {
        self.serve_at(ClientPorts::take(options)?, options)
    }

    /// As [`Self::serve`], on ports that were bound before.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn serve_at(&self, ports: ClientPorts, options: &ServerOptions) -> Result<Server, StartError> {
        let services = Services {
            env: self.engine.env().clone(),
            statements: self.processor.clone() as Arc<dyn Statements>,
            logins: self.processor.access().clone(),
            durability: Arc::new(EngineLog(self.engine.clone())),
            schema_listener: self.local.clone(),
            observers: self.observers.clone(),
            auditor: self.auditor.clone(),
        };
        let server = Server::start(ports, options, services)?;
        system::register_clients(&self.engine, &self.processor, &server.clients());
        self.local.listens_on(server.address().port());
        Ok(server)
    }
}

/// The commit log of the engine.
struct EngineLog(Arc<Engine>);

impl Durability for EngineLog {
    fn on_durable(&self, position: LogPosition, callback: DurableCallback) {
        let callback = Box::new(move |durable: Result<(), ilion_commitlog::Error>| {
            callback(durable.map_err(|error| error.to_string()));
        });
        self.0.on_durable(position.into(), callback);
    }
}

fn observers(
    engine: &Arc<Engine>,
    store: Arc<dyn Store>,
    settings: &Settings,
) -> Result<Observers, OpenError> {
    let slow = SlowLog::start(settings.slow_query_log_timeout).map_err(OpenError::Threads)?;
    let traces = StoredTraces::new(
        engine.env().clone(),
        store,
        node_facts(settings, engine).rpc_address,
        settings.trace_type_query_ttl,
    );
    Ok(Observers {
        costs: Arc::default(),
        slow,
        traces: Some(Arc::new(traces)),
        trace_probability: TraceProbability::default(),
    })
}

/// The audit log, on if the settings say so.
fn auditor(engine: &Engine, settings: &Settings) -> Result<Auditor, OpenError> {
    let host = node_facts(settings, engine).listen_address;
    let auditor = Auditor::new(engine.env().clone(), host);
    if settings.audit_logging_options_enabled && settings.audit_logging_options_logger == AuditLogger::File {
        let options = audit_options(settings);
        let opened = auditor.audit().switch_on(&options);
        opened.map_err(|error| {
            OpenError::Settings(format!("audit_logging_options: audit_logs_dir: {error}"))
        })?;
        tracing::info!(directory = %options.directory.display(), "the audit log is on");
    }
    Ok(auditor)
}

fn node_facts(settings: &Settings, engine: &Engine) -> NodeFacts {
    let rpc_address = settings.broadcast_rpc_address.unwrap_or(settings.rpc_address);
    NodeFacts {
        cluster_name: settings.cluster_name.clone(),
        data_center: settings.data_center.clone(),
        rack: settings.rack.clone(),
        host_id: engine.id(),
        initial_token: settings.initial_token.clone(),
        rpc_address: SocketAddr::new(rpc_address, settings.native_transport_port),
        listen_address: settings.listen_address.unwrap_or(rpc_address),
    }
}

fn access_options(settings: &Settings) -> AccessOptions {
    AccessOptions {
        authenticator: match settings.authenticator {
            settings::Authenticator::AllowAll => ilion_query::Authenticator::AllowAll,
            settings::Authenticator::Password => ilion_query::Authenticator::Password,
            settings::Authenticator::MutualTls => ilion_query::Authenticator::MutualTls,
            settings::Authenticator::MutualTlsWithPasswordFallback => {
                ilion_query::Authenticator::MutualTlsWithPasswordFallback
            }
        },
        authorizer: match settings.authorizer {
            settings::Authorizer::AllowAll => ilion_query::Authorizer::AllowAll,
            settings::Authorizer::Cassandra => ilion_query::Authorizer::Cassandra,
        },
        network_authorizer: match settings.network_authorizer {
            settings::NetworkAuthorizer::AllowAll => ilion_query::NetworkAuthorizer::AllowAll,
            settings::NetworkAuthorizer::Cassandra => ilion_query::NetworkAuthorizer::Cassandra,
        },
        cidr_authorizer: match (
            settings.cidr_authorizer,
            settings.cidr_authorizer_parameters_cidr_authorizer_mode,
        ) {
            (settings::CidrAuthorizer::AllowAll, _) => ilion_query::CidrAuthorizer::AllowAll,
            (settings::CidrAuthorizer::Cassandra, settings::CidrMode::Monitor) => {
                ilion_query::CidrAuthorizer::Monitor
            }
            (settings::CidrAuthorizer::Cassandra, settings::CidrMode::Enforce) => {
                ilion_query::CidrAuthorizer::Enforce
            }
        },
        checks_addresses_of_superusers: settings.cidr_authorizer_parameters_cidr_checks_for_superusers,
        roles_validity: settings.roles_validity,
        permissions_validity: settings.permissions_validity,
        credentials_validity: settings.credentials_validity,
        bcrypt_cost: u32::from(settings.auth_bcrypt_work_factor),
    }
}

/// Refuses settings that contradict each other.
fn check_access(settings: &Settings) -> Result<(), OpenError> {
    let refuse = |problem: &str| Err(OpenError::Settings(problem.to_owned()));
    let requires_login = settings.authenticator != settings::Authenticator::AllowAll;
    let of_roles = [
        (
            settings.authorizer == settings::Authorizer::Cassandra,
            "authorizer: CassandraAuthorizer",
        ),
        (
            settings.network_authorizer == settings::NetworkAuthorizer::Cassandra,
            "network_authorizer: CassandraNetworkAuthorizer",
        ),
        (
            settings.cidr_authorizer == settings::CidrAuthorizer::Cassandra,
            "cidr_authorizer: CassandraCIDRAuthorizer",
        ),
    ];
    if let Some((_, setting)) = of_roles.iter().find(|(is_set, _)| *is_set && !requires_login) {
        return refuse(&format!(
            "{setting} needs authenticator: PasswordAuthenticator, since clients of AllowAllAuthenticator have no roles"
        ));
    }
    let is_encrypted = settings.client_encryption_options_enabled;
    // Compat: `DatabaseDescriptor`, with its words.
    if settings.native_transport_port_ssl.is_some() && !is_encrypted {
        return refuse(
            "Encryption must be enabled in client_encryption_options for native_transport_port_ssl",
        );
    }
    let certificates = settings.client_encryption_options_require_client_auth;
    // Compat: `validateConfiguration` of both.
    match settings.authenticator {
        settings::Authenticator::MutualTls
            if !is_encrypted || certificates != ClientCertificates::Required =>
        {
            return refuse(
                "authenticator: MutualTlsAuthenticator requires client_encryption_options.enabled to be true & \
                 client_encryption_options.require_client_auth to be true",
            );
        }
        settings::Authenticator::MutualTlsWithPasswordFallback
            if !is_encrypted || certificates == ClientCertificates::NotAsked =>
        {
            return refuse(
                "authenticator: MutualTlsWithPasswordFallbackAuthenticator requires client_encryption_options.enabled \
                 to be true & client_encryption_options.require_client_auth to be optional/true",
            );
        }
        _ => {}
    }
    let cost = u32::from(settings.auth_bcrypt_work_factor);
    if !password::COST_RANGE.contains(&cost) {
        return refuse("auth_bcrypt_work_factor: expected a number from 4 to 31");
    }
    Ok(())
}

fn query_options(settings: &Settings, machine_bytes: u64) -> QueryOptions {
    QueryOptions {
        prepared_bytes_max: Budgets::of(settings, machine_bytes).prepared,
        prepared_count_max: settings.prepared_statements_max,
        page_bytes_max: bytes(settings.native_transport_max_page_size.0),
        batch_size_warn_bytes: bytes(settings.batch_size_warn_threshold.0),
        batch_size_fail_bytes: bytes(settings.batch_size_fail_threshold.0),
        expiry_secs_max: sstable_version(settings).expiry_secs_max(),
        data_center: settings.data_center.clone(),
        allow_filtering: settings.allow_filtering_enabled,
        guardrails: guardrails(settings),
        access: access_options(settings),
        disk_usage: Arc::default(),
        materialized_views_enabled: settings.materialized_views_enabled,
        default_secondary_index_enabled: settings.default_secondary_index_enabled,
        default_secondary_index: settings.default_secondary_index.clone(),
        sasi_indexes_enabled: settings.sasi_indexes_enabled,
        default_compaction: Some(settings.default_compaction.0.clone()),
        user_functions_enabled: settings.user_defined_functions_enabled,
        dynamic_data_masking_enabled: settings.dynamic_data_masking_enabled,
        user_function_time_max: settings.user_defined_functions_fail_timeout,
        tombstone_limits: TombstoneLimits {
            warn: settings.tombstone_warn_threshold.0.unwrap_or(u64::MAX),
            fail: settings.tombstone_failure_threshold.0.unwrap_or(u64::MAX),
        },
        read_timeout: Some(settings.read_request_timeout).filter(|timeout| !timeout.is_zero()),
        range_timeout: Some(settings.range_request_timeout).filter(|timeout| !timeout.is_zero()),
        ..QueryOptions::default()
    }
}

fn compactors_auto() -> usize {
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    (processors / 2).clamp(2, 8)
}

fn count(limit: Limit) -> usize {
    limit
        .0
        .map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX))
}

fn cache_options(bytes_max: u64, save_period: Duration, keys_to_save: Limit) -> CacheOptions {
    CacheOptions {
        bytes_max,
        save_period: Some(save_period).filter(|period| !period.is_zero()),
        keys_to_save: count(keys_to_save),
    }
}

fn engine_options(env: &dyn Env, settings: &Settings) -> Result<EngineOptions, OpenError> {
    let budgets = Budgets::of(settings, machine_bytes(env));
    budgets.tell();
    let segment_bytes = settings.commitlog_segment_size.0;
    let rate = settings.compaction_throughput.0;
    Ok(EngineOptions {
        data_dir: settings.data_path(),
        commitlog_dir: settings.commitlog_path(),
        partitioner: settings.partitioner,
        commit_log: ilion_commitlog::Options {
            segment_bytes: u32::try_from(segment_bytes).map_err(|_| {
                OpenError::Settings(format!(
                    "commitlog_segment_size is at most 1GiB, not {segment_bytes} bytes"
                ))
            })?,
            mode: log_mode(settings),
            damage: match settings.commitlog_ignore_replay_errors {
                true => Damage::Skip,
                false => Damage::Refuse,
            },
            ..ilion_commitlog::Options::default()
        },
        commit_log_bytes_max: settings.commitlog_total_space.0,
        memtable_bytes_max: bytes(budgets.memtables),
        chunk_cache_bytes: budgets.chunks,
        row_cache: cache_options(
            budgets.rows,
            settings.row_cache_save_period,
            settings.row_cache_keys_to_save,
        ),
        counter_cache: cache_options(
            budgets.counters,
            settings.counter_cache_save_period,
            settings.counter_cache_keys_to_save,
        ),
        saved_caches_dir: settings.saved_caches_path(),
        cache_load_timeout: settings.cache_load_timeout,
        large: LargeLimits {
            partition_bytes: settings.partition_size_warn_threshold.map(|size| size.0),
            partition_bytes_fail: settings.partition_size_fail_threshold.map(|size| size.0),
            partition_tombstones: settings.partition_tombstones_warn_threshold.0,
            partition_tombstones_fail: settings.partition_tombstones_fail_threshold.0,
            row_bytes: settings.row_size_warn_threshold.map(|size| size.0),
            cell_bytes: settings.cell_size_warn_threshold.map(|size| size.0),
        },
        index_summary_bytes: budgets.summaries,
        sorted_view_bytes: budgets.sorted_views,
        index_page_bytes: budgets.pages,
        index_summary_resize_interval_secs: match settings.index_summary_resize_interval.as_secs() {
            0 => None,
            secs => Some(secs),
        },
        key_cache: cache_options(
            budgets.keys,
            settings.key_cache_save_period,
            settings.key_cache_keys_to_save,
        ),
        stays_compatible: settings.storage_compatibility_mode == StorageCompatibility::Cassandra4,
        finding: match settings.sstable_lookup {
            SSTableLookup::TokenMap => Finding::TokenMap,
            SSTableLookup::Summary => Finding::Summary,
            SSTableLookup::WholeIndex => Finding::WholeIndex,
        },
        compaction_threads: settings
            .concurrent_compactors
            .map_or_else(compactors_auto, usize::from),
        compaction_bytes_per_sec: (rate > 0).then_some(rate),
        sstable_version: sstable_version(settings),
        snapshots: snapshot_options(settings),
        ..EngineOptions::below(Path::new(&settings.directory))
    })
}

fn snapshot_options(settings: &Settings) -> SnapshotOptions {
    SnapshotOptions {
        is_automatic: settings.auto_snapshot,
        automatic_ttl_secs: settings.auto_snapshot_ttl.map(|ttl| ttl.as_secs()),
        is_before_compaction: settings.snapshot_before_compaction,
        is_backing_up: settings.incremental_backups,
        links_per_sec: Some(settings.snapshot_links_per_second).filter(|links| *links > 0),
    }
}

fn sstable_version(settings: &Settings) -> SSTableVersion {
    match settings.sstable_format {
        SSTableFormat::Nb => SSTableVersion::NB,
        SSTableFormat::Oa => SSTableVersion::OA,
        SSTableFormat::Da => SSTableVersion::DA,
    }
}

fn log_mode(settings: &Settings) -> Mode {
    let millis = |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    match settings.commitlog_sync {
        CommitLogSync::Batch => Mode::Batch,
        CommitLogSync::Group => Mode::Group {
            window_millis: millis(settings.commitlog_sync_group_window),
        },
        CommitLogSync::Periodic => Mode::Periodic {
            period_millis: millis(settings.commitlog_sync_period),
        },
    }
}

fn bytes(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}
