//! Accepts connections, and counts them while they are open.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use ilion_tls::{Encryption, Socket};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::client_memory::ClientMemory;
use crate::connection::{Connection, ConnectionLimits, Shared};
use crate::descriptors::DescriptorReserve;
use crate::entry::{Entry, Order, Wanted};
use crate::events::Events;
use crate::metrics::ServerMetrics;
use crate::options::ServerOptions;
use crate::port::{Entrance, Port};
use crate::session::{Session, SessionLimits};

/// Accepts the connections of one listener.
pub(crate) struct Acceptor {
    options: ServerOptions,
    shared: Shared,
    events: Arc<Events>,
    memory: Arc<ClientMemory>,
    stopping: watch::Receiver<bool>,
    orders: mpsc::Receiver<Order>,
    /// Announces whether the port is open.
    is_open: watch::Sender<bool>,
    /// Set to true to end the connections; replaced each time the port is opened.
    ending: watch::Sender<bool>,
    /// The address to listen on when the port is opened again.
    address: SocketAddr,
    reserve: DescriptorReserve,
    /// Open connections by the client's address.
    by_address: Arc<Mutex<HashMap<IpAddr, u64>>>,
    next_id: Arc<AtomicU64>,
}

/// How long clients have for reading their last answers when the port is closed.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pause after a failed accept (too many open files): some files may be closed by then.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

impl Acceptor {
    pub fn new(
        options: ServerOptions,
        shared: Shared,
        events: Arc<Events>,
        memory: Arc<ClientMemory>,
        stopping: watch::Receiver<bool>,
        address: SocketAddr,
    ) -> (Self, Entry) {
        let (orders, received) = mpsc::channel(1);
        let (is_open, told) = watch::channel(true);
        let entry = Entry {
            orders: vec![orders],
            is_open: told,
        };
        let acceptor = Self {
            orders: received,
            is_open,
            ending: watch::Sender::new(false),
            address,
            reserve: DescriptorReserve::of_clients(options.descriptors_max),
            options,
            shared,
            events,
            memory,
            stopping,
            by_address: Arc::default(),
            next_id: Arc::default(),
        };
        (acceptor, entry)
    }

    /// An acceptor for a second listener, with this encryption. Both share the limits.
    pub fn beside(&self, address: SocketAddr, encryption: Option<Arc<Encryption>>) -> (Self, Entry) {
        let shared = Shared {
            encryption,
            ..self.shared.clone()
        };
        let (events, memory) = (self.events.clone(), self.memory.clone());
        let (second, entry) = Self::new(
            self.options.clone(),
            shared,
            events,
            memory,
            self.stopping.clone(),
            address,
        );
        let second = Self {
            by_address: self.by_address.clone(),
            next_id: self.next_id.clone(),
            ..second
        };
        (second, entry)
    }

