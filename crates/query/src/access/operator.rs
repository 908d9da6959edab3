//! Permissions of a role at the HTTP port, where requests are not statements.

use ilion_auth::{Permission, Resource};

use super::{AccessControl, Login};
use crate::Error;

/// An operation at the HTTP port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Log in. The statements that follow are checked like those of any client.
    LogIn,
    /// See metrics and reports of the node. Needs SELECT on the keyspace `system_views`, where CQL shows the same data.
    Watch,
    /// Change how the node runs. Needs a superuser.
    Administer,
}

impl AccessControl {
    /// Checks whether a role may do this now. The login may be old: since then the role may have been dropped, or have lost LOGIN.
    ///
    /// # Errors
    /// The role may not do this, or `system_auth` cannot be read.
    pub fn check_operation(&self, login: &Login, operation: Operation) -> Result<(), Error> {
        let rights = self.rights_here(login)?;
        if !rights.roles.get(&login.role).is_some_and(|role| role.can_login) {
            return Err(Error::BadCredentials(format!(
                "{} is not permitted to log in",
                login.role
            )));
        }
        match operation {
            Operation::LogIn => Ok(()),
            Operation::Watch => {
                let views = Resource::Keyspace("system_views".to_owned());
                rights.ensure(Permission::Select, &views, &login.role)
            }
            Operation::Administer if rights.is_open || rights.is_superuser() => Ok(()),
            Operation::Administer => Err(Error::Unauthorized(format!(
                "Only superusers may administer the node, and {} is none",
                login.role
            ))),
        }
    }

    /// A digest that changes with the password of a role; `None` if the role has no password. The table is read each time: only
    /// existing roles are cached, so the time of a cached read would reveal which roles exist.
    ///
    /// # Errors
    /// `system_auth` cannot be read.
    pub fn password_stamp(&self, role: &str) -> Result<Option<[u8; 32]>, Error> {
        let hash = self.read_hash(role)?;
        Ok(hash.map(|hash| self.right_passwords.lock().stamp(&hash)))
    }
}
