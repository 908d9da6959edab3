//! Permissions of a role at the HTTP port, where requests are not statements.

use ilion_auth::{Permission, Resource};

use super::{AccessControl, Login};
use crate::Error;

/// An operation at the HTTP port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// To be logged in; statements are then checked as those of any client.
    LogIn,
    /// To see metrics and reports of the node. It needs SELECT on the keyspace `system_views`, where CQL shows the same data.
    Watch,
    /// To change how the node runs. It needs a superuser.
    Administer,
}

impl AccessControl {
    /// Checks whether a role may do this now. Its login may be old: it may have been dropped, or have lost LOGIN, since then.
    ///
    /// # Errors
    /// It may not, or `system_auth` cannot be read.
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

    /// A digest that changes when the password of a role is changed; `None` if the role has no password. The table is read each time: only
    /// existing roles are cached, and the time of a login must not reveal which roles exist.
    ///
    /// # Errors
    /// `system_auth` cannot be read.
    pub fn password_stamp(&self, role: &str) -> Result<Option<[u8; 32]>, Error> {
        let hash = self.read_hash(role)?;
        Ok(hash.map(|hash| self.right_passwords.lock().stamp(&hash)))
    }
}
