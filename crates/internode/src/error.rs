//! [`CallError`]: why a call has no answer, and [`StartError`]: why the connections to other nodes cannot be set up.

use std::io;
use std::net::SocketAddr;

use ilion_tls::TlsError;

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The node cannot be reached, or the connection broke: the request may have been executed or not. Ask another node.
    #[error("{0}")]
    Unreachable(String),
    /// The node must not answer, has too much to do, or too many of this node's calls are open. Ask another node.
    #[error("{0}")]
    Refused(String),
    /// The deadline has passed.
    #[error("no answer in time")]
    TimedOut,
    /// The node tried and failed, or its answer is too large.
    #[error("{0}")]
    Failed(String),
}

/// The connections to other nodes cannot be set up; the operator must act.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The port cannot be bound.
    #[error("cannot listen for other nodes on {address}: {source}{}", hint(source))]
    Port {
        /// Its address.
        address: SocketAddr,
        /// The error of the socket.
        source: io::Error,
    },
    /// The certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The operating system gives no thread.
    #[error("cannot start threads for other nodes: {0}")]
    Threads(io::Error),
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; another program has it, choose another port (storage_port)",
        io::ErrorKind::AddrNotAvailable => "; it is no address of this machine (listen_address)",
        io::ErrorKind::PermissionDenied => "; ports below 1024 need privileges (storage_port)",
        _ => "",
    }
}
