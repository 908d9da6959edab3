//! The permissions of a role, with those of the roles that it has.

use std::collections::HashMap;

use crate::{Permission, Permissions, Resource};

/// The permissions of a role by the name of the resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// True if the role has every permission.
    pub is_superuser: bool,
    by_resource: HashMap<String, Permissions>,
}

impl Grants {
    /// The grants of a superuser.
    pub fn of_superuser() -> Self {
        Self {
            is_superuser: true,
            ..Self::default()
        }
    }

    /// Adds permissions on the resource of this name.
    pub fn add(&mut self, resource: String, permissions: Permissions) {
        let known = self.by_resource.entry(resource).or_default();
        *known = known.and(permissions);
    }

    /// The names of the resources on which something was granted.
    pub fn resources(&self) -> impl Iterator<Item = &str> {
        self.by_resource.keys().map(String::as_str)
    }

    /// The permissions that were granted on exactly this resource.
    pub fn on(&self, resource: &Resource) -> Permissions {
        match self.is_superuser {
            true => resource.applicable(),
            false => self
                .by_resource
                .get(&resource.name())
                .copied()
                .unwrap_or_default(),
        }
    }

    /// Whether the role may do this: it has the permission on the resource or on one that contains it. Pure.
    pub fn allow(&self, permission: Permission, resource: &Resource) -> bool {
        self.is_superuser || resource.chain().any(|one| self.on(&one).has(permission))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permission_on_the_whole_is_one_on_each_part() {
        let select: Permissions = [Permission::Select].into_iter().collect();
        let table = Resource::table("ks", "t");
        for granted_on in table.chain() {
            let mut grants = Grants::default();
            grants.add(granted_on.name(), select);
            assert!(grants.allow(Permission::Select, &table), "{granted_on}");
            assert!(!grants.allow(Permission::Modify, &table));
            let is_of_all = granted_on == Resource::AllKeyspaces;
            assert_eq!(
                grants.allow(Permission::Select, &Resource::table("other", "t")),
                is_of_all
            );
        }
        assert!(!Grants::default().allow(Permission::Select, &table));
        assert!(Grants::of_superuser().allow(Permission::Select, &table));
    }

    #[test]
    fn a_permission_on_a_part_is_none_on_the_whole() {
        let mut grants = Grants::default();
        grants.add("data/ks/t".to_owned(), [Permission::Alter].into_iter().collect());
        assert!(!grants.allow(Permission::Alter, &Resource::Keyspace("ks".into())));
        assert!(!grants.allow(Permission::Alter, &Resource::table("ks", "t2")));
    }
}
