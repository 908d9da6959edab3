//! [`ReplicaClient`]: how a coordinator reaches other nodes.

use std::sync::Arc;

use ilion_cluster::Node;

use crate::answer::{Answer, ReplicaError};
use crate::command::ReadCommand;
use crate::signal::Signal;

/// The way to other nodes.
pub trait ReplicaClient: Send + Sync {
    /// Sends a command. Does not wait for the answer.
    fn send(&self, node: Node, command: ReadCommand) -> Box<dyn Pending>;
}

/// An answer that is on its way. Dropping it cancels the read, if the replica can still be reached.
pub trait Pending: Send {
    /// Waits for the answer until a time of this node's monotonic clock.
    ///
    /// # Errors
    /// There is no answer: see [`ReplicaError`].
    fn wait(self: Box<Self>, deadline_nanos: u64) -> Result<Answer, ReplicaError>;

    /// Arranges that the signal is raised when [`Self::is_answered`] changes. Returns false if the answer is made only by [`Self::wait`]:
    /// then no second replica is asked meanwhile.
    fn watch(&mut self, _signal: &Arc<Signal>) -> bool {
        false
    }

    /// Whether `wait` returns at once.
    fn is_answered(&self) -> bool {
        false
    }
}
