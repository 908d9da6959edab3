//! [`JoinError`]: why a node does not become a member.

use std::time::Duration;

use ilion_commitlog::TailError;

/// Why a node does not become a member.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The logs cannot be read.
    #[error("the logs of the cluster cannot be read: {0}")]
    Logs(#[from] TailError),
    /// No thread can be started.
    #[error("no thread to follow the logs: {0}")]
    Thread(#[from] std::io::Error),
    /// The node must not become a member, or cannot.
    #[error("{0}")]
    Refused(String),
    /// The node was not a complete member after this time.
    #[error(
        "this node is not a complete member of the cluster after {0:?}: it goes on when it is started again; the log says what it waits for"
    )]
    TooSlow(Duration),
}
