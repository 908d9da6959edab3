//! LIST ROLES, LIST USERS, LIST PERMISSIONS.

use std::collections::BTreeSet;

use ilion_auth::{Permission, Resource, closure};
use ilion_cql::ast::ListPermissions;
use ilion_types::CqlType;

use super::NetworkAuthorizer;
use super::actor::Actor;
use super::resource::{permissions_of, resolve};
use super::tables::Granted;
use crate::{ColumnSpec, Error, Executed, Outcome, ResultSet};

impl Actor<'_> {
    pub(super) fn list_roles(&self, of: Option<&str>, recursive: bool) -> Result<Executed, Error> {
        let roles = self.visible_roles(of, recursive)?;
        let columns = [
            ("role", CqlType::Text),
            ("super", CqlType::Boolean),
            ("login", CqlType::Boolean),
            ("options", text_map()),
            ("datacenters", CqlType::Text),
        ];
        let mut rows = ListRows::new("roles", &columns);
        for name in roles {
            let role = self.access.tables.role(&name)?.unwrap_or_default();
            let no_options = 0_i32.to_be_bytes();
            rows.add([
                name.as_bytes(),
                boolean(role.is_superuser),
                boolean(role.can_login),
                &no_options,
                self.datacenters_of(&name)?.as_bytes(),
            ]);
        }
        Ok(rows.executed())
    }

    pub(super) fn list_users(&self) -> Result<Executed, Error> {
        let columns = [
            ("name", CqlType::Text),
            ("super", CqlType::Boolean),
            ("datacenters", CqlType::Text),
        ];
        let mut rows = ListRows::new("users", &columns);
        for name in self.visible_roles(None, true)? {
            if self.access.tables.role(&name)?.is_some_and(|role| role.can_login) {
                rows.add([
                    name.as_bytes(),
                    boolean(self.has_superuser_status(&name)?),
                    self.datacenters_of(&name)?.as_bytes(),
                ]);
            }
        }
        Ok(rows.executed())
    }

    pub(super) fn list_superusers(&self) -> Result<Executed, Error> {
        let mut rows = ListRows::new("roles", &[("role", CqlType::Text)]);
        for name in self.visible_roles(None, true)? {
            if self.has_superuser_status(&name)? {
                rows.add([name.as_bytes()]);
            }
        }
        Ok(rows.executed())
    }

    /// Names of the roles that the client may see, sorted: all roles if it has DESCRIBE on all roles, else its own roles.
    ///
    /// Compat: `ListRolesStatement`.
    fn visible_roles(&self, of: Option<&str>, recursive: bool) -> Result<Vec<String>, Error> {
        if let Some(of) = of
            && self.access.tables.role(of)?.is_none()
        {
            return Err(Error::Invalid(format!(
                "{} doesn't exist",
                Resource::Role(of.to_owned())
            )));
        }
        let sees_all = self.rights.allow(Permission::Describe, &Resource::AllRoles);
        match of {
            None if sees_all => self.access.tables.roles(),
            None => self.roles_of(self.name(), recursive),
            Some(of) if sees_all || self.rights.roles.contains_key(of) => self.roles_of(of, recursive),
            Some(of) => Err(Error::Unauthorized(format!(
                "You are not authorized to view roles granted to {of}"
            ))),
        }
    }

    fn roles_of(&self, name: &str, recursive: bool) -> Result<Vec<String>, Error> {
        if recursive {
            let roles = closure(name, |role| self.access.tables.role(role))?;
            return Ok(roles.into_keys().collect());
        }
        let Some(role) = self.access.tables.role(name)? else {
            return Ok(Vec::new());
        };
        let names: BTreeSet<String> = role.member_of.into_iter().chain([name.to_owned()]).collect();
        Ok(names.into_iter().collect())
    }

    /// Compat: `DCPermissions.toString`.
    fn datacenters_of(&self, name: &str) -> Result<String, Error> {
        let all = || Ok("ALL".to_owned());
        if self.access.options.network_authorizer == NetworkAuthorizer::AllowAll {
            return all();
        }
        let role = self.access.tables.role(name)?.unwrap_or_default();
        if !role.can_login {
            return Ok("n/a".to_owned());
        }
        match self.access.tables.datacenters(name)? {
            Some(names) if !self.has_superuser_status(name)? => Ok(names.join(", ")),
            _ => all(),
        }
    }

    /// Compat: `ListPermissionsStatement`, `CassandraAuthorizer.list`.
    pub(super) fn list_permissions(&self, list: &ListPermissions) -> Result<Executed, Error> {
        let resource = match &list.resource {
            Some(resource) => Some(resolve(resource, self.keyspace, self.schema)?),
            None => None,
        };
        if let Some(resource) = &resource
            && !self.access.tables.has(resource, self.schema)?
        {
            return Err(Error::Invalid(format!("{resource} doesn't exist")));
        }
        if let Some(of) = &list.of
            && self.access.tables.role(of)?.is_none()
        {
            return Err(Error::Invalid(format!(
                "{} doesn't exist",
                Resource::Role(of.clone())
            )));
        }
        self.ensure_authorizer("LIST PERMISSIONS")?;
        self.check_view(list.of.as_deref())?;
        let granted = match &list.of {
            None => self.access.tables.all_granted()?,
            Some(of) => {
                let mut all = Vec::new();
                for role in self.roles_of(of, true)? {
                    all.extend(self.access.tables.granted(&role)?);
                }
                all
            }
        };
        let wanted: Option<Vec<String>> = resource.as_ref().map(|resource| match list.recursive {
            true => resource.chain().map(|one| one.name()).collect(),
            false => vec![resource.name()],
        });
        let is_wanted = |granted: &Granted| {
            wanted
                .as_ref()
                .is_none_or(|names| names.contains(&granted.resource))
        };
        let mut granted: Vec<Granted> = granted.into_iter().filter(is_wanted).collect();
        granted.sort_by(|a, b| (&a.role, &a.resource).cmp(&(&b.role, &b.resource)));
        let columns = ["role", "username", "resource", "permission"].map(|name| (name, CqlType::Text));
        let mut rows = ListRows::new("permissions", &columns);
        for one in granted {
            let Some(resource) = Resource::parse(&one.resource) else {
                continue;
            };
            let asked = permissions_of(&list.permissions, &resource);
            let shown = shown(&resource);
            for permission in one.permissions.iter().filter(|permission| asked.has(*permission)) {
                let role = one.role.as_bytes();
                rows.add([role, role, shown.as_bytes(), permission.name().as_bytes()]);
            }
        }
        Ok(rows.executed())
    }

    /// Superusers see all permissions. Other roles see those of their own roles, and of roles that they may DESCRIBE.
    fn check_view(&self, of: Option<&str>) -> Result<(), Error> {
        let is_own = of.is_some_and(|of| self.rights.roles.contains_key(of));
        let described = of.map_or(Resource::AllRoles, |of| Resource::Role(of.to_owned()));
        if is_own || self.rights.allow(Permission::Describe, &described) {
            return Ok(());
        }
        Err(Error::Unauthorized(format!(
            "You are not authorized to view {}'s permissions",
            of.unwrap_or("everyone")
        )))
    }
}

