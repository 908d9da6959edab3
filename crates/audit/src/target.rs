//! Finds the type of a statement and its object in the text.
//!
//! Compat: `getAuditLogContext` of the statements of Cassandra 5.0. A difference: the entry of a GRANT or REVOKE has the keyspace of its
//! resource. In Cassandra it has the name of the resource instead, which no choice of keyspaces matches.

use ilion_cql::ast::{QualifiedName, Resource, Statement};

use crate::entry::EntryType;

/// The type of a statement, and its object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its type.
    pub entry_type: EntryType,
    /// The keyspace, if the text has it.
    pub keyspace: Option<String>,
    /// The table, or another object of the keyspace.
    pub scope: Option<String>,
}

impl Target {
    /// The target of a text; `None` if it is not CQL.
    pub fn of_text(text: &str) -> Option<Self> {
        let parsed = ilion_cql::parse(text).ok()?;
        Some(Self::of(&parsed.statement))
    }

    /// The target of a statement.
    pub fn of(statement: &Statement) -> Self {
        use EntryType as T;
        match statement {
            Statement::Select(select) => Self::named(T::Select, &select.table),
            Statement::Explain(explain) => Self::named(T::Select, &explain.select.table),
            Statement::Insert(insert) => Self::named(T::Update, &insert.table),
            Statement::Update(update) => Self::named(T::Update, &update.table),
            Statement::Delete(delete) => Self::named(T::Delete, &delete.table),
            Statement::Batch(_) => Self::bare(T::Batch),
            Statement::Use(keyspace) => Self::keyspace(T::UseKeyspace, keyspace),
            Statement::Truncate(table) => Self::named(T::Truncate, table),
            Statement::CreateKeyspace(create) => Self::keyspace(T::CreateKeyspace, &create.keyspace),
            Statement::AlterKeyspace(alter) => Self::keyspace(T::AlterKeyspace, &alter.keyspace),
            Statement::DropKeyspace(drop) => Self::keyspace(T::DropKeyspace, &drop.keyspace),
            Statement::CreateTable(create) => Self::named(T::CreateTable, &create.table),
            Statement::CreateTableLike(create) => Self::named(T::CreateTableLike, &create.table),
            Statement::AlterTable(alter) => Self::named(T::AlterTable, &alter.table),
            Statement::DropTable(drop) => Self::named(T::DropTable, &drop.name),
            Statement::CreateType(create) => Self::named(T::CreateType, &create.name),
            Statement::AlterType(alter) => Self::named(T::AlterType, &alter.name),
            Statement::DropType(drop) => Self::named(T::DropType, &drop.name),
            Statement::CreateIndex(create) => Self {
                scope: create.name.clone(),
                ..Self::named(T::CreateIndex, &create.table)
            },
            Statement::DropIndex(drop) => Self::named(T::DropIndex, &drop.name),
            Statement::CreateView(create) => Self::named(T::CreateView, &create.view),
            Statement::AlterView(alter) => Self::named(T::AlterView, &alter.view),
            Statement::DropView(drop) => Self::named(T::DropView, &drop.name),
            Statement::CreateTrigger(create) => Self::beside(T::CreateTrigger, &create.table, &create.name),
            Statement::DropTrigger(drop) => Self::beside(T::DropTrigger, &drop.table, &drop.name),
            Statement::CreateFunction(create) => Self::named(T::CreateFunction, &create.name),
            Statement::DropFunction(drop) => Self::named(T::DropFunction, &drop.name),
            Statement::CreateAggregate(create) => Self::named(T::CreateAggregate, &create.name),
            Statement::DropAggregate(drop) => Self::named(T::DropAggregate, &drop.name),
            Statement::CreateRole(_) => Self::bare(T::CreateRole),
            Statement::AlterRole(_) => Self::bare(T::AlterRole),
            Statement::DropRole(_) => Self::bare(T::DropRole),
            Statement::GrantPermissions(change) => Self::on_resource(T::Grant, &change.resource),
            Statement::RevokePermissions(change) => Self::on_resource(T::Revoke, &change.resource),
            Statement::GrantRole(_) => Self::bare(T::Grant),
            Statement::RevokeRole(_) => Self::bare(T::Revoke),
            // Compat: LIST USERS is a LIST ROLES.
            Statement::ListRoles(_) | Statement::ListUsers => Self::bare(T::ListRoles),
            Statement::ListSuperusers => Self::bare(T::ListSuperusers),
            Statement::ListPermissions(_) => Self::bare(T::ListPermissions),
            Statement::AddIdentity(_) => Self::bare(T::CreateIdentity),
            Statement::DropIdentity(_) => Self::bare(T::DropIdentity),
            Statement::Describe(_) => Self::bare(T::Describe),
        }
    }

