//! A connected client, as operators see it.

use std::net::SocketAddr;

/// A connected client, for `system_views.clients`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFacts {
    /// Where it is.
    pub peer: SocketAddr,
    /// How far it has come: `ESTABLISHED`, `AUTHENTICATING`, `READY`.
    pub stage: &'static str,
    /// What it said in STARTUP.
    pub options: Vec<(String, String)>,
    /// The version that it speaks, if it has said so.
    pub protocol_version: Option<u8>,
    /// Its keyspace.
    pub keyspace: Option<String>,
    /// Who is logged in.
    pub user: Option<String>,
    /// Its requests so far.
    pub request_count: u64,
    /// Requests that are waiting or running.
    pub requests_in_flight: usize,
    /// Bytes of answers that it has not taken yet.
    pub queued_bytes: usize,
}
