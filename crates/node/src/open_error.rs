//! Why a node does not open.

use crate::system::LocalError;

/// Why a node does not open; the operator must act.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The engine does not open.
    #[error(transparent)]
    Engine(#[from] ilion_engine::Error),
    /// The data directory belongs to another node.
    #[error(transparent)]
    Local(#[from] LocalError),
    /// Settings contradict each other, or the machine cannot fulfill them.
    #[error("{0}")]
    Settings(String),
    /// The node cannot take part in its cluster.
    #[error("cannot take part in the cluster: {0}")]
    Cluster(String),
    /// Threads cannot be started.
    #[error("cannot start threads: {0}")]
    Threads(std::io::Error),
}
