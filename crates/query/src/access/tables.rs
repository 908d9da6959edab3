//! The tables of `system_auth`. Only this module knows their columns.
//!
//! Compat: rows and columns are those of Cassandra 5.0, so that each server can use what the other one wrote. All rows
//! that one statement writes are one record of the commit log, unless it makes more than `CHANGES_MAX` changes.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use ilion_auth::{Cidr, Permission, Permissions, Resource, Role};
use ilion_schema::Schema;
use ilion_types::CqlType;

use crate::internal::{self, text};
use crate::{Awaited, Error, QueryOptions, Store, Value};

/// Most statements of one batch: a batch may have 65,535 bind markers at most.
const CHANGES_MAX: usize = 10_000;

/// The tables.
pub(super) struct AuthTables {
    store: Arc<dyn Store>,
    options: QueryOptions,
}

/// Rows to write together.
#[derive(Default)]
pub(super) struct Changes {
    statements: Vec<&'static str>,
    values: Vec<Value>,
}

/// A permission that was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Granted {
    pub role: String,
    /// The name of the resource.
    pub resource: String,
    pub permissions: Permissions,
}

impl AuthTables {
    pub fn new(store: Arc<dyn Store>, options: QueryOptions) -> Self {
        Self { store, options }
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// See [`Store::roles_version`].
    pub fn version(&self) -> u64 {
        self.store.roles_version()
    }

    fn read(&self, cql: &str, values: &[Value]) -> Result<Vec<Option<Bytes>>, Error> {
        internal::run(&*self.store, &self.options, cql, values)
    }

    /// The role of this name; `None` if it does not exist.
    pub fn role(&self, name: &str) -> Result<Option<Role>, Error> {
        let cells = self.read(
            "SELECT role, is_superuser, can_login, member_of FROM system_auth.roles WHERE role = ?",
            &[text(name)],
        )?;
        Ok(cells.first().map(|_| Role {
            is_superuser: is_true(cells.get(1)),
            can_login: is_true(cells.get(2)),
            member_of: texts_of(cells.get(3)),
        }))
    }

    /// Whether the resource exists.
    pub fn has(&self, resource: &Resource, schema: &Schema) -> Result<bool, Error> {
        Ok(match resource {
            Resource::AllKeyspaces | Resource::AllRoles | Resource::AllFunctions => true,
            Resource::AllMbeans | Resource::Mbean(_) => true,
            Resource::Keyspace(keyspace)
            | Resource::AllTables(keyspace)
            | Resource::AllFunctionsIn(keyspace) => schema.keyspace(keyspace).is_some(),
            Resource::Table(keyspace, table) => schema.table(keyspace, table).is_some(),
            Resource::Role(role) => self.role(role)?.is_some(),
            Resource::Function {
                keyspace,
                name,
                classes,
                ..
            } => schema.keyspace(keyspace).is_some_and(|keyspace| {
                let same = |types: Vec<String>| types == *classes;
                let mut functions = keyspace.functions.iter().filter(|one| one.name == *name);
                let mut aggregates = keyspace.aggregates.iter().filter(|one| one.name == *name);
                functions.any(|one| same(one.argument_types().map(CqlType::to_class).collect()))
                    || aggregates.any(|one| same(one.argument_types.iter().map(CqlType::to_class).collect()))
            }),
        })
    }

    /// All roles by name.
    pub fn roles(&self) -> Result<Vec<String>, Error> {
        let cells = self.read("SELECT role FROM system_auth.roles", &[])?;
        let mut names: Vec<String> = cells.iter().map(|cell| text_of(Some(cell))).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// True if a role exists.
    pub fn has_roles(&self) -> Result<bool, Error> {
        Ok(!self
            .read("SELECT role FROM system_auth.roles LIMIT 1", &[])?
            .is_empty())
    }

    /// The hash of the password of a role; `None` if the role has no password or does not exist.
    pub fn hash(&self, role: &str) -> Result<Option<String>, Error> {
        let cells = self.read(
            "SELECT salted_hash FROM system_auth.roles WHERE role = ?",
            &[text(role)],
        )?;
        let hash = text_of(cells.first());
        Ok(Some(hash).filter(|hash| !hash.is_empty()))
    }

    /// The role that an identity of a certificate stands for.
    pub fn role_of_identity(&self, identity: &str) -> Result<Option<String>, Error> {
        let cells = self.read(
            "SELECT role FROM system_auth.identity_to_role WHERE identity = ?",
            &[text(identity)],
        )?;
        Ok(cells.first().map(|cell| text_of(Some(cell))))
    }

    /// True if the directory has the table. A directory of Cassandra 4.x lacks the tables that came with 5.0.
    fn has_table(&self, name: &str) -> bool {
        self.store.schema().table("system_auth", name).is_some()
    }

    /// True if the directory has the table of groups of addresses.
    pub fn has_cidr_groups(&self) -> bool {
        self.has_table("cidr_permissions")
    }

    /// The identities that stand for a role.
    pub fn identities(&self, role: &str) -> Result<Vec<String>, Error> {
        if !self.has_table("identity_to_role") {
            return Ok(Vec::new());
        }
        let cells = self.read("SELECT identity, role FROM system_auth.identity_to_role", &[])?;
        let rows = cells.chunks_exact(2);
        let of_role = rows.filter(|row| text_of(row.get(1)) == role);
        Ok(of_role.map(|row| text_of(row.first())).collect())
    }

    /// The members of a role.
    pub fn members(&self, role: &str) -> Result<Vec<String>, Error> {
        let cells = self.read(
            "SELECT member FROM system_auth.role_members WHERE role = ?",
            &[text(role)],
        )?;
        Ok(cells.iter().map(|cell| text_of(Some(cell))).collect())
    }

    /// The data centers of a role; `None` means all.
    pub fn datacenters(&self, role: &str) -> Result<Option<Vec<String>>, Error> {
        let cells = self.read(
            "SELECT dcs FROM system_auth.network_permissions WHERE role = ?",
            &[text(role)],
        )?;
        Ok(cells.first().map(|cell| texts_of(Some(cell))))
    }

    /// The data centers of the other nodes of a cluster.
    pub fn data_centers_of_peers(&self) -> Result<Vec<String>, Error> {
        let cells = self.read("SELECT data_center FROM system.peers", &[])?;
        Ok(cells.iter().map(|cell| text_of(Some(cell))).collect())
    }

    /// The groups of addresses that a role may be used from; empty means all addresses.
    pub fn cidr_groups_of(&self, role: &str) -> Result<Vec<String>, Error> {
        let cells = self.read(
            "SELECT cidr_groups FROM system_auth.cidr_permissions WHERE role = ?",
            &[text(role)],
        )?;
        Ok(texts_of(cells.first()))
    }

    /// All groups of addresses, by name.
    pub fn cidr_groups(&self) -> Result<Vec<(String, Vec<Cidr>)>, Error> {
        let cells = self.read("SELECT cidr_group, cidrs FROM system_auth.cidr_groups", &[])?;
        let rows = cells.chunks_exact(2);
        let mut groups: Vec<_> = rows
            .map(|row| (text_of(row.first()), cidrs_of(row.get(1))))
            .collect();
        groups.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(groups)
    }

    /// The permissions of a role, by resource.
    pub fn granted(&self, role: &str) -> Result<Vec<Granted>, Error> {
        let cells = self.read(
            "SELECT resource, permissions FROM system_auth.role_permissions WHERE role = ?",
            &[text(role)],
        )?;
        let rows = cells.chunks_exact(2).map(|row| Granted {
            role: role.to_owned(),
            resource: text_of(row.first()),
            permissions: permissions_of(row.get(1)),
        });
        Ok(rows.collect())
    }

    /// The permissions of all roles, by resource.
    pub fn all_granted(&self) -> Result<Vec<Granted>, Error> {
        let cells = self.read(
            "SELECT role, resource, permissions FROM system_auth.role_permissions",
            &[],
        )?;
        let rows = cells.chunks_exact(3).map(|row| Granted {
            role: text_of(row.first()),
            resource: text_of(row.get(1)),
            permissions: permissions_of(row.get(2)),
        });
        Ok(rows.collect())
    }

    /// The roles with a permission on exactly this resource.
    pub fn roles_with(&self, resource: &str) -> Result<Vec<String>, Error> {
        let cells = self.read(
            "SELECT role FROM system_auth.resource_role_permissons_index WHERE resource = ?",
            &[text(resource)],
        )?;
        Ok(cells.iter().map(|cell| text_of(Some(cell))).collect())
    }

    /// Writes the changes as one record, or several if there are more than `CHANGES_MAX`. Returns what to wait for until they are durable.
    /// Fails with [`Error::Overtaken`] before it has written if the tables have another version ([`Self::version`]).
    pub fn write(&self, changes: Changes, version: u64) -> Result<Option<Awaited>, Error> {
        let mut awaited = None;
        let mut first_store = self.store.at_roles_version(version);
        let mut values = changes.values.as_slice();
        for statements in changes.statements.chunks(CHANGES_MAX) {
            let markers: usize = statements.iter().map(|cql| cql.matches('?').count()).sum();
            let (now, later) = values.split_at(markers.min(values.len()));
            values = later;
            let cql = match statements {
                [only] => (*only).to_owned(),
                many => format!("BEGIN BATCH {}; APPLY BATCH", many.join("; ")),
            };
            // The first record changes the version.
            let store = first_store.take();
            let store = store.as_deref().unwrap_or(&*self.store);
            let executed = internal::execute(store, &self.options, &cql, now)?;
            awaited = Awaited::both(awaited, executed.awaited);
        }
        Ok(awaited)
    }
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        self.statements.is_empty()
    }

    fn add<const N: usize>(&mut self, cql: &'static str, values: [Value; N]) {
        self.statements.push(cql);
        self.values.extend(values);
    }

    /// A new role.
    pub fn create_role(&mut self, name: &str, role: &Role) {
        self.add(
            "INSERT INTO system_auth.roles (role, is_superuser, can_login) VALUES (?, ?, ?)",
            [text(name), boolean(role.is_superuser), boolean(role.can_login)],
        );
    }

    pub fn set_superuser(&mut self, role: &str, is_superuser: bool) {
        self.add(
            "UPDATE system_auth.roles SET is_superuser = ? WHERE role = ?",
            [boolean(is_superuser), text(role)],
        );
    }

    pub fn set_login(&mut self, role: &str, can_login: bool) {
        self.add(
            "UPDATE system_auth.roles SET can_login = ? WHERE role = ?",
            [boolean(can_login), text(role)],
        );
    }

    pub fn set_hash(&mut self, role: &str, hash: &str) {
        self.add(
            "UPDATE system_auth.roles SET salted_hash = ? WHERE role = ?",
            [text(hash), text(role)],
        );
    }

    /// `None` means all data centers.
    pub fn set_datacenters(&mut self, role: &str, datacenters: Option<&[String]>) {
        match datacenters {
            Some(names) => self.add(
                "UPDATE system_auth.network_permissions SET dcs = ? WHERE role = ?",
                [texts(names.iter().map(String::as_str)), text(role)],
            ),
            None => self.add(
                "DELETE FROM system_auth.network_permissions WHERE role = ?",
                [text(role)],
            ),
        }
    }

    /// `None` means all addresses.
    pub fn set_cidr_groups(&mut self, role: &str, groups: Option<&[String]>) {
        match groups {
            Some(names) => self.add(
                "UPDATE system_auth.cidr_permissions SET cidr_groups = ? WHERE role = ?",
                [texts(names.iter().map(String::as_str)), text(role)],
            ),
            None => self.add(
                "DELETE FROM system_auth.cidr_permissions WHERE role = ?",
                [text(role)],
            ),
        }
    }

    /// Makes an identity of certificates stand for a role.
    pub fn add_identity(&mut self, identity: &str, role: &str) {
        self.add(
            "INSERT INTO system_auth.identity_to_role (identity, role) VALUES (?, ?)",
            [text(identity), text(role)],
        );
    }

    pub fn drop_identity(&mut self, identity: &str) {
        self.add(
            "DELETE FROM system_auth.identity_to_role WHERE identity = ?",
            [text(identity)],
        );
    }

    /// Grants `role` to `member`.
    pub fn add_member(&mut self, role: &str, member: &str) {
        self.add(
            "UPDATE system_auth.roles SET member_of = member_of + ? WHERE role = ?",
            [texts([role]), text(member)],
        );
        self.add(
            "INSERT INTO system_auth.role_members (role, member) VALUES (?, ?)",
            [text(role), text(member)],
        );
    }

    pub fn remove_member(&mut self, role: &str, member: &str) {
        self.add(
            "UPDATE system_auth.roles SET member_of = member_of - ? WHERE role = ?",
            [texts([role]), text(member)],
        );
        self.add(
            "DELETE FROM system_auth.role_members WHERE role = ? AND member = ?",
            [text(role), text(member)],
        );
    }

    /// Removes the row of the role, its data centers, its members, and its own memberships.
    pub fn drop_role(&mut self, name: &str, role: &Role) {
        self.add("DELETE FROM system_auth.roles WHERE role = ?", [text(name)]);
        self.add(
            "DELETE FROM system_auth.role_members WHERE role = ?",
            [text(name)],
        );
        for owner in &role.member_of {
            self.add(
                "DELETE FROM system_auth.role_members WHERE role = ? AND member = ?",
                [text(owner), text(name)],
            );
        }
        self.set_datacenters(name, None);
    }

    pub fn grant(&mut self, role: &str, resource: &Resource, permissions: Permissions) {
        let names = permissions.iter().map(Permission::name);
        self.add(
            "UPDATE system_auth.role_permissions SET permissions = permissions + ? WHERE role = ? AND resource = ?",
            [texts(names), text(role), text(&resource.name())],
        );
        self.add(
            "INSERT INTO system_auth.resource_role_permissons_index (resource, role) VALUES (?, ?)",
            [text(&resource.name()), text(role)],
        );
    }

    pub fn revoke(&mut self, role: &str, resource: &Resource, permissions: Permissions) {
        let names = permissions.iter().map(Permission::name);
        self.add(
            "UPDATE system_auth.role_permissions SET permissions = permissions - ? WHERE role = ? AND resource = ?",
            [texts(names), text(role), text(&resource.name())],
        );
    }

    /// Removes all permissions of the role on the resource of this name.
    pub fn revoke_all(&mut self, role: &str, resource: &str) {
        self.add(
            "DELETE FROM system_auth.role_permissions WHERE role = ? AND resource = ?",
            [text(role), text(resource)],
        );
        self.add(
            "DELETE FROM system_auth.resource_role_permissons_index WHERE resource = ? AND role = ?",
            [text(resource), text(role)],
        );
    }
}

fn boolean(value: bool) -> Value {
    Value::Bytes(Bytes::from_static(if value { &[1] } else { &[0] }))
}

/// Serializes a set of texts: the number of texts, then each with its length. Cassandra's form of a set.
fn texts<'t>(items: impl IntoIterator<Item = &'t str>) -> Value {
    let mut items: Vec<&str> = items.into_iter().collect();
    items.sort_unstable();
    let len = |len: usize| i32::try_from(len).unwrap_or(i32::MAX).to_be_bytes();
    let mut bytes = len(items.len()).to_vec();
    for item in items {
        bytes.extend(len(item.len()));
        bytes.extend(item.as_bytes());
    }
    Value::Bytes(bytes.into())
}

