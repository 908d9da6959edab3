//! CREATE, ALTER and DROP ROLE (and USER); GRANT and REVOKE of roles.

use ilion_auth::{Permission, Resource, Role, closure, password};
use ilion_cql::ast::{Access, AlterRole, CreateRole, DropRole, Password, RoleMembership, RoleOptions};

use super::NetworkAuthorizer;
use super::actor::{Actor, done};
use super::tables::Changes;
use crate::{Error, Executed};

impl Actor<'_> {
    pub(super) fn create_role(&self, create: &CreateRole) -> Result<Executed, Error> {
        self.require(Permission::Create, &Resource::AllRoles)?;
        let (name, options) = (create.role.as_str(), &create.options);
        if options.superuser == Some(true) && !self.is_superuser() {
            return Err(unauthorized(
                "Only superusers can create a role with superuser status",
            ));
        }
        self.check_options(options)?;
        if name.is_empty() {
            return Err(Error::invalid("Role name can't be an empty string"));
        }
        // Hashing takes long, so it is done before the turn is taken, for which other statements wait.
        let hash = self.hash_in(options)?;
        let turn = self.access.take_turn();
        if self.access.tables.role(name)?.is_some() {
            return match create.if_not_exists {
                true => Ok(done(None)),
                false => Err(Error::Invalid(format!("{name} already exists"))),
            };
        }
        let mut changes = Changes::default();
        let role = Role {
            is_superuser: options.superuser.unwrap_or(false),
            can_login: options.login.unwrap_or(false),
            member_of: Vec::new(),
        };
        changes.create_role(name, &role);
        if let Some(hash) = hash {
            changes.set_hash(name, &hash);
        }
        if self.access.options.network_authorizer == NetworkAuthorizer::Cassandra {
            set_datacenters(&mut changes, name, options);
        }
        set_cidr_groups(&mut changes, name, options);
        self.access
            .grant_to_creator(self.name(), &[Resource::Role(name.to_owned())], &mut changes)?;
        Ok(warned(done(turn.write(changes)?), options))
    }

    pub(super) fn alter_role(&self, alter: &AlterRole) -> Result<Executed, Error> {
        let (name, options) = (alter.role.as_str(), &alter.options);
        self.check_alter(name, options)?;
        self.check_options(options)?;
        if *options == RoleOptions::default() {
            return Err(Error::invalid("ALTER [ROLE|USER] can't be empty"));
        }
        let hash = self.hash_in(options)?;
        let turn = self.access.take_turn();
        if self.access.tables.role(name)?.is_none() {
            return match alter.if_exists {
                true => Ok(done(None)),
                false => Err(Error::Invalid(format!("Role {name} doesn't exist"))),
            };
        }
        let mut changes = Changes::default();
        if let Some(is_superuser) = options.superuser {
            changes.set_superuser(name, is_superuser);
        }
        if let Some(can_login) = options.login {
            changes.set_login(name, can_login);
        }
        if let Some(hash) = hash {
            changes.set_hash(name, &hash);
        }
        if options.datacenters.is_some()
            && self.access.options.network_authorizer == NetworkAuthorizer::AllowAll
        {
            return Err(Error::invalid(
                "ACCESS TO DATACENTERS operations not supported by AllowAllNetworkAuthorizer",
            ));
        }
        set_datacenters(&mut changes, name, options);
        set_cidr_groups(&mut changes, name, options);
        Ok(warned(done(turn.write(changes)?), options))
    }

    fn check_alter(&self, name: &str, options: &RoleOptions) -> Result<(), Error> {
        if options.superuser.is_some() && self.rights.roles.contains_key(name) {
            return Err(unauthorized(
                "You aren't allowed to alter your own superuser status or that of a role granted to you",
            ));
        }
        if self.is_superuser() {
            return Ok(());
        }
        if options.superuser.is_some() {
            return Err(unauthorized(
                "Only superusers are allowed to alter superuser status",
            ));
        }
        if options.datacenters.is_some() {
            return Err(unauthorized(
                "Only superusers are allowed to alter access to datacenters.",
            ));
        }
        if options.cidr_groups.is_some() {
            return Err(unauthorized(
                "Only superusers are allowed to alter CIDR access permissions",
            ));
        }
        if name == self.name() {
            // Compat: `IRoleManager.alterableOptions`: of its own options a role may change only the password.
            return match options {
                RoleOptions { login: Some(_), .. } => Err(unauthorized("You aren't allowed to alter LOGIN")),
                RoleOptions { custom: Some(_), .. } => {
                    Err(unauthorized("You aren't allowed to alter OPTIONS"))
                }
                _ => Ok(()),
            };
        }
        self.require(Permission::Alter, &Resource::Role(name.to_owned()))?;
        // Only superusers may set the password of a superuser.
        self.check_superuser(name, "Only superusers can alter a role with superuser status")
    }

    fn check_superuser(&self, name: &str, message: &str) -> Result<(), Error> {
        match !self.is_superuser() && self.has_superuser_status(name)? {
            true => Err(unauthorized(message)),
            false => Ok(()),
        }
    }

    /// Whether a role is a superuser by itself or by a role granted to it.
    pub(super) fn has_superuser_status(&self, name: &str) -> Result<bool, Error> {
        let roles = closure(name, |role| self.access.tables.role(role))?;
        Ok(roles.values().any(|role| role.is_superuser))
    }

    pub(super) fn drop_role(&self, drop: &DropRole) -> Result<Executed, Error> {
        let name = drop.role.as_str();
        self.require(Permission::Drop, &Resource::Role(name.to_owned()))?;
        self.check_superuser(name, "Only superusers can drop a role with superuser status")?;
        let turn = self.access.take_turn();
        let tables = &self.access.tables;
        let Some(role) = tables.role(name)? else {
            return match drop.if_exists {
                true => Ok(done(None)),
                false => Err(Error::Invalid(format!("{name} doesn't exist"))),
            };
        };
        if name == self.name() {
            return Err(Error::invalid("Cannot DROP primary role for current login"));
        }
        let mut changes = Changes::default();
        for member in tables.members(name)? {
            if tables.role(&member)?.is_some() {
                changes.remove_member(name, &member);
            }
        }
        changes.drop_role(name, &role);
        if tables.has_cidr_groups() {
            changes.set_cidr_groups(name, None);
        }
        for identity in tables.identities(name)? {
            changes.drop_identity(&identity);
        }
        for granted in tables.granted(name)? {
            changes.revoke_all(name, &granted.resource);
        }
        self.access
            .revoke_all_on(&[Resource::Role(name.to_owned())], &mut changes)?;
        Ok(done(turn.write(changes)?))
    }

    pub(super) fn grant_role(&self, grant: &RoleMembership) -> Result<Executed, Error> {
        let (role, member) = (grant.role.as_str(), grant.member.as_str());
        self.require(Permission::Authorize, &Resource::Role(role.to_owned()))?;
        let turn = self.access.take_turn();
        self.ensure_role(role)?;
        self.ensure_role(member)?;
        self.check_superuser(role, "Only superusers can grant a role with superuser status")?;
        let has = |owner: &str, wanted: &str| {
            closure(owner, |name| self.access.tables.role(name)).map(|roles| roles.contains_key(wanted))
        };
        if has(member, role)? {
            return Err(Error::Invalid(format!("{member} is a member of {role}")));
        }
        if has(role, member)? {
            return Err(Error::Invalid(format!("{role} is a member of {member}")));
        }
        let mut changes = Changes::default();
        changes.add_member(role, member);
        Ok(done(turn.write(changes)?))
    }

    pub(super) fn revoke_role(&self, revoke: &RoleMembership) -> Result<Executed, Error> {
        let (role, member) = (revoke.role.as_str(), revoke.member.as_str());
        self.require(Permission::Authorize, &Resource::Role(role.to_owned()))?;
        let turn = self.access.take_turn();
        self.ensure_role(role)?;
        self.ensure_role(member)?;
        let found = self.access.tables.role(member)?.unwrap_or_default();
        if !found.member_of.iter().any(|owner| owner == role) {
            return Err(Error::Invalid(format!("{member} is not a member of {role}")));
        }
        let mut changes = Changes::default();
        changes.remove_member(role, member);
        Ok(done(turn.write(changes)?))
    }

    /// Refuses options that this node does not support.
    ///
    /// Compat: `RoleOptions.validate` with CassandraRoleManager, `DCPermissions.validate`, `CIDRPermissions.validate`.
    fn check_options(&self, options: &RoleOptions) -> Result<(), Error> {
        let unsupported = match options {
            RoleOptions { custom: Some(_), .. } => Some("OPTIONS"),
            _ => None,
        };
        if let Some(option) = unsupported {
            return Err(Error::Invalid(format!(
                "org.apache.cassandra.auth.CassandraRoleManager doesn't support {option}"
            )));
        }
        if let Some(Access::Only(names)) = &options.datacenters
            && let known = self.access.known_data_centers()?
            && !names.iter().all(|name| known.contains(name))
        {
            return Err(Error::Invalid(format!(
                "Invalid value(s) for DATACENTERS '[{}]',All values must be valid datacenters",
                names.join(", ")
            )));
        }
        let Some(Access::Only(names)) = &options.cidr_groups else {
            return Ok(());
        };
        let known = self.access.tables.cidr_groups()?;
        let known: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
        if names.iter().all(|name| known.contains(&name.as_str())) {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "Invalid CIDR group(s): [{}]. Available CIDR Groups are: [{}]",
            names.join(", "),
            known.join(", ")
        )))
    }

    /// The hash of the password in the options: a new one, or the given one.
    fn hash_in(&self, options: &RoleOptions) -> Result<Option<String>, Error> {
        match &options.password {
            None => Ok(None),
            Some(Password::Plain(plain)) => self.access.hash_of(plain).map(Some),
            Some(Password::Hashed(hash)) => match password::cost_of(hash) {
                None => Err(Error::invalid(
                    "Invalid hashed password value. Please use jBcrypt.",
                )),
                Some(cost) if cost > password::GIVEN_COST_MAX => Err(Error::Invalid(format!(
                    "Invalid hashed password value: a cost of {cost} would take too long to check, at most {} is accepted",
                    password::GIVEN_COST_MAX
                ))),
                Some(_) => Ok(Some(hash.clone())),
            },
        }
    }
}

/// Adds a warning if the password is longer than the part that bcrypt hashes.
fn warned(mut executed: Executed, options: &RoleOptions) -> Executed {
    let is_cut =
        matches!(&options.password, Some(Password::Plain(plain)) if plain.len() > password::BYTES_COUNTED);
    if is_cut {
        executed.warnings.push(format!(
            "Only the first {} bytes of a password count, as in Cassandra",
            password::BYTES_COUNTED
        ));
    }
    executed
}

fn set_datacenters(changes: &mut Changes, role: &str, options: &RoleOptions) {
    match &options.datacenters {
        Some(Access::Only(names)) => changes.set_datacenters(role, Some(names)),
        Some(Access::All) => changes.set_datacenters(role, None),
        None => {}
    }
}

fn set_cidr_groups(changes: &mut Changes, role: &str, options: &RoleOptions) {
    match &options.cidr_groups {
        Some(Access::Only(names)) => changes.set_cidr_groups(role, Some(names)),
        Some(Access::All) => changes.set_cidr_groups(role, None),
        None => {}
    }
}

fn unauthorized(message: &str) -> Error {
    Error::Unauthorized(message.to_owned())
}
