//! A port that is bound before the node opens, so that a second server on it fails at once, and not after the replay of its
//! commit log. Until [`Port::listen`], or a [`Port::twin`] that listens, connections are refused.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use tokio::net::{TcpListener, TcpSocket};

use crate::options::ServerOptions;

/// Most connections that wait to be accepted; the kernel may allow fewer.
const BACKLOG: u32 = 1024;

/// The purpose of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entrance {
    /// CQL clients.
    Clients,
    /// CQL clients with encryption, if they have a port of their own.
    EncryptedClients,
    /// Operators.
    Administration,
}

impl Entrance {
    fn port_setting(self) -> &'static str {
        match self {
            Self::Clients => "native_transport_port",
            Self::EncryptedClients => "native_transport_port_ssl",
            Self::Administration => "admin_port",
        }
    }

    fn address_setting(self) -> &'static str {
        match self {
            Self::Clients | Self::EncryptedClients => "rpc_address",
            Self::Administration => "admin_address",
        }
    }
}

impl fmt::Display for Entrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clients => "CQL clients",
            Self::EncryptedClients => "encrypted CQL clients",
            Self::Administration => "administration",
        })
    }
}

/// A port cannot be bound; the operator must act.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen for {entrance} on {address}: {source}{}", hint(*entrance, source))]
pub struct PortError {
    /// The purpose of the port.
    pub entrance: Entrance,
    /// Its address.
    pub address: SocketAddr,
    /// The error of the socket.
    pub source: io::Error,
}

fn hint(entrance: Entrance, error: &io::Error) -> String {
    let port = entrance.port_setting();
    match error.kind() {
        io::ErrorKind::AddrInUse => format!("; another server runs there, choose another port ({port})"),
        io::ErrorKind::AddrNotAvailable => {
            format!(
                "; it is no address of this machine ({})",
                entrance.address_setting()
            )
        }
        io::ErrorKind::PermissionDenied => format!("; ports below 1024 need privileges ({port})"),
        _ => String::new(),
    }
}

/// A bound port.
#[derive(Debug)]
pub struct Port {
    socket: TcpSocket,
    entrance: Entrance,
    address: SocketAddr,
}

impl Port {
    /// Binds a port; port 0 is any free port.
    ///
    /// # Errors
    /// Another server has the port, or the address cannot be used.
    pub fn take(entrance: Entrance, address: SocketAddr) -> Result<Self, PortError> {
        let failed = |source| PortError {
            entrance,
            address,
            source,
        };
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4(),
            SocketAddr::V6(_) => TcpSocket::new_v6(),
        }
        .map_err(failed)?;
        // Without this, connections in TIME_WAIT block the port.
        socket.set_reuseaddr(true).map_err(failed)?;
        socket.bind(address).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self {
            socket,
            entrance,
            address,
        })
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same port for another owner, who may listen on it before; connections that nobody has accepted stay for the next one.
    pub(crate) fn twin(&self) -> Result<Self, PortError> {
        let (entrance, address) = (self.entrance, self.address);
        let failed = |source| PortError {
            entrance,
            address,
            source,
        };
        let socket = self.socket.as_fd().try_clone_to_owned().map_err(failed)?;
        Ok(Self {
            socket: TcpSocket::from_std_stream(socket.into()),
            entrance,
            address,
        })
    }

    /// Starts to listen. Requires: it runs inside a tokio runtime.
    pub(crate) fn listen(self) -> Result<TcpListener, PortError> {
        let Self {
            socket,
            entrance,
            address,
        } = self;
        socket.listen(BACKLOG).map_err(|source| PortError {
            entrance,
            address,
            source,
        })
    }
}

/// The ports of CQL clients.
#[derive(Debug)]
pub struct ClientPorts {
    pub(crate) main: Port,
    /// A second, encrypted port; `None` if there is only one port.
    pub(crate) encrypted: Option<Port>,
}

impl ClientPorts {
    /// Binds the ports that the options name.
    ///
    /// # Errors
    /// See [`Port::take`].
    pub fn take(options: &ServerOptions) -> Result<Self, PortError> {
        let encrypted = options.encrypted_address;
        Ok(Self {
            main: Port::take(Entrance::Clients, options.address)?,
            encrypted: encrypted
                .map(|address| Port::take(Entrance::EncryptedClients, address))
                .transpose()?,
        })
    }
}
