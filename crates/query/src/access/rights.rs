//! The permissions of a role, as `system_auth` had them at one time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use hashbrown::HashSet;
use ilion_auth::{Grants, Permission, Resource, Role};
use ilion_schema::{LOCAL_KEYSPACES, is_system_keyspace};
use parking_lot::RwLock;

use super::needs::{Need, Needs};
use crate::Error;

/// Most statements that are remembered as allowed.
const PASSED_MAX: usize = 4096;

/// The permissions of a role.
#[derive(Debug, Default)]
pub(super) struct Rights {
    /// The rights are valid up to this time of the monotonic clock; 0 if they were never read.
    pub valid_until_nanos: u64,
    /// The number of changes of roles and grants when the rights were read. They are invalid once that number has grown.
    pub change: u64,
    /// The role and all roles granted to it; empty if the role was dropped.
    pub roles: BTreeMap<String, Role>,
    pub grants: Grants,
    /// True if permissions are not checked on this node, so that the role has all of them.
    pub is_open: bool,
    /// True if the role may use this data center.
    pub has_access_here: bool,
    /// True if the address of the login is outside of the groups of addresses that the role is bound to.
    pub is_from_elsewhere: bool,
    /// A number that no other value of this process has; 0 if the rights were never read.
    pub stamp: u64,
    /// The ids of needs that were found to be met.
    pub passed: RwLock<HashSet<u64, foldhash_of_ids::Ids>>,
}

impl Rights {
    pub fn is_superuser(&self) -> bool {
        self.grants.is_superuser
    }

    /// Empty rights with a new stamp.
    pub fn stamped() -> Self {
        static LAST_STAMP: AtomicU64 = AtomicU64::new(0);
        Self {
            stamp: LAST_STAMP.fetch_add(1, Relaxed) + 1,
            ..Self::default()
        }
    }

    /// True if these needs were checked before and are met. Usually only one role executes a statement, and then one comparison is enough.
    #[inline]
    pub fn meet(&self, needs: &Needs) -> bool {
        needs.met_by.load(Relaxed) == self.stamp || self.passed.read().contains(&needs.id)
    }

    /// Checks the needs of a statement, and remembers them if they are met.
    ///
    /// # Errors
    /// A need is not met; the error is about the first one.
    pub fn check(&self, needs: &Needs, user: &str) -> Result<(), Error> {
        needs.list.iter().try_for_each(|need| self.meet_one(need, user))?;
        let mut passed = self.passed.write();
        if passed.len() >= PASSED_MAX {
            passed.clear();
        }
        passed.insert(needs.id);
        needs.met_by.store(self.stamp, Relaxed);
        Ok(())
    }

    fn meet_one(&self, need: &Need, user: &str) -> Result<(), Error> {
        match need {
            Need::Permission(permission, resource) => self.ensure(*permission, resource, user),
            Need::MaskedColumns(table, columns) => self.ensure_masked(table, columns, user),
            Need::Superuser(_) if self.is_superuser() => Ok(()),
            Need::Superuser(action) => Err(Error::Unauthorized(format!(
                "Only superusers are allowed to perform {action} queries"
            ))),
        }
    }

    /// Compat: `ClientState.ensurePermissionOnResourceChain`.
    pub fn ensure(&self, permission: Permission, resource: &Resource, user: &str) -> Result<(), Error> {
        if self.allow(permission, resource) {
            return Ok(());
        }
        Err(Error::Unauthorized(format!(
            "User {user} has no {permission} permission on {resource} or any of its parents"
        )))
    }

    /// Compat: `SelectStatement.authorize`.
    fn ensure_masked(&self, table: &Resource, columns: &[String], user: &str) -> Result<(), Error> {
        if self.allow(Permission::Unmask, table) || self.allow(Permission::SelectMasked, table) {
            return Ok(());
        }
        let name = match table {
            Resource::Table(keyspace, table) => format!("{keyspace}.{table}"),
            other => other.to_string(),
        };
        Err(Error::Unauthorized(format!(
            "User {user} has no UNMASK nor SELECT_MASKED permission on table {name}, cannot query masked columns [{}]",
            columns.join(", ")
        )))
    }

