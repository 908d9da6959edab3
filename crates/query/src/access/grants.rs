//! GRANT and REVOKE of permissions.

use ilion_auth::{Permission, Permissions, Resource};
use ilion_cql::ast::PermissionChange;

use super::actor::{Actor, done};
use super::resource::{permissions_of, resolve};
use super::rights::is_reserved;
use super::tables::Changes;
use crate::{Error, Executed};

impl Actor<'_> {
    pub(super) fn grant(&self, grant: &PermissionChange) -> Result<Executed, Error> {
        let (resource, permissions) = self.permitted(grant)?;
        let turn = self.access.take_turn();
        self.ensure_possible(&grant.role, &resource)?;
        if permissions
            .iter()
            .any(|permission| is_reserved(permission, &resource))
        {
            return Err(Error::Unauthorized(
                "Granting permissions on system keyspaces is strictly limited, this operation is not permitted"
                    .to_owned(),
            ));
        }
        self.ensure_authorizer("GRANT")?;
        let known = self.known(&grant.role, &resource)?;
        let mut changes = Changes::default();
        changes.grant(&grant.role, &resource, permissions);
        let executed = done(turn.write(changes)?);
        let already = permissions.without(permissions.without(known));
        Ok(warned(executed, grant, already, "was already granted", &resource))
    }

    pub(super) fn revoke(&self, revoke: &PermissionChange) -> Result<Executed, Error> {
        let (resource, permissions) = self.permitted(revoke)?;
        let turn = self.access.take_turn();
        self.ensure_possible(&revoke.role, &resource)?;
        self.ensure_authorizer("REVOKE")?;
        let known = self.known(&revoke.role, &resource)?;
        let mut changes = Changes::default();
        match known.without(permissions).is_empty() {
            true => changes.revoke_all(&revoke.role, &resource.name()),
            false => changes.revoke(&revoke.role, &resource, permissions),
        }
        let executed = done(turn.write(changes)?);
        let missing = permissions.without(known);
        Ok(warned(executed, revoke, missing, "was not granted", &resource))
    }

    /// The resource and the permissions of a statement, if this client may execute it.
    ///
    /// Compat: `PermissionsManagementStatement`: a client needs AUTHORIZE and each permission that it grants or revokes.
    fn permitted(&self, change: &PermissionChange) -> Result<(Resource, Permissions), Error> {
        let resource = resolve(&change.resource, self.keyspace, self.schema)?;
        let permissions = permissions_of(&change.permissions, &resource);
        let wanted = std::iter::once(Permission::Authorize).chain(permissions.iter());
        for permission in wanted {
            self.rights.ensure(permission, &resource, self.name())?;
        }
        Ok((resource, permissions))
    }

    /// Refuses a role or resource that does not exist. Requires: the caller holds the turn. So a DROP of either one comes before
    /// this check, or removes afterwards the grants that are made now.
    fn ensure_possible(&self, role: &str, resource: &Resource) -> Result<(), Error> {
        let tables = &self.access.tables;
        if tables.role(role)?.is_none() {
            return Err(Error::Invalid(format!("Role {role} doesn't exist")));
        }
        if is_of_native_functions(resource) {
            return Err(Error::invalid(
                "Altering permissions on builtin functions is not supported",
            ));
        }
        match tables.has(resource, &tables.store().schema())? {
            true => Ok(()),
            false => Err(Error::Invalid(format!("Resource {resource} doesn't exist"))),
        }
    }

    /// Compat: refuses the statement with the message of AllowAllAuthorizer if permissions are not checked.
    pub(super) fn ensure_authorizer(&self, operation: &str) -> Result<(), Error> {
        match self.access.options.checks_permissions() {
            true => Ok(()),
            false => Err(Error::Invalid(format!(
                "{operation} operation is not supported by AllowAllAuthorizer"
            ))),
        }
    }

    /// The permissions of the role on exactly this resource.
    fn known(&self, role: &str, resource: &Resource) -> Result<Permissions, Error> {
        let name = resource.name();
        let granted = self.access.tables.granted(role)?;
        let known = granted.into_iter().find(|granted| granted.resource == name);
        Ok(known.map(|granted| granted.permissions).unwrap_or_default())
    }
}

fn is_of_native_functions(resource: &Resource) -> bool {
    matches!(
        resource,
        Resource::AllFunctionsIn(keyspace) | Resource::Function { keyspace, .. } if keyspace == "system"
    )
}

/// Warns of the permissions for which nothing changed.
fn warned(
    mut executed: Executed,
    change: &PermissionChange,
    unchanged: Permissions,
    what: &str,
    resource: &Resource,
) -> Executed {
    if !unchanged.is_empty() {
        let names: Vec<&str> = unchanged.iter().map(Permission::name).collect();
        executed.warnings.push(format!(
            "Role '{}' {what} {} on {resource}",
            change.role,
            names.join(", ")
        ));
    }
    executed
}