/// A resource with the types of functions in CQL.
fn shown(resource: &Resource) -> String {
    let Resource::Function {
        keyspace,
        name,
        classes,
        ..
    } = resource
    else {
        return resource.to_string();
    };
    let in_cql = |class: &String| match CqlType::from_class(class) {
        Ok((ty, _)) => ty.to_string(),
        Err(_) => class.clone(),
    };
    Resource::Function {
        keyspace: keyspace.clone(),
        name: name.clone(),
        classes: classes.clone(),
        types: classes.iter().map(in_cql).collect(),
    }
    .to_string()
}

fn text_map() -> CqlType {
    CqlType::Map {
        key: CqlType::Text.into(),
        value: CqlType::Text.into(),
        frozen: true,
    }
}

fn boolean(value: bool) -> &'static [u8] {
    if value { &[1] } else { &[0] }
}

/// The rows of an answer to LIST.
struct ListRows {
    columns: Vec<ColumnSpec>,
    row_count: u32,
    cells: Vec<u8>,
}

impl ListRows {
    fn new(table: &str, columns: &[(&str, CqlType)]) -> Self {
        let column = |(name, ty): &(&str, CqlType)| ColumnSpec {
            keyspace: "system_auth".into(),
            table: table.into(),
            name: (*name).into(),
            ty: ty.clone(),
        };
        Self {
            columns: columns.iter().map(column).collect(),
            row_count: 0,
            cells: Vec::new(),
        }
    }

    fn add<const N: usize>(&mut self, row: [&[u8]; N]) {
        for cell in row {
            let len = i32::try_from(cell.len()).unwrap_or(i32::MAX);
            self.cells.extend(len.to_be_bytes());
            self.cells.extend(cell);
        }
        self.row_count += 1;
    }

    /// Compat: without rows the answer has no columns either.
    fn executed(self) -> Executed {
        if self.row_count == 0 {
            return Executed::of(Outcome::Void);
        }
        Executed::of(Outcome::Rows(ResultSet {
            columns: self.columns.into(),
            metadata_id: None,
            row_count: self.row_count,
            cells: self.cells.into(),
            paging_state: None,
        }))
    }
}
