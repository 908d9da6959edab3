//! Waiting for a crowd: a request costs brokers about as much for one record or caller as for twenty.

use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

/// After a request for this many, the next one waits: those who were answered just now probably come again.
pub(crate) const CROWD: usize = 4;
/// The longest wait.
const GATHER: Duration = Duration::from_millis(1);

/// Returns when `is_enough` returns true. It is called at once, and after each notification.
pub(crate) async fn wait_for(changed: &Notify, is_enough: impl Fn() -> bool) {
    // A notification may be of an earlier wait.
    while !is_enough() {
        changed.notified().await;
    }
}

/// The same, but not for longer than a moment.
pub(crate) async fn gather(changed: &Notify, is_enough: impl Fn() -> bool) {
    // The error says that the time is over.
    let _ = timeout(GATHER, wait_for(changed, is_enough)).await;
}
