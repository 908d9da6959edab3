//! The syntax tree of CQL.
//!
//! `Statement` has one variant per kind of statement; its parts are in the submodules by family, all re-exported here. The tree
//! has the text's content, not its meaning: names are not resolved, literals are text, and the schema is unknown.
//!
//! Invariants of every parsed tree: identifiers are case-folded (unquoted ones are lower case, quoted ones unchanged). Bind
//! markers are numbered from 0 in the order of the text. A printed tree (`Display`) parses to an equal tree.

mod data;
mod definition;
mod describe;
mod function;
mod role;
mod selection;
mod table;
mod term;
mod type_name;

pub use data::*;
pub use definition::*;
pub use describe::*;
pub use function::*;
pub use role::*;
pub use selection::*;
pub use table::*;
pub use term::*;
pub use type_name::*;

/// A name after case folding: unquoted names are lower case; quoted ones are unchanged, without the quotes.
pub type Identifier = String;

/// The name of a table, view, type, index or function, with the keyspace if it is in the text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QualifiedName {
    /// `None` means the session's keyspace.
    pub keyspace: Option<Identifier>,
    /// The name inside the keyspace.
    pub name: Identifier,
}

impl QualifiedName {
    /// A name in a given keyspace.
    pub fn qualified(keyspace: impl Into<Identifier>, name: impl Into<Identifier>) -> Self {
        Self {
            keyspace: Some(keyspace.into()),
            name: name.into(),
        }
    }
}

/// One statement of CQL.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// `SELECT`
    Select(Box<Select>),
    /// `EXPLAIN [ANALYZE] SELECT`, not in Cassandra
    Explain(Explain),
    /// `INSERT`, of values or of JSON
    Insert(Box<Insert>),
    /// `UPDATE`
    Update(Box<Update>),
    /// `DELETE`
    Delete(Box<Delete>),
    /// `BEGIN BATCH .. APPLY BATCH`
    Batch(Batch),
    /// `USE keyspace`
    Use(Identifier),
    /// `TRUNCATE table`
    Truncate(QualifiedName),
    /// `CREATE KEYSPACE`
    CreateKeyspace(CreateKeyspace),
    /// `ALTER KEYSPACE`
    AlterKeyspace(AlterKeyspace),
    /// `DROP KEYSPACE`
    DropKeyspace(DropKeyspace),
    /// `CREATE TABLE` with its columns
    CreateTable(Box<CreateTable>),
    /// `CREATE TABLE .. LIKE ..`
    CreateTableLike(Box<CreateTableLike>),
    /// `ALTER TABLE`
    AlterTable(Box<AlterTable>),
    /// `DROP TABLE`
    DropTable(DropObject),
    /// `CREATE TYPE`
    CreateType(CreateType),
    /// `ALTER TYPE`
    AlterType(AlterType),
    /// `DROP TYPE`
    DropType(DropObject),
    /// `CREATE [CUSTOM] INDEX`
    CreateIndex(Box<CreateIndex>),
    /// `DROP INDEX`
    DropIndex(DropObject),
    /// `CREATE MATERIALIZED VIEW`
    CreateView(Box<CreateView>),
    /// `ALTER MATERIALIZED VIEW`
    AlterView(AlterView),
    /// `DROP MATERIALIZED VIEW`
    DropView(DropObject),
    /// `CREATE TRIGGER`
    CreateTrigger(CreateTrigger),
    /// `DROP TRIGGER`
    DropTrigger(DropTrigger),
    /// `CREATE FUNCTION`
    CreateFunction(Box<CreateFunction>),
    /// `DROP FUNCTION`
    DropFunction(DropFunction),
    /// `CREATE AGGREGATE`
    CreateAggregate(Box<CreateAggregate>),
    /// `DROP AGGREGATE`
    DropAggregate(DropFunction),
    /// `CREATE ROLE`; also `CREATE USER`, which is a role that may log in
    CreateRole(Box<CreateRole>),
    /// `ALTER ROLE`; also `ALTER USER`
    AlterRole(Box<AlterRole>),
    /// `DROP ROLE`; also `DROP USER`
    DropRole(DropRole),
    /// `GRANT permissions ON resource TO role`
    GrantPermissions(PermissionChange),
    /// `REVOKE permissions ON resource FROM role`
    RevokePermissions(PermissionChange),
    /// `GRANT role TO role`
    GrantRole(RoleMembership),
    /// `REVOKE role FROM role`
    RevokeRole(RoleMembership),
    /// `LIST ROLES`
    ListRoles(ListRoles),
    /// `LIST USERS`
    ListUsers,
    /// `LIST SUPERUSERS`
    ListSuperusers,
    /// `LIST permissions`
    ListPermissions(ListPermissions),
    /// `ADD IDENTITY`
    AddIdentity(AddIdentity),
    /// `DROP IDENTITY`
    DropIdentity(DropIdentity),
    /// `DESCRIBE` in all its forms
    Describe(Describe),
}
