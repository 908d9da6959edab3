//! The CQL server: it listens, counts connections, and ends in order.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ilion_env::Env;
use ilion_protocol::Event;
use ilion_query::StatementWeight;
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::connection::{Connection, ConnectionLimits};
use crate::durability::Durability;
use crate::events::Events;
use crate::execute::Executor;
use crate::metrics::ServerMetrics;
use crate::options::ServerOptions;
use crate::request::Requests;
use crate::session::{Session, SessionLimits};
use crate::statements::Statements;
use crate::system::SchemaListener;
use crate::workers::{PoolSizes, Queues, Workers};

/// What the server serves.
pub struct Services {
    /// Clock.
    pub env: Arc<dyn Env>,
    /// Executes statements.
    pub statements: Arc<dyn Statements>,
    /// Says when writes are durable.
    pub durability: Arc<dyn Durability>,
    /// Told of schema changes.
    pub schema_listener: Arc<dyn SchemaListener>,
}

/// Why the server does not start; the operator must act.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("cannot listen for CQL clients on {address}: {source}{}", hint(source))]
    Listen {
        /// Which address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The operating system gives no threads.
    #[error("cannot start threads: {0}")]
    Threads(io::Error),
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "; another server runs there, choose another port (native_transport_port)"
        }
        io::ErrorKind::AddrNotAvailable => "; it is no address of this machine (rpc_address)",
        io::ErrorKind::PermissionDenied => "; ports below 1024 need privileges (native_transport_port)",
        _ => "",
    }
}

/// A running CQL server.
pub struct Server {
    address: SocketAddr,
    runtime: Runtime,
    accepting: JoinHandle<()>,
    stopping: watch::Sender<bool>,
    events: Arc<Events>,
    metrics: Arc<ServerMetrics>,
    workers: Workers,
}

/// A connected client, for `system_views.clients`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFacts {
    /// Where it is.
    pub peer: SocketAddr,
    /// How far it has come: `ESTABLISHED`, `AUTHENTICATING`, `READY`.
    pub stage: &'static str,
    /// What it said in STARTUP.
    pub options: Vec<(String, String)>,
    /// The version that it speaks, if it has said so.
    pub protocol_version: Option<u8>,
    /// Its keyspace.
    pub keyspace: Option<String>,
    /// Who is logged in.
    pub user: Option<String>,
    /// Its requests so far.
    pub request_count: u64,
    /// Requests that are waiting or running.
    pub requests_in_flight: usize,
    /// Bytes of answers that it has not taken yet.
    pub queued_bytes: usize,
}

impl Server {
    /// Listens and serves until [`Server::stop`].
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(options: &ServerOptions, services: Services) -> Result<Self, StartError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(options.network_threads)
            .thread_name("ilion-network")
            .enable_all()
            .build()
            .map_err(StartError::Threads)?;
        let address = options.address;
        let listener = runtime
            .block_on(TcpListener::bind(address))
            .map_err(|source| StartError::Listen { address, source })?;
        let address = listener
            .local_addr()
            .map_err(|source| StartError::Listen { address, source })?;
        let metrics = ServerMetrics::new();
        let events = Arc::new(Events::default());
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
        });
        let pools = PoolSizes {
            point: options.request_threads,
            heavy: options.heavy_threads,
        };
        let workers = Workers::start(pools, &executor).map_err(StartError::Threads)?;
        let (stopping, stopped) = watch::channel(false);
        let acceptor = Acceptor {
            options: options.clone(),
            events: events.clone(),
            metrics: metrics.clone(),
            queues: workers.queues.clone(),
            stopping: stopped,
            by_address: Arc::default(),
            next_id: 0,
        };
        let accepting = runtime.spawn(acceptor.run(listener));
        Ok(Self {
            address,
            runtime,
            accepting,
            stopping,
            events,
            metrics,
            workers,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Tells the clients that registered for it.
    pub fn announce(&self, event: &Event) {
        self.events.send(event);
    }

    /// What it counts.
    pub fn metrics(&self) -> &ServerMetrics {
        &self.metrics
    }

    /// Makes what it counts readable.
    pub fn register_metrics(&self, registry: &mut Registry) {
        self.metrics.register(registry);
    }

    /// A door to the list of clients that stays valid when the server has stopped.
    pub fn clients(&self) -> Clients {
        Clients {
            events: self.events.clone(),
            queues: self.workers.queues.clone(),
            metrics: self.metrics.clone(),
        }
    }

    /// Accepts and reads nothing more, answers what was asked, and ends. Clients that have not taken their answers
    /// after `patience` are cut off.
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
    }
}

/// The connected clients.
#[derive(Clone)]
pub struct Clients {
    events: Arc<Events>,
    queues: Queues,
    metrics: Arc<ServerMetrics>,
}