    /// Accepts until the server stops. Returns when all connections have ended.
    pub async fn run(mut self, listener: TcpListener) {
        let mut connections = JoinSet::new();
        let mut stopping = self.stopping.clone();
        let mut listener = Some(listener);
        loop {
            tokio::select! {
                accepted = next_of(listener.as_ref()) => match accepted {
                    Ok((stream, peer)) => self.accept(stream, peer, &mut connections),
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(ACCEPT_RETRY).await;
                    }
                },
                Some(_) = connections.join_next() => {}
                Some((wanted, outcome)) = self.orders.recv() => {
                    let done = match wanted {
                        Wanted::Open => self.open(&mut listener),
                        Wanted::Closed => {
                            listener = None;
                            self.close(&mut connections).await;
                            Ok(())
                        }
                    };
                    let _ = outcome.send(done);
                }
                _ = stopping.changed() => break,
            }
        }
        drop(listener);
        self.end_connections();
        while connections.join_next().await.is_some() {}
    }

    fn open(&mut self, listener: &mut Option<TcpListener>) -> Result<(), String> {
        if listener.is_some() {
            return Ok(());
        }
        let port = Port::take(Entrance::Clients, self.address).map_err(|error| error.to_string())?;
        *listener = Some(port.listen().map_err(|error| error.to_string())?);
        self.ending = watch::Sender::new(false);
        self.is_open.send_replace(true);
        tracing::info!(address = %self.address, "clients may connect, by order of an operator");
        Ok(())
    }

    async fn close(&mut self, connections: &mut JoinSet<()>) {
        if !self.is_open.send_replace(false) {
            return;
        }
        tracing::info!("clients may not connect, by order of an operator");
        self.end_connections();
        let all_ended = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(PATIENCE, all_ended).await.is_err() {
            for session in self.events.sessions() {
                session.close();
            }
        }
    }

    /// Makes all connections stop reading, and end once their requests are answered.
    fn end_connections(&self) {
        self.ending.send_replace(true);
        for session in self.events.sessions() {
            session.wake();
        }
    }

    fn accept(&mut self, stream: TcpStream, peer: SocketAddr, connections: &mut JoinSet<()>) {
        if !self.has_room_for(peer.ip()) {
            self.shared.metrics.connections_refused.inc();
            tracing::warn!(%peer, "a connection was refused: there are too many (native_transport_max_concurrent_connections)");
            return;
        }
        if !self.reserve.admits(&stream) {
            self.shared.metrics.connections_refused.inc();
            return;
        }
        // Answers are written whole: Nagle's algorithm would only delay them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%peer, %error, "a connection broke");
            return;
        }
        let socket = match Socket::accepted(stream, self.shared.encryption.as_deref()) {
            Ok(socket) => socket,
            Err(error) => {
                tracing::error!(%peer, %error, "a connection cannot be encrypted");
                return;
            }
        };
        connections.spawn(self.connection(socket, peer));
    }

    fn has_room_for(&self, address: IpAddr) -> bool {
        let by_address = self.by_address.lock();
        let all: u64 = by_address.values().sum();
        let of_address = by_address.get(&address).copied().unwrap_or(0);
        let is_below = |limit: Option<u64>, count: u64| limit.is_none_or(|limit| count < limit);
        is_below(self.options.connections_max, all)
            && is_below(self.options.connections_per_address_max, of_address)
    }

    fn connection(&self, stream: Socket, peer: SocketAddr) -> impl Future<Output = ()> + use<> {
        let stream = Arc::new(stream);
        let limits = SessionLimits {
            requests_max: self.options.requests_in_flight_max,
            request_bytes_max: self.options.request_bytes_max,
            queued_bytes_max: self.options.queued_bytes_max,
        };
        let account = self.memory.account(peer.ip());
        let id = self.next_id.fetch_add(1, Relaxed) + 1;
        let session = Arc::new(Session::new(id, peer, stream.clone(), limits, account));
        let connection_limits = ConnectionLimits {
            frame_bytes_max: self.options.frame_bytes_max,
            message_bytes_max: self.options.message_bytes_max,
            throws_on_overload: self.options.throws_on_overload,
            startup_timeout: self.options.startup_timeout,
            idle_timeout: self.options.idle_timeout,
            stall_timeout: self.options.stall_timeout,
        };
        let connection = Connection::new(
            session.clone(),
            stream,
            self.shared.clone(),
            connection_limits,
            self.ending.subscribe(),
        );
        let entry = OpenConnection::new(self, session);
        async move {
            connection.run().await;
            drop(entry);
        }
    }
}

/// Waits for the next connection; for ever if the port is closed.
async fn next_of(listener: Option<&TcpListener>) -> std::io::Result<(TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

/// Counts a connection until its task ends, for whatever reason.
struct OpenConnection {
    session: Arc<Session>,
    events: Arc<Events>,
    metrics: Arc<ServerMetrics>,
    by_address: Arc<Mutex<HashMap<IpAddr, u64>>>,
}

impl OpenConnection {
    fn new(acceptor: &Acceptor, session: Arc<Session>) -> Self {
        acceptor.events.add(&session);
        acceptor.shared.metrics.connections.inc();
        acceptor.shared.metrics.connections_total.inc();
        *acceptor.by_address.lock().entry(session.peer.ip()).or_default() += 1;
        Self {
            session,
            events: acceptor.events.clone(),
            metrics: acceptor.shared.metrics.clone(),
            by_address: acceptor.by_address.clone(),
        }
    }
}

impl Drop for OpenConnection {
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
