//! Executes statements about roles and permissions: the checks that all of them share.

use std::sync::Arc;

use ilion_auth::{Permission, Resource};
use ilion_cql::ast::Statement;
use ilion_schema::Schema;

use super::control::AccessControl;
use super::plan::AccessPlan;
use super::rights::Rights;
use super::{Identity, Login};
use crate::{Awaited, Error, Executed, Outcome};

/// Compat: `ClientState.ensureNotAnonymous`.
const NOT_LOGGED_IN: &str = "You have to be logged in and not anonymous to perform this request";

/// The client that executes a statement about roles or permissions, with what the checks need.
pub(super) struct Actor<'a> {
    pub access: &'a AccessControl,
    pub schema: &'a Schema,
    pub keyspace: Option<&'a str>,
    pub login: Arc<Login>,
    pub rights: Arc<Rights>,
}

impl AccessControl {
    /// Checks and executes a statement about roles or permissions.
    ///
    /// # Errors
    /// The client lacks a permission, or the statement is not possible.
    pub(crate) fn execute(
        &self,
        plan: &AccessPlan,
        client: &Identity,
        schema: &Schema,
    ) -> Result<Executed, Error> {
        let Identity::User(login) = client else {
            return Err(Error::Unauthorized(NOT_LOGGED_IN.to_owned()));
        };
        let rights = self.rights(login)?;
        let actor = Actor {
            access: self,
            schema,
            keyspace: plan.keyspace.as_deref(),
            login: login.clone(),
            rights,
        };
        match &plan.statement {
            Statement::CreateRole(create) => actor.create_role(create),
            Statement::AlterRole(alter) => actor.alter_role(alter),
            Statement::DropRole(drop) => actor.drop_role(drop),
            Statement::GrantRole(grant) => actor.grant_role(grant),
            Statement::RevokeRole(revoke) => actor.revoke_role(revoke),
            Statement::GrantPermissions(grant) => actor.grant(grant),
            Statement::RevokePermissions(revoke) => actor.revoke(revoke),
            Statement::ListRoles(list) => actor.list_roles(list.of.as_deref(), list.recursive),
            Statement::ListUsers => actor.list_users(),
            Statement::ListSuperusers => actor.list_superusers(),
            Statement::ListPermissions(list) => actor.list_permissions(list),
            Statement::AddIdentity(add) => actor.add_identity(add),
            Statement::DropIdentity(drop) => actor.drop_identity(drop),
            _ => Err(Error::ServerError("a statement is not about roles".to_owned())),
        }
    }
}

impl Actor<'_> {
    pub fn name(&self) -> &str {
        &self.login.role
    }

    pub fn is_superuser(&self) -> bool {
        self.rights.is_superuser()
    }

    /// Requires a permission on a role.
    ///
    /// Compat: `AuthenticationStatement.checkPermission`.
    pub fn require(&self, permission: Permission, resource: &Resource) -> Result<(), Error> {
        if self.rights.allow(permission, resource) {
            return Ok(());
        }
        Err(Error::Unauthorized(format!(
            "User {} does not have sufficient privileges to perform the requested operation",
            self.name()
        )))
    }

    /// Refuses a role that does not exist.
    pub fn ensure_role(&self, role: &str) -> Result<(), Error> {
        match self.access.tables.role(role)? {
            Some(_) => Ok(()),
            None => Err(Error::Invalid(format!("{role} doesn't exist"))),
        }
    }
}

/// The answer to a statement that wrote.
pub(super) fn done(awaited: Option<Awaited>) -> Executed {
    Executed {
        awaited,
        ..Executed::of(Outcome::Void)
    }
}
