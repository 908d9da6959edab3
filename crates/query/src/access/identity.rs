//! Who sends a statement.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::rights::Rights;

/// Who sends a statement.
#[derive(Clone, Debug, Default)]
pub enum Identity {
    /// The process itself: a program that embeds the database. It may do everything.
    #[default]
    Internal,
    /// A client without a name.
    Anonymous,
    /// A client that has logged in.
    User(Arc<Login>),
}

impl Identity {
    /// The role of the client; `None` if it has not logged in.
    pub fn role(&self) -> Option<&str> {
        match self {
            Self::User(login) => Some(&login.role),
            Self::Internal | Self::Anonymous => None,
        }
    }

    /// True for a role that was a superuser when its rights were last read.
    /// [`AccessControl::check`](super::AccessControl::check) reads them again before a statement if they are no longer valid.
    pub(crate) fn is_superuser(&self) -> bool {
        match self {
            Self::User(login) => login.is_superuser.load(Relaxed),
            Self::Internal | Self::Anonymous => false,
        }
    }
}

/// A role with which clients have logged in. All sessions of the role share it, or those of one address if roles are bound to addresses.
pub struct Login {
    /// Name of the role.
    pub role: String,
    /// The address of the clients; `None` if roles are not bound to addresses.
    pub(super) address: Option<IpAddr>,
    /// Swapped as a whole: readers on many threads must not write to one cache line.
    pub(super) rights: ArcSwap<Rights>,
    /// True if the rights are those of a superuser. A copy outside of `rights`, since each statement reads it.
    pub(super) is_superuser: AtomicBool,
    /// Held while rights are read again, so that only one thread reads them.
    pub(super) renewal: Mutex<()>,
}

impl Login {
    /// The login of a role from any address. Its rights are not read yet.
    pub fn new(role: &str) -> Self {
        Self::from_address(role, None)
    }

    pub(super) fn from_address(role: &str, address: Option<IpAddr>) -> Self {
        Self {
            role: role.to_owned(),
            address,
            rights: ArcSwap::default(),
            is_superuser: AtomicBool::new(false),
            renewal: Mutex::default(),
        }
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Login({:?})", self.role)
    }
}
