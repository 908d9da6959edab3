//! Waiting for the commit log.

use ilion_query::LogPosition;

/// Told once whether everything up to a position is durable, or why it will never be.
pub type DurableCallback = Box<dyn FnOnce(Result<(), String>) + Send>;

/// The commit log, as far as answers wait for it.
pub trait Durability: Send + Sync {
    /// Calls back when the log keeps its promise up to `position`; at once, on the caller's thread, if it does already.
    fn on_durable(&self, position: LogPosition, callback: DurableCallback);
}

/// For stores without a log: everything is as durable as it gets.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLog;

impl Durability for NoLog {
    fn on_durable(&self, _position: LogPosition, callback: DurableCallback) {
        callback(Ok(()));
    }
}
