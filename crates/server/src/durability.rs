//! The interface for waiting until the commit log is durable.

use ilion_query::LogPosition;

/// Called once: when everything up to a position is durable, or with the reason why it never will be.
pub type DurableCallback = Box<dyn FnOnce(Result<(), String>) + Send>;

/// The part of the commit log that answers need.
pub trait Durability: Send + Sync {
    /// Calls back when the log is durable up to `position`, as its sync mode defines it. If it already is durable, calls back at once, on
    /// the caller's thread.
    fn on_durable(&self, position: LogPosition, callback: DurableCallback);
}

/// For stores without a log: calls back at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLog;

impl Durability for NoLog {
    fn on_durable(&self, _position: LogPosition, callback: DurableCallback) {
        callback(Ok(()));
    }
}
