//! Facts about a connected client.

use std::net::SocketAddr;

use ilion_tls::TlsFacts;

/// A connected client, for `system_views.clients`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFacts {
    /// Its address.
    pub peer: SocketAddr,
    /// Stage of the connection: `ESTABLISHED`, `AUTHENTICATING`, `READY`.
    pub stage: &'static str,
    /// Options of its STARTUP.
    pub options: Vec<(String, String)>,
    /// Its protocol version; `None` before STARTUP.
    pub protocol_version: Option<u8>,
    /// Its keyspace.
    pub keyspace: Option<String>,
    /// Its role; `None` without a login.
    pub user: Option<String>,
    /// The encryption of its connection; `None` if it is not encrypted.
    pub tls: Option<TlsFacts>,
    /// Requests since it connected.
    pub request_count: u64,
    /// Requests that wait or run.
    pub requests_in_flight: usize,
    /// Bytes of answers that it has not read yet.
    pub queued_bytes: usize,
}