    pub fn allow(&self, permission: Permission, resource: &Resource) -> bool {
        if self.is_open || self.is_superuser() {
            return true;
        }
        if is_reserved(permission, resource) {
            return false;
        }
        // Compat: `ClientState.ensurePermission`, since 5.0.3.
        match keyspace_of(resource).is_some_and(is_system_keyspace) {
            true => resource
                .chain()
                .any(|one| one != Resource::AllKeyspaces && self.grants.on(&one).has(permission)),
            false => self.grants.allow(permission, resource),
        }
    }
}

/// The keyspace of a resource, if that is a keyspace, a table, or all tables of a keyspace.
fn keyspace_of(resource: &Resource) -> Option<&str> {
    match resource {
        Resource::Keyspace(keyspace) | Resource::AllTables(keyspace) | Resource::Table(keyspace, _) => {
            Some(keyspace)
        }
        _ => None,
    }
}

/// Whether only superusers have this permission, whatever was granted: to change the tables of the server's own keyspaces. Otherwise a
/// role that may write to `system_auth` could make itself a superuser.
///
/// Compat: `Permission.INVALID_FOR_SYSTEM_KEYSPACES`, which cannot be granted.
pub(super) fn is_reserved(permission: Permission, resource: &Resource) -> bool {
    let Some(keyspace) = keyspace_of(resource) else {
        return false;
    };
    let is_virtual = LOCAL_KEYSPACES[2..].contains(&keyspace);
    let is_harmless = matches!(
        permission,
        Permission::Select | Permission::Describe | Permission::Alter
    );
    is_system_keyspace(keyspace) && !is_virtual && !is_harmless
}

/// A cheap hash of ids: they count up and no client chooses them, so that nobody can provoke collisions.
mod foldhash_of_ids {
    use std::hash::{BuildHasherDefault, Hasher};

    pub type Ids = BuildHasherDefault<IdHasher>;

    #[derive(Clone, Debug, Default)]
    pub struct IdHasher(u64);

    impl Hasher for IdHasher {
        fn finish(&self) -> u64 {
            self.0
        }

        fn write(&mut self, bytes: &[u8]) {
            for byte in bytes {
                self.write_u64(self.0 ^ u64::from(*byte));
            }
        }

        fn write_u64(&mut self, id: u64) {
            // The hash table uses the upper bits as tags and the lower bits as places, so both must be mixed.
            let mixed = id.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            self.0 = mixed ^ (mixed >> 32);
        }
    }
}

#[cfg(test)]
mod tests {
    use ilion_auth::Permissions;

    use super::*;

    #[test]
    fn needs_are_met_by_the_rights_that_were_checked_only() {
        let needs = Needs::none();
        let (first, second) = (Rights::stamped(), Rights::stamped());
        assert!(!first.meet(&needs) && !Rights::default().meet(&needs));
        first.check(&needs, "first").unwrap();
        assert!(first.meet(&needs) && !second.meet(&needs));
        second.check(&needs, "second").unwrap();
        assert!(first.meet(&needs) && second.meet(&needs));
        assert!(!first.meet(&Needs::none()) && !Rights::default().meet(&needs));
    }

    #[test]
    fn tables_of_the_server_are_for_superusers_to_change() {
        let roles = Resource::table("system_auth", "roles");
        for permission in [Permission::Modify, Permission::Drop, Permission::Create] {
            assert!(is_reserved(permission, &roles), "{permission}");
        }
        assert!(!is_reserved(Permission::Select, &roles));
        assert!(!is_reserved(
            Permission::Alter,
            &Resource::Keyspace("system_auth".into())
        ));
        assert!(!is_reserved(
            Permission::Modify,
            &Resource::table("system_views", "statements")
        ));
        assert!(!is_reserved(Permission::Modify, &Resource::AllKeyspaces));
        let mut grants = Grants::default();
        grants.add("data".to_owned(), Resource::AllKeyspaces.applicable());
        let mut rights = Rights {
            grants,
            ..Rights::default()
        };
        assert!(!rights.allow(Permission::Select, &roles));
        assert!(!rights.allow(Permission::Modify, &roles));
        assert!(rights.allow(Permission::Modify, &Resource::table("ks", "t")));
        let select: Permissions = [Permission::Select].into_iter().collect();
        rights.grants.add("data/system_auth".to_owned(), select);
        assert!(rights.allow(Permission::Select, &roles));
        assert!(!rights.allow(Permission::Modify, &roles));
    }
}
