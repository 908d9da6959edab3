//! Permissions and sets of them.
//!
//! Compat: names and order are those of `Permission` of Cassandra 5.0; `LIST PERMISSIONS` sorts by this order.

use std::fmt;

/// What a role may do with a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each variant is the permission of that name")]
pub enum Permission {
    Create,
    Alter,
    Drop,
    Select,
    Modify,
    Authorize,
    Describe,
    Execute,
    Unmask,
    SelectMasked,
}

impl Permission {
    /// All permissions, in order.
    pub const ALL: [Self; 10] = [
        Self::Create,
        Self::Alter,
        Self::Drop,
        Self::Select,
        Self::Modify,
        Self::Authorize,
        Self::Describe,
        Self::Execute,
        Self::Unmask,
        Self::SelectMasked,
    ];

    /// The name in CQL and in `system_auth`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Alter => "ALTER",
            Self::Drop => "DROP",
            Self::Select => "SELECT",
            Self::Modify => "MODIFY",
            Self::Authorize => "AUTHORIZE",
            Self::Describe => "DESCRIBE",
            Self::Execute => "EXECUTE",
            Self::Unmask => "UNMASK",
            Self::SelectMasked => "SELECT_MASKED",
        }
    }

    /// The permission of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|permission| permission.name() == name)
    }

    fn bit(self) -> u16 {
        1 << self as u16
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// A set of permissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permissions(u16);

impl Permissions {
    /// No permission.
    pub const NONE: Self = Self(0);

    /// Whether the set has this permission.
    pub fn has(self, permission: Permission) -> bool {
        self.0 & permission.bit() != 0
    }

    /// The permissions of both sets.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The permissions of this set that the other one lacks.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// True without any permission.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The permissions, in order.
    pub fn iter(self) -> impl Iterator<Item = Permission> {
        Permission::ALL
            .into_iter()
            .filter(move |permission| self.has(*permission))
    }
}

impl FromIterator<Permission> for Permissions {
    fn from_iter<I: IntoIterator<Item = Permission>>(permissions: I) -> Self {
        Self(
            permissions
                .into_iter()
                .fold(0, |bits, permission| bits | permission.bit()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_and_sets_keep_the_order() {
        for permission in Permission::ALL {
            assert_eq!(Permission::parse(permission.name()), Some(permission));
        }
        assert_eq!(Permission::parse("select"), None);
        let set: Permissions = [Permission::Modify, Permission::Create].into_iter().collect();
        assert_eq!(
            set.iter().collect::<Vec<_>>(),
            [Permission::Create, Permission::Modify]
        );
        let rest = set.without([Permission::Create].into_iter().collect());
        assert_eq!(rest.iter().collect::<Vec<_>>(), [Permission::Modify]);
        assert!(rest.without(set).is_empty());
    }
}
