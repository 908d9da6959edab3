//! Waits until this node stops.

use tokio::sync::watch;

/// Returns when the node stops.
pub(crate) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone, so the node has stopped.
    let _ = stopping.wait_for(|is_stopping| *is_stopping).await;
}