type Cell<'c> = Option<&'c Option<Bytes>>;

fn is_true(cell: Cell<'_>) -> bool {
    matches!(cell, Some(Some(bytes)) if bytes[..] == [1])
}

fn text_of(cell: Cell<'_>) -> String {
    let bytes = cell.and_then(Option::as_ref);
    bytes.map_or_else(String::new, |bytes| String::from_utf8_lossy(bytes).into_owned())
}

fn texts_of(cell: Cell<'_>) -> Vec<String> {
    let Some(Some(bytes)) = cell else {
        return Vec::new();
    };
    let items = sized_items(bytes.get(4..).unwrap_or_default());
    items
        .map(|item| String::from_utf8_lossy(item).into_owned())
        .collect()
}

/// Decodes a set of tuples of an address and the length of a prefix. Invalid tuples are skipped.
fn cidrs_of(cell: Cell<'_>) -> Vec<Cidr> {
    let Some(Some(bytes)) = cell else {
        return Vec::new();
    };
    let items = sized_items(bytes.get(4..).unwrap_or_default());
    items.filter_map(cidr_of).collect()
}

fn cidr_of(tuple: &[u8]) -> Option<Cidr> {
    let mut fields = sized_items(tuple);
    let (address, prefix_bits) = (fields.next()?, fields.next()?);
    let address = match address.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(address).ok()?),
        _ => IpAddr::from(<[u8; 16]>::try_from(address).ok()?),
    };
    Cidr::new(address, i16::from_be_bytes(prefix_bits.try_into().ok()?))
}

/// Items with their lengths in front, up to the first one that is cut off.
fn sized_items(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (len, after) = rest.split_first_chunk::<4>()?;
        let len = usize::try_from(i32::from_be_bytes(*len)).ok()?;
        let (item, after) = after.split_at_checked(len)?;
        rest = after;
        Some(item)
    })
}

/// Decodes a set of permissions. Names that this version does not know are skipped.
fn permissions_of(cell: Cell<'_>) -> Permissions {
    let names = texts_of(cell);
    names.iter().filter_map(|name| Permission::parse(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_texts_are_read_back() {
        let Value::Bytes(bytes) = texts(["b", "", "a\u{e9}"]) else {
            panic!("a set is bytes");
        };
        assert_eq!(texts_of(Some(&Some(bytes.clone()))), ["", "a\u{e9}", "b"]);
        assert_eq!(
            texts_of(Some(&Some(bytes.slice(..bytes.len() - 1)))),
            ["", "a\u{e9}"]
        );
        assert!(texts_of(None).is_empty());
        assert!(texts_of(Some(&Some(Bytes::from_static(&[0, 0, 0, 9, 255, 255, 255, 255])))).is_empty());
    }
}
