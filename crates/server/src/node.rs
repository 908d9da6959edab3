//! A node: engine, query layer and system tables, built from the settings; with or without a server.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use crossbeam_channel::bounded;
use ilion_auth::password;
use ilion_engine::{Engine, EngineOptions};
use ilion_env::cost::timed;
use ilion_env::{Count, Env};
use ilion_index::IndexClasses;
use ilion_query::{Awaited, ClusterFacts, EngineStore, Executed, LogPosition, QueryProcessor, Store};
use ilion_schema::TableId;
use ilion_telemetry::Telemetry;

use crate::audit_options::{audit_options, check_audit_logger};
use crate::auditor::Auditor;
use crate::cluster_probe::ClusterProbe;
use crate::cluster_settings::{check_log_options, refused_alone};
use crate::consumers::Consumers;
use crate::costs::{RecentRates, SlowLog};
use crate::disk_watch::watch_disk;
use crate::durability::{Durability, DurableCallback};
use crate::layer_options::{engine_options, query_options};
use crate::live::LiveSettings;
use crate::memory::machine_bytes;
use crate::named_consumers::NamedConsumers;
use crate::observers::Observers;
use crate::old_versions::OldVersions;
use crate::open_error::OpenError;
use crate::peers::{Peers, PeersListener};
use crate::port::ClientPorts;
use crate::server::{Server, Services, StartError};
use crate::settings::{self, AuditLogger, ClientCertificates, Settings};
use crate::system::{self, LocalNode, NodeFacts, StoredTraces};
use crate::telemetry_options::telemetry_options;
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
    old_versions: Arc<OldVersions>,
    auditor: Arc<Auditor>,
    settings: Arc<LiveSettings>,
    consumers: Consumers,
    named_consumers: Option<NamedConsumers>,
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
        refused_alone(settings).map_err(OpenError::Settings)?;
        Self::open_over(env, settings, index_classes, |_, store| Ok(store))
    }

    /// As [`Self::open_with_indexes`], with the query layer over a storage that `over` makes of the engine's. For clusters.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_over(
        env: Arc<dyn Env>,
        settings: &Settings,
        index_classes: IndexClasses,
        over: impl FnOnce(&Arc<Engine>, Arc<dyn Store>) -> Result<Arc<dyn Store>, OpenError>,
    ) -> Result<Self, OpenError> {
        check_access(settings)?;
        check_log_options(settings).map_err(OpenError::Settings)?;
        check_audit_logger(settings).map_err(OpenError::Settings)?;
        let options = EngineOptions {
            index_classes,
            ..engine_options(&*env, settings).map_err(OpenError::Settings)?
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
        let store: Arc<dyn Store> = Arc::new(EngineStore::new(engine.clone(), local.clone()));
        let query_options = query_options(settings, machine_bytes(&**engine.env()));
        let disk_watch = watch_disk(&engine, settings, query_options.disk_usage.clone())?;
        let processor = Arc::new(QueryProcessor::new(over(&engine, store.clone())?, query_options));
        system::register(&engine, settings);
        let observers = Arc::new(observers(&engine, store, settings)?);
        let rates = Arc::<RecentRates>::default();
        system::register_costs(&engine, &observers.costs, &rates);
        let rate_updates = rates
            .update(&observers.costs, &engine)
            .map_err(OpenError::Threads)?;
        system::register_ring(&engine, &local);
        system::register_batches(&engine, processor.batch_sizes());
        system::register_access(&engine, &processor);
        if let Err(error) = processor.access().sweep(&engine.schema()) {
            // What was granted on objects that are gone is tidied up at a later start; serving matters more.
            tracing::warn!(%error, "grants on dropped objects cannot be removed");
        }
        let auditor = Arc::new(auditor(&engine, settings)?);
        let capture = engine.capture();
        let named_consumers = capture.map(|capture| NamedConsumers::open(engine.env(), &capture.dir));
        let old_versions = Arc::new(OldVersions::new(settings.native_transport_allow_older_protocols));
        let settings = LiveSettings::new(settings, &engine, &processor, &observers, &old_versions);
        let settings = Arc::new(settings);
        system::register_settings(&engine, &settings);
        Ok(Self {
            settings,
            engine,
            processor,
            local,
            observers,
            old_versions,
            auditor,
            consumers: Consumers::default(),
            named_consumers,
            _tickers: disk_watch.into_iter().chain([rate_updates]).collect(),
        })
    }

    /// The consumers that read changes now.
    pub(crate) fn consumers(&self) -> &Consumers {
        &self.consumers
    }

    /// How far named consumers of changes are; `None`: change data capture is off.
    pub(crate) fn named_consumers(&self) -> Option<&NamedConsumers> {
        self.named_consumers.as_ref()
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
        self.wait_until_durable(executed.awaited.clone())
    }

    /// Waits for what a write waits for.
    ///
    /// # Errors
    /// The commit log has failed, or the logs of the cluster did not acknowledge the write.
    pub fn wait_until_durable(&self, awaited: Option<Awaited>) -> ilion_engine::Result<()> {
        timed(Count::LogNanos, || match awaited {
            None => Ok(()),
            Some(Awaited::Log(position)) => self.engine.wait_durable(position.into()),
            Some(Awaited::Cluster(write)) => {
                let (sender, receiver) = bounded(1);
                write.on_done(move |done| drop(sender.send(done)));
                match receiver.recv() {
                    Ok(done) => done.map_err(|error| ilion_engine::Error::Refused(error.to_string())),
                    Err(_) => Err(ilion_engine::Error::Refused("the node stops".to_owned())),
                }
            }
        })
    }

    /// The query layer.
    pub fn processor(&self) -> &Arc<QueryProcessor> {
        &self.processor
    }

    /// Ends long-running SELECTs, because the node is about to stop.
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

    /// The settings that hold now.
    pub fn settings(&self) -> &Arc<LiveSettings> {
        &self.settings
    }

    /// The audit log.
    pub fn auditor(&self) -> &Arc<Auditor> {
        &self.auditor
    }

    /// Shows this node as one of a cluster: drivers see its peers and are told of changes. Before the server starts, and before the first
    /// view that is published.
    ///
    /// # Errors
    /// `system.local` cannot be written.
    pub fn follow(&self, peers: &Arc<Peers>) -> Result<(), OpenError> {
        self.local.follow(peers)?;
        system::register_peers(&self.engine, peers);
        Ok(())
    }

    /// Shows the connections to other nodes in `system_views`, from now on. `probe` may hold this node.
    pub fn show_traffic(&self, peers: &Arc<Peers>, probe: Weak<dyn ClusterProbe>) {
        system::register_traffic(&self.engine, peers, probe);
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
            old_versions: self.old_versions.clone(),
            auditor: self.auditor.clone(),
        };
        let server = Server::start(ports, options, services)?;
        if let Some(peers) = self.local.peers() {
            let events: Arc<dyn PeersListener> = server.events().clone();
            peers.listen(Arc::downgrade(&events));
        }
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
    let telemetry = telemetry_options(settings, engine.id()).map_err(OpenError::Settings)?;
    let telemetry = telemetry.map(|options| Telemetry::start(engine.env().clone(), options));
    let telemetry = telemetry.transpose().map_err(|error| match error {
        ilion_telemetry::StartError::Thread(error) => OpenError::Threads(error),
        error => OpenError::Settings(format!("otlp_endpoint, otlp_headers: {error}")),
    })?;
    Ok(Observers {
        costs: Arc::default(),
        slow,
        traces: Some(Arc::new(traces)),
        trace_probability: TraceProbability::default(),
        telemetry: telemetry.map(Arc::new),
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
