//! Roles, permissions and identities.

use super::{CqlTypeName, Identifier, QualifiedName};

/// `CREATE ROLE` or `CREATE USER`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateRole {
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The role.
    pub role: Identifier,
    /// `WITH`. `CREATE USER` sets `login` to true, and `superuser` to false unless the text has SUPERUSER.
    pub options: RoleOptions,
}

/// `ALTER ROLE` or `ALTER USER`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterRole {
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The role.
    pub role: Identifier,
    /// `WITH`
    pub options: RoleOptions,
}

/// The options after `WITH`; `None` if not in the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleOptions {
    /// `PASSWORD = '..'` or `HASHED PASSWORD = '..'`
    pub password: Option<Password>,
    /// `SUPERUSER = true`
    pub superuser: Option<bool>,
    /// `LOGIN = true`
    pub login: Option<bool>,
    /// `OPTIONS = {'a': 'b'}`
    pub custom: Option<Vec<(String, String)>>,
    /// `ACCESS TO DATACENTERS`
    pub datacenters: Option<Access>,
    /// `ACCESS FROM CIDRS`
    pub cidr_groups: Option<Access>,
}

/// A password, plain or hashed.
#[derive(Clone, PartialEq, Eq)]
pub enum Password {
    /// The password itself.
    Plain(String),
    /// Its bcrypt hash.
    Hashed(String),
}

impl std::fmt::Debug for Password {
    /// Hides the password, so that it does not get into logs.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Plain(_) => "Plain(***)",
            Self::Hashed(_) => "Hashed(***)",
        })
    }
}

/// The datacenters or address groups that a role is limited to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// `ALL`
    All,
    /// At least one name.
    Only(Vec<String>),
}

/// `DROP ROLE` or `DROP USER`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropRole {
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The role.
    pub role: Identifier,
}

/// `GRANT` or `REVOKE` of permissions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionChange {
    /// The permissions.
    pub permissions: Permissions,
    /// Their resource.
    pub resource: Resource,
    /// The role that gets or loses them.
    pub role: Identifier,
}

/// `GRANT role TO member` or `REVOKE role FROM member`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleMembership {
    /// The role to grant or revoke.
    pub role: Identifier,
    /// The role that becomes or ceases to be a member.
    pub member: Identifier,
}

/// `LIST ROLES`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListRoles {
    /// `OF role`
    pub of: Option<Identifier>,
    /// True to include roles of roles; false for `NORECURSIVE`.
    pub recursive: bool,
}

/// `LIST permissions`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPermissions {
    /// The permissions.
    pub permissions: Permissions,
    /// `ON resource`
    pub resource: Option<Resource>,
    /// `OF role`
    pub of: Option<Identifier>,
    /// True to include inherited permissions; false for `NORECURSIVE`.
    pub recursive: bool,
}

/// A set of permissions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permissions {
    /// `ALL PERMISSIONS`
    All,
    /// At least one, in the order of the text.
    Only(Vec<Permission>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// The name as CQL prints it.
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
}

/// The resource of permissions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resource {
    /// `ALL KEYSPACES`
    AllKeyspaces,
    /// `KEYSPACE k`
    Keyspace(Identifier),
    /// `ALL TABLES IN KEYSPACE k`
    AllTables(Identifier),
    /// `TABLE t`
    Table(QualifiedName),
    /// `ALL ROLES`
    AllRoles,
    /// `ROLE r`
    Role(Identifier),
    /// `ALL FUNCTIONS`
    AllFunctions,
    /// `ALL FUNCTIONS IN KEYSPACE k`
    AllFunctionsIn(Identifier),
    /// `FUNCTION f(int)`
    Function {
        /// The function.
        name: QualifiedName,
        /// The types of its arguments.
        argument_types: Vec<CqlTypeName>,
    },
    /// `ALL MBEANS`
    AllMbeans,
    /// `MBEAN 'name'`
    Mbean(String),
    /// `MBEANS 'pattern'`
    Mbeans(String),
}

/// `ADD IDENTITY 'identity' TO ROLE 'role'`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddIdentity {
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The identity in a client's certificate.
    pub identity: String,
    /// The role of a client with this identity.
    pub role: String,
}

/// `DROP IDENTITY 'identity'`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropIdentity {
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The identity in a client's certificate.
    pub identity: String,
}

impl Resource {
    /// The permissions that apply to this resource. `ALL` stands for exactly these.
    pub fn applicable_permissions(&self) -> &'static [Permission] {
        use Permission::*;
        match self {
            Self::AllKeyspaces | Self::Keyspace(_) | Self::AllTables(_) => &[
                Create,
                Alter,
                Drop,
                Select,
                Modify,
                Authorize,
                Unmask,
                SelectMasked,
            ],
            Self::Table(_) => &[Alter, Drop, Select, Modify, Authorize, Unmask, SelectMasked],
            Self::AllRoles => &[Create, Alter, Drop, Authorize, Describe],
            Self::Role(_) => &[Alter, Drop, Authorize, Describe],
            Self::AllFunctions | Self::AllFunctionsIn(_) => &[Create, Alter, Drop, Authorize, Execute],
            Self::Function { .. } => &[Alter, Drop, Authorize, Execute],
            Self::AllMbeans | Self::Mbean(_) | Self::Mbeans(_) => {
                &[Authorize, Describe, Execute, Modify, Select]
            }
        }
    }

    /// The kind of resource in Cassandra's messages.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::AllKeyspaces | Self::Keyspace(_) | Self::AllTables(_) | Self::Table(_) => "DataResource",
            Self::AllRoles | Self::Role(_) => "RoleResource",
            Self::AllFunctions | Self::AllFunctionsIn(_) | Self::Function { .. } => "FunctionResource",
            Self::AllMbeans | Self::Mbean(_) | Self::Mbeans(_) => "JMXResource",
        }
    }
}
