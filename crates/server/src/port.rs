//! A port that is taken before there is anything to serve: who starts a second server on it is told at once, not after the
//! replay of a commit log. Until [`Port::listen`] clients are refused, as if nothing ran.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};

/// Connections that wait until they are taken; the kernel may allow fewer.
const BACKLOG: u32 = 1024;

/// Who comes in by a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entrance {
    /// CQL clients.
    Clients,
    /// Operators.
    Administration,
}

impl Entrance {
    fn port_setting(self) -> &'static str {
        match self {
            Self::Clients => "native_transport_port",
            Self::Administration => "admin_port",
        }
    }

    fn address_setting(self) -> &'static str {
        match self {
            Self::Clients => "rpc_address",
            Self::Administration => "admin_address",
        }
    }
}

impl fmt::Display for Entrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clients => "CQL clients",
            Self::Administration => "administration",
        })
    }
}

/// A port cannot be had; the operator must act.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen for {entrance} on {address}: {source}{}", hint(*entrance, source))]
pub struct PortError {
    /// Whose port.
    pub entrance: Entrance,
    /// Where.
    pub address: SocketAddr,
    /// Why.
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

/// A taken port.
#[derive(Debug)]
pub struct Port {
    socket: TcpSocket,
    entrance: Entrance,
    address: SocketAddr,
}

impl Port {
    /// Takes the port of an address; port 0 is a free one.
    ///
    /// # Errors
    /// Another server listens there, or the address is not to be had.
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
        // Else connections that have just ended keep a port from being taken again.
        socket.set_reuseaddr(true).map_err(failed)?;
        socket.bind(address).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self {
            socket,
            entrance,
            address,
        })
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets clients come. Requires: a runtime.
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
