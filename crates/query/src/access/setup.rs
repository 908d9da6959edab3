//! The first superuser of a node, and a new password on a stopped one.

use ilion_auth::Role;

use super::AccessControl;
use super::actor::done;
use super::tables::Changes;
use crate::{Error, Executed};

/// The first superuser.
#[derive(Clone, PartialEq, Eq)]
pub struct FirstSuperuser {
    /// Name of the role.
    pub role: String,
    /// Its password.
    pub password: String,
}

/// Why an operation on roles failed at the start or on a stopped node; the operator must act.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The role does not exist.
    #[error("there is no role {role}; the roles are: {}", known.join(", "))]
    NoRole {
        /// The name that was given.
        role: String,
        /// The roles that exist.
        known: Vec<String>,
    },
    /// `system_auth` cannot be read or written.
    #[error("system_auth: {0}")]
    Tables(#[from] Error),
}

impl AccessControl {
    /// True if clients must log in and no role exists yet.
    ///
    /// # Errors
    /// `system_auth` cannot be read.
    pub fn needs_superuser(&self) -> Result<bool, SetupError> {
        Ok(self.requires_login() && !self.tables.has_roles()?)
    }

    /// Creates the first superuser. The caller must wait for the answer's [`Executed::awaited`]. `None`: there is a role now, since
    /// another node of the cluster was first.
    ///
    /// # Errors
    /// `system_auth` cannot be read or written.
    pub fn create_superuser(&self, first: &FirstSuperuser) -> Result<Option<Executed>, SetupError> {
        let hash = self.hash_of(&first.password)?;
        let created = self.in_turn(|turn| {
            if self.tables.has_roles()? {
                return Ok(None);
            }
            let mut changes = Changes::default();
            let role = Role {
                is_superuser: true,
                can_login: true,
                member_of: Vec::new(),
            };
            changes.create_role(&first.role, &role);
            changes.set_hash(&first.role, &hash);
            Ok(Some(done(turn.write(changes)?)))
        });
        Ok(created?)
    }

    /// Gives a role a new password. The caller must wait for the answer's [`Executed::awaited`].
    ///
    /// # Errors
    /// The role does not exist, or `system_auth` cannot be written.
    pub fn reset_password(&self, role: &str, password: &str) -> Result<Executed, SetupError> {
        let hash = self.hash_of(password)?;
        let written = self.in_turn(|turn| match self.tables.role(role)? {
            None => Ok(None),
            Some(_) => {
                let mut changes = Changes::default();
                changes.set_hash(role, &hash);
                Ok(Some(done(turn.write(changes)?)))
            }
        });
        match written? {
            Some(written) => Ok(written),
            None => Err(SetupError::NoRole {
                role: role.to_owned(),
                known: self.tables.roles()?,
            }),
        }
    }
}
