//! The ports of CQL clients, closed and opened again while the node runs (`nodetool disablebinary`, `enablebinary`).

use tokio::sync::{mpsc, oneshot, watch};

/// The state that the acceptor is ordered to reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Clients may connect.
    Open,
    /// Connections end when their requests are answered, and nobody can connect.
    Closed,
}

/// An order, and the channel for its outcome.
pub(crate) type Order = (Wanted, oneshot::Sender<Result<(), String>>);

/// Closes and opens the ports. It stays valid when the server has stopped.
#[derive(Clone)]
pub struct Entry {
    /// The channel to the acceptor of each port.
    pub(crate) orders: Vec<mpsc::Sender<Order>>,
    pub(crate) is_open: watch::Receiver<bool>,
}

impl Entry {
    /// Whether clients may connect.
    pub fn is_open(&self) -> bool {
        *self.is_open.borrow()
    }

    /// Adds the ports of another `Entry`.
    pub(crate) fn join(&mut self, other: Self) {
        self.orders.extend(other.orders);
    }

    /// Opens the ports; no effect on open ones.
    ///
    /// # Errors
    /// Another program has taken a port meanwhile, or the node is stopping.
    pub fn open(&self) -> Result<(), String> {
        self.order(Wanted::Open)
    }

    /// Closes the ports and ends all connections, once the requests that were received are answered.
    ///
    /// # Errors
    /// The node is stopping.
    pub fn close(&self) -> Result<(), String> {
        self.order(Wanted::Closed)
    }

    fn order(&self, wanted: Wanted) -> Result<(), String> {
        let stopping = || "the node is stopping".to_owned();
        for orders in &self.orders {
            let (outcome, told) = oneshot::channel();
            orders.blocking_send((wanted, outcome)).map_err(|_| stopping())?;
            told.blocking_recv().map_err(|_| stopping())??;
        }
        Ok(())
    }
}
