//! Options of the CQL server, from the settings and the machine.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::thread::available_parallelism;
use std::time::Duration;

use ilion_node::client_bytes;
use ilion_settings::{LogPlace, Settings, Size};
use ilion_tls::TlsOptions;

use crate::certificate::CertificateLogins;
use crate::encryption::client_encryption;

/// Options of the CQL server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Address to listen on; port 0 is any free port.
    pub address: SocketAddr,
    /// Address of a second port, which is encrypted while the first is not.
    pub encrypted_address: Option<SocketAddr>,
    /// Encryption; `None` if connections are not encrypted.
    pub tls: Option<TlsOptions>,
    /// Longest request before v5, in bytes.
    pub frame_bytes_max: u32,
    /// Longest body of a request in v5, in bytes.
    pub message_bytes_max: u32,
    /// For clients of v5 whose STARTUP has no THROW_ON_OVERLOAD: whether requests are refused at once on overload, without a wait.
    pub throws_on_overload: bool,
    /// Requests per second of all clients together; `None` is no limit.
    pub requests_per_sec_max: Option<NonZeroU32>,
    /// Threads for network I/O.
    pub network_threads: usize,
    /// Threads for statements that touch a few rows.
    pub request_threads: usize,
    /// Threads for statements that may take long.
    pub heavy_threads: usize,
    /// Logins by certificate; `None` if certificates are not used for logins.
    pub certificate_logins: Option<CertificateLogins>,
    /// Threads that check passwords.
    pub login_threads: usize,
    /// Most connections at a time; `None` is no limit.
    pub connections_max: Option<u64>,
    /// Most connections at a time from one address; `None` is no limit.
    pub connections_per_address_max: Option<u64>,
    /// How long a client may take until STARTUP.
    pub startup_timeout: Duration,
    /// How long an idle client stays connected; zero is for ever.
    pub idle_timeout: Duration,
    /// How long a client may stop in the middle of a request, or read none of its answers; zero is for ever.
    pub stall_timeout: Duration,
    /// Most bytes of requests and answers for all connections together; `None`: a share of the machine's memory.
    pub client_bytes_max: Option<u64>,
    /// Most bytes for the connections of one address; `None`: a quarter of the limit for all.
    pub client_bytes_per_address_max: Option<u64>,
    /// Most files and sockets that the process may have open; `None` is no limit.
    pub descriptors_max: Option<u64>,
    /// Most requests in flight per connection.
    pub requests_in_flight_max: usize,
    /// Most bytes of requests in flight per connection.
    pub request_bytes_max: usize,
    /// Most bytes of answers that a connection may leave unread.
    pub queued_bytes_max: usize,
}

/// Default number of request threads of a node of a cluster: most of them wait for other nodes.
const WAITING_THREADS: usize = 128;
/// Default number of threads of a node of a cluster for statements that may take long.
const WAITING_HEAVY_THREADS: usize = 16;

impl ServerOptions {
    /// The options in the settings.
    pub fn of(settings: &Settings) -> Self {
        let processors = available_parallelism().map_or(2, usize::from);
        let threads =
            |given: Option<u16>, chosen: usize| given.map_or(chosen, |count| usize::from(count).max(1));
        let bytes = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
        let of_protocol =
            |size: u64| u32::try_from(size).map_or(FRAME_BYTES_MAX, |size| size.min(FRAME_BYTES_MAX));
        // Compat: `max_mutation_size`, or less if fewer bytes may be in flight.
        let message_bytes_max = settings.native_transport_max_message_size.unwrap_or(Size(
            (settings.commitlog_segment_size.0 / 2)
                .min(size_or_max(settings.native_transport_max_request_data_in_flight))
                .min(size_or_max(
                    settings.native_transport_max_request_data_in_flight_per_ip,
                )),
        ));
        let waits_for_others = settings.log != LogPlace::Local;
        Self {
            address: SocketAddr::new(settings.rpc_address, settings.native_transport_port),
            encrypted_address: settings
                .native_transport_port_ssl
                // Compat: if both settings have the same number, there is one port, and it is encrypted.
                .filter(|port| *port == 0 || *port != settings.native_transport_port)
                .map(|port| SocketAddr::new(settings.rpc_address, port)),
            tls: client_encryption(settings),
            frame_bytes_max: of_protocol(settings.native_transport_max_frame_size.0),
            message_bytes_max: of_protocol(message_bytes_max.0),
            throws_on_overload: settings.native_transport_throw_on_overload,
            requests_per_sec_max: settings
                .native_transport_rate_limiting_enabled
                .then_some(settings.native_transport_max_requests_per_second),
            network_threads: processors.div_ceil(2),
            request_threads: threads(
                settings.native_transport_max_threads,
                match waits_for_others {
                    true => WAITING_THREADS,
                    false => (2 * processors).max(4),
                },
            ),
            heavy_threads: threads(
                settings.native_transport_max_heavy_threads,
                match waits_for_others {
                    true => WAITING_HEAVY_THREADS,
                    false => processors.max(2),
                },
            ),
            certificate_logins: CertificateLogins::of(settings),
            login_threads: usize::from(settings.native_transport_max_auth_threads).clamp(1, 64),
            connections_max: settings.native_transport_max_concurrent_connections.0,
            connections_per_address_max: settings.native_transport_max_concurrent_connections_per_ip.0,
            startup_timeout: settings.native_transport_startup_timeout,
            idle_timeout: settings.native_transport_idle_timeout,
            stall_timeout: settings.native_transport_stall_timeout,
            client_bytes_max: settings
                .native_transport_max_request_data_in_flight
                .map(|size| size.0),
            client_bytes_per_address_max: settings
                .native_transport_max_request_data_in_flight_per_ip
                .map(|size| size.0),
            descriptors_max: ilion_env::descriptor_limit(),
            requests_in_flight_max: settings.native_transport_max_requests_in_flight as usize,
            request_bytes_max: bytes(settings.native_transport_receive_queue_capacity.0),
            queued_bytes_max: bytes(settings.native_transport_send_queue_capacity.0),
        }
    }
}

fn size_or_max(size: Option<Size>) -> u64 {
    size.map_or(u64::MAX, |size| size.0)
}

impl ServerOptions {
    /// Limits in bytes: for all connections, and for those of one address.
    pub(crate) fn client_memory(&self, machine_bytes: u64) -> (usize, usize) {
        let bytes = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
        let (all, of_address) = client_bytes(
            self.client_bytes_max.map(Size),
            self.client_bytes_per_address_max.map(Size),
            machine_bytes,
        );
        (bytes(all), bytes(of_address))
    }
}

/// The largest body of the protocol.
const FRAME_BYTES_MAX: u32 = 256 << 20;
