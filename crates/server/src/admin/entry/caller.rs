//! Who sends a request to the HTTP port: [`Caller`], and the connection that it comes from: [`Peer`].

use std::net::SocketAddr;
use std::sync::Arc;

use ilion_query::{Identity, Login};

/// Who sends a request.
#[derive(Clone, Debug)]
pub enum Caller {
    /// Any client that passes the checks of a node without logins.
    Operator,
    /// A program that has shown the token of a node with logins. It has no role.
    Program,
    /// A role, and the address that its request came from.
    Role(Arc<Login>, SocketAddr),
    /// A client of a path that needs no credentials.
    Nobody,
}

impl Caller {
    /// The identity for statements of this caller; `None` if it may send none.
    pub(crate) fn identity(&self) -> Option<Identity> {
        match self {
            Self::Operator => Some(Identity::Internal),
            Self::Role(login, _) => Some(Identity::User(login.clone())),
            Self::Program | Self::Nobody => None,
        }
    }

    /// The role of the caller.
    pub(super) fn role(&self) -> Option<&str> {
        match self {
            Self::Role(login, _) => Some(&login.role),
            Self::Operator | Self::Program | Self::Nobody => None,
        }
    }

    /// The address that a role's request came from.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Role(_, address) => Some(*address),
            Self::Operator | Self::Program | Self::Nobody => None,
        }
    }
}

/// The other end of a connection to the HTTP port.
#[derive(Clone, Debug)]
pub(in crate::admin) struct Peer {
    pub address: SocketAddr,
    /// The identity in its certificate, or why there is none; `None` without a certificate.
    pub identity: Option<Result<String, &'static str>>,
}
