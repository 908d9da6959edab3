//! The CQL server: start and stop.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use ilion_env::Env;
use ilion_node::SchemaListener;
use ilion_node::machine_bytes;
use ilion_protocol::Event;
use ilion_tls::{Encryption, TlsError};
use prometheus_client::registry::Registry;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::acceptor::Acceptor;
use crate::auditor::Auditor;
use crate::client_memory::ClientMemory;
use crate::clients::Clients;
use crate::connection::Shared;
use crate::durability::Durability;
use crate::entry::Entry;
use crate::events::Events;
use crate::execute::Executor;
use crate::login_turns::LoginThreads;
use crate::logins::{LoginCheck, Logins};
use crate::metrics::ServerMetrics;
use crate::observers::Observers;
use crate::old_versions::OldVersions;
use crate::options::ServerOptions;
use crate::port::{ClientPorts, Port, PortError};
use crate::queues::PoolSizes;
use crate::request::Requests;
use crate::request_rate::RequestRate;
use crate::statements::Statements;
use crate::workers::Workers;

/// The interfaces to other layers that the server needs.
pub struct Services {
    /// The clock, and the machine's memory.
    pub env: Arc<dyn Env>,
    /// Executes statements.
    pub statements: Arc<dyn Statements>,
    /// Checks passwords.
    pub logins: Arc<dyn LoginCheck>,
    /// Waits for the commit log.
    pub durability: Arc<dyn Durability>,
    /// Called after each change of the schema.
    pub schema_listener: Arc<dyn SchemaListener>,
    /// Costs, slow-query log and traces.
    pub observers: Arc<Observers>,
    /// Whether clients may use old versions of the protocol.
    pub old_versions: Arc<OldVersions>,
    /// The audit log.
    pub auditor: Arc<Auditor>,
}

/// Why a server does not start; the operator must act.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A port cannot be used.
    #[error(transparent)]
    Listen(#[from] PortError),
    /// Encryption cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Threads cannot be started.
    #[error("cannot start threads: {0}")]
    Threads(io::Error),
}

/// A runtime for sockets, with threads of this name.
pub(crate) fn runtime_of(name: &str, threads: usize) -> Result<Runtime, StartError> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name(name)
        .enable_all()
        .build()
        .map_err(StartError::Threads)
}

/// The certificates of client connections, and of others that were added.
#[derive(Clone)]
pub struct Certificates(Vec<Arc<Encryption>>);

impl Certificates {
    /// Adds the certificates of other connections; `None` if those are not encrypted.
    #[must_use]
    pub fn and(mut self, others: Option<&Arc<Encryption>>) -> Self {
        self.0.extend(others.cloned());
        self
    }

    /// Reads the files again. New connections use the new certificates, or still the old ones if the new ones cannot be used.
    ///
    /// # Errors
    /// Some files cannot be read or used; returns the first error. The other files were read.
    pub fn reload(&self) -> Result<(), TlsError> {
        let reloaded: Vec<_> = self.0.iter().map(|encryption| encryption.reload()).collect();
        reloaded.into_iter().collect()
    }

    /// A warning for each certificate of the node that has expired or soon will.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        self.0.iter().filter_map(|encryption| encryption.warning())
    }
}

/// A running CQL server.
pub struct Server {
    address: SocketAddr,
    encrypted_address: Option<SocketAddr>,
    entry: Entry,
    encryption: Option<Arc<Encryption>>,
    runtime: Runtime,
    accepting: JoinHandle<()>,
    stopping: watch::Sender<bool>,
    events: Arc<Events>,
    metrics: Arc<ServerMetrics>,
    workers: Workers,
    /// The threads of the logins end when the last strong pointer is dropped.
    logins: Weak<Logins>,
    login_threads: LoginThreads,
}

