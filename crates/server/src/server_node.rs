//! A node with what its server needs: costs by client, the audit log, spans, and consumers of changes.

use std::ops::Deref;
use std::sync::{Arc, Weak};

use ilion_engine::Engine;
use ilion_env::Env;
use ilion_node::{Node, OpenError, Opening, Peers, PeersListener};
use ilion_query::{EngineStore, LogPosition, Store};
use ilion_settings::{AuditLogger, Settings};
use ilion_telemetry::Telemetry;

use crate::audit_options::{audit_options, check_audit_logger};
use crate::auditor::Auditor;
use crate::cluster_probe::ClusterProbe;
use crate::consumers::Consumers;
use crate::durability::{Durability, DurableCallback};
use crate::log_file::set_log_filter;
use crate::named_consumers::NamedConsumers;
use crate::observers::Observers;
use crate::old_versions::OldVersions;
use crate::port::ClientPorts;
use crate::server::{Server, Services, StartError};
use crate::slow_log::SlowLog;
use crate::system::{self, StoredTraces};
use crate::telemetry_options::telemetry_options;
use crate::traces::TraceProbability;
use crate::{ServerOptions, Statements};

/// An open node that can have a server. It is a [`Node`], too.
#[derive(Clone)]
pub struct ServerNode {
    node: Node,
    observers: Arc<Observers>,
    old_versions: Arc<OldVersions>,
    auditor: Arc<Auditor>,
    consumers: Consumers,
    named_consumers: Option<NamedConsumers>,
}

impl Deref for ServerNode {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}

impl ServerNode {
    /// Opens the data directory, created if absent, and replays the commit log.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(env: Arc<dyn Env>, settings: &Settings) -> Result<Self, OpenError> {
        Self::open_alone(env, settings, Opening::default())
    }

    /// As [`Self::open`], with what the settings do not have.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_alone(env: Arc<dyn Env>, settings: &Settings, opening: Opening) -> Result<Self, OpenError> {
        check_audit_logger(settings).map_err(OpenError::Settings)?;
        Self::with(Node::open_alone(env, settings, opening)?, settings)
    }

    /// As [`Self::open_alone`], but the query layer uses the storage that `over` makes from the engine's. For clusters.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_over(
        env: Arc<dyn Env>,
        settings: &Settings,
        opening: Opening,
        over: impl FnOnce(&Arc<Engine>, Arc<dyn Store>) -> Result<Arc<dyn Store>, OpenError>,
    ) -> Result<Self, OpenError> {
        check_audit_logger(settings).map_err(OpenError::Settings)?;
        Self::with(Node::open_over(env, settings, opening, over)?, settings)
    }

    fn with(node: Node, settings: &Settings) -> Result<Self, OpenError> {
        let engine = node.engine();
        system::register_logs(engine);
        let observers = Arc::new(observers(&node, settings)?);
        let auditor = Arc::new(auditor(&node, settings)?);
        let capture = engine.capture();
        let named_consumers = capture.map(|capture| NamedConsumers::open(engine.env(), &capture.dir));
        let old_versions = Arc::new(OldVersions::new(settings.native_transport_allow_older_protocols));
        let (slow, old) = (Arc::downgrade(&observers), old_versions.clone());
        node.settings().of_server(move |names, wanted| {
            // The only step that may fail comes first.
            if names.contains(&"log_level") {
                set_log_filter(&wanted.log_level)?;
            }
            if let Some(observers) = slow.upgrade() {
                observers.slow.set_threshold(wanted.slow_query_log_timeout);
            }
            old.allow(wanted.native_transport_allow_older_protocols);
            Ok(())
        });
        Ok(Self {
            node,
            observers,
            old_versions,
            auditor,
            consumers: Consumers::default(),
            named_consumers,
        })
    }

    /// The consumers that are reading changes.
    pub(crate) fn consumers(&self) -> &Consumers {
        &self.consumers
    }

    /// The progress of named consumers of changes; `None` if change data capture is off.
    pub(crate) fn named_consumers(&self) -> Option<&NamedConsumers> {
        self.named_consumers.as_ref()
    }

    /// Costs, slow-query log and traces.
    pub fn observers(&self) -> &Arc<Observers> {
        &self.observers
    }

    /// The audit log.
    pub fn auditor(&self) -> &Arc<Auditor> {
        &self.auditor
    }

    /// Shows the connections to other nodes in `system_views`, from now on. `probe` is weak, since it may own this node.
    pub fn show_traffic(&self, peers: &Arc<Peers>, probe: Weak<dyn ClusterProbe>) {
        system::register_traffic(self.engine(), peers, probe);
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
            env: self.node.engine().env().clone(),
            statements: self.node.processor().clone() as Arc<dyn Statements>,
            logins: self.node.processor().access().clone(),
            durability: Arc::new(EngineLog(self.node.engine().clone())),
            schema_listener: self.node.local().clone(),
            observers: self.observers.clone(),
            old_versions: self.old_versions.clone(),
            auditor: self.auditor.clone(),
        };
        let server = Server::start(ports, options, services)?;
        if let Some(peers) = self.node.local().peers() {
            let events: Arc<dyn PeersListener> = server.events().clone();
            peers.listen(Arc::downgrade(&events));
        }
        system::register_clients(self.node.engine(), self.node.processor(), &server.clients());
        self.node.local().listens_on(server.address().port());
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

fn observers(node: &Node, settings: &Settings) -> Result<Observers, OpenError> {
    let engine = node.engine();
    let store = Arc::new(EngineStore::new(engine.clone(), node.local().clone()));
    let slow = SlowLog::start(settings.slow_query_log_timeout).map_err(OpenError::Threads)?;
    let traces = StoredTraces::new(
        engine.env().clone(),
        store,
        node.local().facts().rpc_address,
        settings.trace_type_query_ttl,
    );
    let telemetry = telemetry_options(settings, engine.id()).map_err(OpenError::Settings)?;
    let telemetry = telemetry.map(|options| Telemetry::start(engine.env().clone(), options));
    let telemetry = telemetry.transpose().map_err(|error| match error {
        ilion_telemetry::StartError::Thread(error) => OpenError::Threads(error),
        error => OpenError::Settings(format!("otlp_endpoint, otlp_headers: {error}")),
    })?;
    Ok(Observers {
        costs: node.costs().clone(),
        slow,
        traces: Some(Arc::new(traces)),
        trace_probability: TraceProbability::default(),
        telemetry: telemetry.map(Arc::new),
    })
}

/// Creates the audit log, and switches it on if the settings say so.
fn auditor(node: &Node, settings: &Settings) -> Result<Auditor, OpenError> {
    let host = node.local().facts().listen_address;
    let auditor = Auditor::new(node.engine().env().clone(), host);
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
