//! ADD and DROP IDENTITY: which role the identity of a certificate stands for.
//!
//! Compat: `AddIdentityStatement`, `DropIdentityStatement`.

use ilion_auth::{Permission, Resource};
use ilion_cql::ast::{AddIdentity, DropIdentity};

use super::actor::{Actor, done};
use super::tables::Changes;
use crate::{Error, Executed};

impl Actor<'_> {
    pub(super) fn add_identity(&self, add: &AddIdentity) -> Result<Executed, Error> {
        self.require(Permission::Create, &self.own_role())?;
        if add.identity.is_empty() {
            return Err(Error::invalid("An identity can't be an empty string"));
        }
        let turn = self.access.take_turn();
        let tables = &self.access.tables;
        if tables.role(&add.role)?.is_none() {
            return Err(Error::Invalid(format!(
                "Can not add identity for non-existent role '{}'",
                add.role
            )));
        }
        if tables.role_of_identity(&add.identity)?.is_some() {
            return match add.if_not_exists {
                true => Ok(done(None)),
                false => Err(Error::Invalid(format!("{} already exists", add.identity))),
            };
        }
        let mut changes = Changes::default();
        changes.add_identity(&add.identity, &add.role);
        Ok(done(turn.write(changes)?))
    }

    pub(super) fn drop_identity(&self, drop: &DropIdentity) -> Result<Executed, Error> {
        self.require(Permission::Drop, &self.own_role())?;
        let turn = self.access.take_turn();
        if self.access.tables.role_of_identity(&drop.identity)?.is_none() {
            return match drop.if_exists {
                true => Ok(done(None)),
                false => Err(Error::Invalid(format!(
                    "identity '{}' doesn't exist",
                    drop.identity
                ))),
            };
        }
        let mut changes = Changes::default();
        changes.drop_identity(&drop.identity);
        Ok(done(turn.write(changes)?))
    }

    /// Compat: Cassandra asks for the permission on the client's own role.
    fn own_role(&self) -> Resource {
        Resource::Role(self.name().to_owned())
    }
}
