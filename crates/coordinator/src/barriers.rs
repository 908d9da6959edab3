//! [`Barriers`]: what makes a read of one replica see every write that was acknowledged before.

use ilion_engine::TabletPosition;

/// Read barriers: a no-op is appended to the log of a tablet, and a replica answers once it has applied the no-op.
///
/// Two steps, since the replica may be another node: the coordinator appends and learns the position, and the command carries it
/// to the replica.
pub trait Barriers: Send + Sync {
    /// Returns a record in the log of each of these tablets, behind every write that was acknowledged before the call. Reads that wait at
    /// the same time may share a no-op that was appended after all of them called.
    ///
    /// # Errors
    /// See [`BarrierError`].
    fn raise(&self, tablets: &[u32], deadline_nanos: u64) -> Result<Vec<TabletPosition>, BarrierError>;

    /// Waits until this node has applied these records.
    ///
    /// # Errors
    /// See [`BarrierError`].
    fn wait_applied(&self, reached: &[TabletPosition], deadline_nanos: u64) -> Result<(), BarrierError>;

    /// Raises a barrier for one tablet, and calls back when this node has applied it. The caller may wait in the call.
    fn on_applied(&self, tablet: u32, deadline_nanos: u64, done: AppliedCallback) {
        let raised = self.raise(&[tablet], deadline_nanos);
        done(raised.map(|reached| self.wait_applied(&reached, deadline_nanos)));
    }
}

/// What came of a barrier: the outer result is that of [`Barriers::raise`], the inner one that of [`Barriers::wait_applied`].
pub type Applied = Result<Result<(), BarrierError>, BarrierError>;

/// Called once, on any thread.
pub type AppliedCallback = Box<dyn FnOnce(Applied) + Send>;

/// Why a barrier failed. The read must not be answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BarrierError {
    /// The deadline passed: a time of the monotonic clock of this node.
    #[error("the log did not take or deliver a barrier in time")]
    TimedOut,
    /// The log cannot take records now, or this node's apply of a tablet has halted.
    #[error("no barrier: {0}")]
    Unavailable(String),
}