impl Clients {
    /// All of them, in the order of their connection.
    pub fn list(&self) -> Vec<ClientFacts> {
        self.events
            .sessions()
            .iter()
            .map(|session| session.facts())
            .collect()
    }

    /// Requests answered since the start.
    pub fn request_count(&self) -> u64 {
        self.metrics.request_count()
    }

    /// The pools that execute requests.
    pub fn pools(&self) -> [PoolFacts; 2] {
        [
            ("Native-Transport-Requests", StatementWeight::Point),
            ("Heavy-Statements", StatementWeight::Heavy),
        ]
        .map(|(name, pool)| PoolFacts {
            name,
            threads: self.queues.thread_count(pool),
            waiting: self.queues.waiting(pool),
        })
    }
}

/// A pool of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolFacts {
    /// Its name, Cassandra's where it has one.
    pub name: &'static str,
    /// Its threads.
    pub threads: usize,
    /// Tasks that wait for one of them.
    pub waiting: usize,
}

/// Takes connections.
struct Acceptor {
    options: ServerOptions,
    events: Arc<Events>,
    metrics: Arc<ServerMetrics>,
    queues: Queues,
    stopping: watch::Receiver<bool>,
    /// Open connections by the client's address.
    by_address: Arc<Mutex<HashMap<IpAddr, u64>>>,
    next_id: u64,
}

/// After a failed accept (too many open files) there is nothing to do but to wait for some to close.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

impl Acceptor {
    async fn run(mut self, listener: TcpListener) {
        let mut connections = JoinSet::new();
        let mut stopping = self.stopping.clone();
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => self.accept(stream, peer, &mut connections),
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(ACCEPT_RETRY).await;
                    }
                },
                Some(_) = connections.join_next() => {}
                _ = stopping.changed() => break,
            }
        }
        drop(listener);
        while connections.join_next().await.is_some() {}
    }

    fn accept(&mut self, stream: TcpStream, peer: SocketAddr, connections: &mut JoinSet<()>) {
        if !self.has_room_for(peer.ip()) {
            self.metrics.connections_refused.inc();
            tracing::warn!(%peer, "a connection was refused: there are too many (native_transport_max_concurrent_connections)");
            return;
        }
        // Answers are written whole; waiting for more to send would only delay them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%peer, %error, "a connection broke");
            return;
        }
        self.next_id += 1;
        connections.spawn(self.connection(stream, peer));
    }

    fn has_room_for(&self, address: IpAddr) -> bool {
        let by_address = self.by_address.lock();
        let all: u64 = by_address.values().sum();
        let of_address = by_address.get(&address).copied().unwrap_or(0);
        let is_below = |limit: Option<u64>, count: u64| limit.is_none_or(|limit| count < limit);
        is_below(self.options.connections_max, all)
            && is_below(self.options.connections_per_address_max, of_address)
    }

    fn connection(&self, stream: TcpStream, peer: SocketAddr) -> impl Future<Output = ()> + use<> {
        let stream = Arc::new(stream);
        let limits = SessionLimits {
            requests_max: self.options.requests_in_flight_max,
            request_bytes_max: self.options.request_bytes_max,
            queued_bytes_max: self.options.queued_bytes_max,
        };
        let session = Arc::new(Session::new(self.next_id, peer, stream.clone(), limits));
        let connection_limits = ConnectionLimits {
            frame_bytes_max: self.options.frame_bytes_max,
            startup_timeout: self.options.startup_timeout,
            idle_timeout: self.options.idle_timeout,
        };
        let connection = Connection::new(
            session.clone(),
            stream,
            self.queues.clone(),
            self.metrics.clone(),
            connection_limits,
            self.stopping.clone(),
        );
        let entry = Entry::new(self, session);
        async move {
            connection.run().await;
            drop(entry);
        }
    }
}

/// Counts a connection while it is open, however its task ends.
struct Entry {
    session: Arc<Session>,
    events: Arc<Events>,
    metrics: Arc<ServerMetrics>,
    by_address: Arc<Mutex<HashMap<IpAddr, u64>>>,
}

impl Entry {
    fn new(acceptor: &Acceptor, session: Arc<Session>) -> Self {
        acceptor.events.add(&session);
        acceptor.metrics.connections.inc();
        acceptor.metrics.connections_total.inc();
        *acceptor.by_address.lock().entry(session.peer.ip()).or_default() += 1;
        Self {
            session,
            events: acceptor.events.clone(),
            metrics: acceptor.metrics.clone(),
            by_address: acceptor.by_address.clone(),
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.session.close();
        self.events.remove(&self.session);
        self.metrics.connections.dec();
        let mut by_address = self.by_address.lock();
        if let Some(count) = by_address.get_mut(&self.session.peer.ip()) {
            *count -= 1;
            if *count == 0 {
                by_address.remove(&self.session.peer.ip());
            }
        }
    }
}