impl Server {
    /// Listens on the ports and serves until [`Server::stop`].
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(
        ports: ClientPorts,
        options: &ServerOptions,
        services: Services,
    ) -> Result<Self, StartError> {
        let encryption = options.tls.clone();
        let encryption = encryption
            .map(|options| Encryption::load(&services.env, options))
            .transpose()?;
        let runtime = runtime_of("ilion-network", options.network_threads)?;
        let ClientPorts { main, encrypted } = ports;
        let address = main.address();
        let encrypted_address = encrypted.as_ref().map(Port::address);
        let listener = runtime.block_on(async { main.listen() })?;
        let second_listener = runtime.block_on(async { encrypted.map(Port::listen).transpose() })?;
        let (all_bytes, address_bytes) = options.client_memory(machine_bytes(&*services.env));
        let memory = ClientMemory::new(all_bytes, address_bytes);
        let metrics = ServerMetrics::new(memory.clone());
        let events = Arc::new(Events::default());
        let clock = services.env.clone();
        let executor = Arc::new(Executor {
            env: services.env,
            requests: Requests {
                statements: services.statements,
                schema_listener: services.schema_listener,
                node: address.ip(),
            },
            durability: services.durability,
            events: events.clone(),
            metrics: metrics.clone(),
            observers: services.observers,
            auditor: services.auditor.clone(),
        });
        let pools = PoolSizes {
            point: options.request_threads,
            heavy: options.heavy_threads,
        };
        let workers = Workers::start(pools, &executor).map_err(StartError::Threads)?;
        let (logins, login_threads) = Logins::start(
            services.logins,
            options.certificate_logins,
            options.login_threads,
            clock.clone(),
            metrics.clone(),
            services.auditor,
        )
        .map_err(StartError::Threads)?;
        let (stopping, stopped) = watch::channel(false);
        let known_logins = Arc::downgrade(&logins);
        let encryption = encryption.map(Arc::new);
        let (on_main, on_second) = match second_listener {
            None => (encryption.clone(), None),
            Some(listener) => (None, Some(listener)),
        };
        let (acceptor, mut entry) = Acceptor::new(
            options.clone(),
            Shared {
                clock,
                queues: workers.queues.clone(),
                metrics: metrics.clone(),
                logins,
                old_versions: services.old_versions,
                encryption: on_main,
                rate: options
                    .requests_per_sec_max
                    .map(|rate| Arc::new(RequestRate::new(rate))),
            },
            events.clone(),
            memory,
            stopped,
            address,
        );
        let second = on_second.zip(encrypted_address).map(|(listener, address)| {
            let (second, entry_of_second) = acceptor.beside(address, encryption.clone());
            entry.join(entry_of_second);
            (second, listener)
        });
        let accepting = runtime.spawn(async move {
            let second = async {
                if let Some((acceptor, listener)) = second {
                    acceptor.run(listener).await;
                }
            };
            tokio::join!(acceptor.run(listener), second);
        });
        Ok(Self {
            address,
            encrypted_address,
            entry,
            encryption,
            runtime,
            accepting,
            stopping,
            events,
            metrics,
            workers,
            logins: known_logins,
            login_threads,
        })
    }

    /// The address of the first port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of the second port, which is encrypted while the first is not; `None` if there is one port.
    pub fn encrypted_address(&self) -> Option<SocketAddr> {
        self.encrypted_address
    }

    /// Closes and opens the client ports.
    pub fn entry(&self) -> Entry {
        self.entry.clone()
    }

    /// The certificates of client connections, to read them again.
    pub fn certificates(&self) -> Certificates {
        Certificates(self.encryption.iter().cloned().collect())
    }

    /// Sends an event to the clients that registered for it.
    pub fn announce(&self, event: &Event) {
        self.events.send(event);
    }

    /// Sends events to clients.
    pub(crate) fn events(&self) -> &Arc<Events> {
        &self.events
    }

    /// The server's counters.
    pub fn metrics(&self) -> &ServerMetrics {
        &self.metrics
    }

    /// Registers the server's metrics.
    pub fn register_metrics(&self, registry: &mut Registry) {
        self.metrics.register(registry);
    }

    /// Access to the connected clients.
    pub fn clients(&self) -> Clients {
        Clients {
            events: self.events.clone(),
            queues: self.workers.queues.clone(),
            metrics: self.metrics.clone(),
        }
    }

    /// The checks of logins; the pointer is dead after the server has stopped.
    pub(crate) fn logins(&self) -> Weak<Logins> {
        self.logins.clone()
    }

    /// Stops accepting and reading, answers the requests in flight, and ends. Clients that have not read their answers after `patience` are
    /// disconnected.
    pub fn stop(self, patience: Duration) {
        let _ = self.stopping.send(true);
        for session in self.events.sessions() {
            session.wake();
        }
        let ended = self
            .runtime
            .block_on(async { tokio::time::timeout(patience, self.accepting).await });
        if ended.is_err() {
            tracing::warn!("clients were cut off that did not take their answers in time");
        }
        for session in self.events.sessions() {
            session.close();
        }
        self.workers.stop();
        self.runtime.shutdown_timeout(Duration::from_secs(1));
        self.login_threads.join();
    }
}
