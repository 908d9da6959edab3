//! [`Link`]: the connection to another node, made when it is needed, and again after it broke.

use std::sync::Arc;
use std::time::Duration;

use ilion_cluster::Node;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

use crate::backoff::pause;
use crate::conn::{Conn, exchange};
use crate::counts::add_one;
use crate::dial::dial;
use crate::error::CallError;
use crate::shared::Shared;
use crate::stopping::stopped;

/// A connection that broke sooner than this counts as a failure to connect.
const SHORT: Duration = Duration::from_secs(1);

/// See the module.
pub(crate) struct Link {
    node: Node,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    current: Option<Arc<Conn>>,
    /// Failures in a row.
    failures: u32,
    /// No attempt before this.
    retry_at: Option<Instant>,
    /// Why the last attempt failed.
    reason: String,
}

impl Link {
    pub fn new(node: Node) -> Self {
        Self {
            node,
            state: Mutex::default(),
        }
    }

    /// The connection; begins one if there is none. Its calls wait until it is open.
    ///
    /// # Errors
    /// The last attempt failed just now.
    pub fn conn(self: &Arc<Self>, shared: &Arc<Shared>) -> Result<Arc<Conn>, CallError> {
        let mut state = self.state.lock();
        if let Some(conn) = &state.current {
            return Ok(conn.clone());
        }
        if state.retry_at.is_some_and(|at| Instant::now() < at) {
            return Err(CallError::Unreachable(state.reason.clone()));
        }
        let conn = Arc::new(Conn::new());
        state.current = Some(conn.clone());
        // A runtime that has ended drops the task at once, and the task then locks the state.
        drop(state);
        let ending = Ending {
            link: self.clone(),
            conn: conn.clone(),
            shared: shared.clone(),
            opened_at: None,
            reason: "this node is shutting down".to_owned(),
        };
        shared.handle.spawn(ending.run());
        Ok(conn)
    }
}

/// The task of a connection. When it ends, also because the runtime does, the calls of the connection fail.
struct Ending {
    link: Arc<Link>,
    conn: Arc<Conn>,
    shared: Arc<Shared>,
    opened_at: Option<Instant>,
    reason: String,
}

impl Ending {
    async fn run(mut self) {
        let node = self.link.node;
        let Some(address) = self.shared.peers.address(node) else {
            self.reason = format!("node {node} is no member of the cluster as far as this node knows");
            return;
        };
        let shared = self.shared.clone();
        let dialing = dial(address, node, &shared.identity, shared.encryption.as_deref());
        let mut stopping = shared.stopping.clone();
        let counted = shared.counting.of(node);
        add_one(&counted.attempts);
        let opened = tokio::select! {
            opened = timeout(shared.options.connect_timeout, dialing) => opened,
            () = stopped(&mut stopping) => return,
        };
        let opened = opened.unwrap_or_else(|_| Err("it does not answer".to_owned()));
        self.reason = match opened {
            Err(problem) => format!("node {node} at {address} cannot be reached: {problem}"),
            Ok(opened) => {
                tracing::debug!(node, %address, "connected to a node");
                self.link.state.lock().failures = 0;
                self.opened_at = Some(Instant::now());
                add_one(&counted.connected);
                let reason = exchange(&self.conn, opened, &shared.options, stopping).await;
                format!("the connection to node {node} at {address} ended: {reason}")
            }
        };
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let now = Instant::now();
        let mut state = self.link.state.lock();
        state.current = None;
        if self.opened_at.is_some() {
            add_one(&self.shared.counting.of(self.link.node).ended);
        }
        let was_short = self.opened_at.is_none_or(|at| now - at < SHORT);
        if was_short {
            state.failures = state.failures.saturating_add(1);
        }
        state.retry_at = Some(now + pause(state.failures, self.shared.env.random_u64()));
        // Logged once for each reason, and not at each attempt.
        if state.reason != self.reason || self.opened_at.is_some() {
            match *self.shared.stopping.borrow() {
                true => tracing::debug!("{}", self.reason),
                false => tracing::warn!("{}", self.reason),
            }
        }
        state.reason.clone_from(&self.reason);
        drop(state);
        self.conn.end(&CallError::Unreachable(self.reason.clone()));
    }
}
