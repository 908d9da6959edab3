//! Accepts the connections of other nodes.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ilion_cluster::Node;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::inbox::serve;
use crate::serving::Server;
use crate::stopping::stopped;
use crate::welcome::Door;

/// Pause after a failed accept (too many open files): some files may be closed by then.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// How long the connections have for their last words.
const PATIENCE: Duration = Duration::from_secs(1);
/// Maximum number of connections that have not greeted yet.
const STRANGERS_MAX: usize = 256;
/// The same refusal of the same address is logged once in this time.
const SILENT: Duration = Duration::from_secs(60);
const REFUSALS_MAX: usize = 256;

/// See the module.
pub(crate) struct Listener {
    pub door: Arc<Door>,
    pub server: Arc<Server>,
    pub refusals: Arc<Refusals>,
}

/// The refusals that were logged lately.
#[derive(Default)]
pub(crate) struct Refusals {
    logged: Mutex<HashMap<(IpAddr, String), Instant>>,
}

impl Refusals {
    /// The newest refusals of each address and reason, in no order.
    pub fn lately(&self) -> Vec<(IpAddr, String)> {
        self.logged.lock().keys().cloned().collect()
    }

    fn log(&self, peer: SocketAddr, reason: &str) {
        let now = Instant::now();
        let mut logged = self.logged.lock();
        if logged.len() >= REFUSALS_MAX {
            logged.clear();
        }
        let last = logged.insert((peer.ip(), reason.to_owned()), now);
        match last.is_some_and(|last| now - last < SILENT) {
            true => tracing::debug!("a connection from {peer} is refused: {reason}"),
            false => {
                tracing::warn!("a connection from {peer} to the port for other nodes is refused: {reason}")
            }
        }
    }
}

impl Listener {
    /// Accepts until the node stops. Returns when all connections have ended.
    pub async fn run(self, listener: TcpListener) {
        let mut connections = JoinSet::new();
        let mut stopping = self.server.stopping.clone();
        let strangers = Arc::new(Semaphore::new(STRANGERS_MAX));
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((tcp, peer)) => self.accept(tcp, peer, &strangers, &mut connections),
                    Err(error) => {
                        tracing::warn!(%error, "a connection of another node could not be accepted");
                        tokio::time::sleep(ACCEPT_RETRY).await;
                    }
                },
                Some(_) = connections.join_next() => {}
                () = stopped(&mut stopping) => break,
            }
        }
        drop(listener);
        let all_ended = async { while connections.join_next().await.is_some() {} };
        let _ = timeout(PATIENCE, all_ended).await;
    }

    fn accept(
        &self,
        tcp: TcpStream,
        peer: SocketAddr,
        strangers: &Arc<Semaphore>,
        connections: &mut JoinSet<()>,
    ) {
        let Ok(stranger) = strangers.clone().try_acquire_owned() else {
            return self
                .refusals
                .log(peer, "too many connections have not greeted yet");
        };
        if connections.len() >= self.server.options.connections_max {
            return self.refusals.log(peer, "other nodes have too many connections");
        }
        let (door, server, refusals) = (self.door.clone(), self.server.clone(), self.refusals.clone());
        connections.spawn(async move {
            // The side that connects has the same time.
            let mut stopping = server.stopping.clone();
            let received = tokio::select! {
                received = timeout(server.options.connect_timeout, door.receive(tcp, peer)) => received,
                () = stopped(&mut stopping) => return,
            };
            drop(stranger);
            let welcomed = match received {
                Ok(Ok(welcomed)) => welcomed,
                Ok(Err(reason)) => return refusals.log(peer, &reason),
                Err(_) => return refusals.log(peer, "it did not greet in time"),
            };
            let node: Node = welcomed.identity.node;
            tracing::debug!(node, %peer, "a node has connected");
            let reason = serve(server, welcomed.identity, welcomed.socket, welcomed.receiver).await;
            tracing::info!("the connection of node {node} at {peer} ended: {reason}");
        });
    }
}