    fn bare(entry_type: EntryType) -> Self {
        Self {
            entry_type,
            keyspace: None,
            scope: None,
        }
    }

    fn keyspace(entry_type: EntryType, keyspace: &str) -> Self {
        Self {
            keyspace: Some(keyspace.to_owned()),
            ..Self::bare(entry_type)
        }
    }

    fn named(entry_type: EntryType, name: &QualifiedName) -> Self {
        Self::beside(entry_type, name, &name.name)
    }

    /// An object in the keyspace of a table.
    fn beside(entry_type: EntryType, table: &QualifiedName, name: &str) -> Self {
        Self {
            entry_type,
            keyspace: table.keyspace.clone(),
            scope: Some(name.to_owned()),
        }
    }

    fn on_resource(entry_type: EntryType, resource: &Resource) -> Self {
        let (keyspace, scope) = match resource {
            Resource::Keyspace(keyspace)
            | Resource::AllTables(keyspace)
            | Resource::AllFunctionsIn(keyspace) => (Some(keyspace), None),
            Resource::Table(table) => (table.keyspace.as_ref(), Some(&table.name)),
            Resource::Function { name, .. } => (name.keyspace.as_ref(), Some(&name.name)),
            _ => (None, None),
        };
        Self {
            entry_type,
            keyspace: keyspace.cloned(),
            scope: scope.cloned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::EntryType as T;

    #[test]
    fn statements_have_their_type_and_names() {
        for (text, entry_type, keyspace, scope) in [
            ("SELECT * FROM ks.t", T::Select, "ks", "t"),
            ("SELECT * FROM t", T::Select, "", "t"),
            ("EXPLAIN SELECT * FROM ks.t", T::Select, "ks", "t"),
            ("INSERT INTO ks.t (k) VALUES (1)", T::Update, "ks", "t"),
            ("UPDATE ks.t SET v = 1 WHERE k = 1", T::Update, "ks", "t"),
            ("DELETE FROM ks.t WHERE k = 1", T::Delete, "ks", "t"),
            (
                "BEGIN BATCH INSERT INTO ks.t (k) VALUES (1); APPLY BATCH",
                T::Batch,
                "",
                "",
            ),
            ("TRUNCATE ks.t", T::Truncate, "ks", "t"),
            ("USE ks", T::UseKeyspace, "ks", ""),
            ("DROP KEYSPACE ks", T::DropKeyspace, "ks", ""),
            ("CREATE TABLE ks.t (k int PRIMARY KEY)", T::CreateTable, "ks", "t"),
            ("CREATE INDEX i ON ks.t (v)", T::CreateIndex, "ks", "i"),
            ("CREATE INDEX ON ks.t (v)", T::CreateIndex, "ks", ""),
            ("DROP INDEX ks.i", T::DropIndex, "ks", "i"),
            ("DROP MATERIALIZED VIEW ks.v", T::DropView, "ks", "v"),
            ("DROP FUNCTION ks.f", T::DropFunction, "ks", "f"),
            ("CREATE USER bob WITH PASSWORD 'x'", T::CreateRole, "", ""),
            ("GRANT SELECT ON ks.t TO bob", T::Grant, "ks", "t"),
            ("GRANT SELECT ON KEYSPACE ks TO bob", T::Grant, "ks", ""),
            ("GRANT SELECT ON ALL KEYSPACES TO bob", T::Grant, "", ""),
            ("GRANT readers TO bob", T::Grant, "", ""),
            ("REVOKE SELECT ON ks.t FROM bob", T::Revoke, "ks", "t"),
            ("LIST ROLES", T::ListRoles, "", ""),
            ("LIST USERS", T::ListRoles, "", ""),
            ("LIST ALL PERMISSIONS", T::ListPermissions, "", ""),
            ("DESCRIBE KEYSPACES", T::Describe, "", ""),
        ] {
            let name = |name: &str| Some(name.to_owned()).filter(|name| !name.is_empty());
            let expected = Target {
                entry_type,
                keyspace: name(keyspace),
                scope: name(scope),
            };
            assert_eq!(Target::of_text(text), Some(expected), "{text}");
        }
        assert_eq!(Target::of_text("SELEC 1"), None);
    }
}
