//! Prints statements, including those that are too small for a file of their own.

use std::fmt::{Display, Formatter, Result};

use super::{QualifiedFunction, QualifiedType, when};
use crate::ast::{
    Describe, DescribeTarget, DropObject, DropRole, Explain, Identifier, QualifiedName, Statement,
};
use crate::quote::{Name, Role, SafeName};

impl Display for Statement {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Select(statement) => statement.fmt(out),
            Self::Explain(Explain { is_analyzed, select }) => {
                write!(out, "EXPLAIN {}{select}", when(*is_analyzed, "ANALYZE "))
            }
            Self::Insert(statement) => statement.fmt(out),
            Self::Update(statement) => statement.fmt(out),
            Self::Delete(statement) => statement.fmt(out),
            Self::Batch(statement) => statement.fmt(out),
            Self::Use(keyspace) => write!(out, "USE {}", Name(keyspace)),
            Self::Truncate(table) => write!(out, "TRUNCATE TABLE {table}"),
            Self::CreateKeyspace(statement) => statement.fmt(out),
            Self::AlterKeyspace(statement) => statement.fmt(out),
            Self::DropKeyspace(statement) => statement.fmt(out),
            Self::CreateTable(statement) => statement.fmt(out),
            Self::CreateTableLike(statement) => statement.fmt(out),
            Self::AlterTable(statement) => statement.fmt(out),
            Self::DropTable(dropped) => drop_object(out, "TABLE", dropped),
            Self::CreateType(statement) => statement.fmt(out),
            Self::AlterType(statement) => statement.fmt(out),
            Self::DropType(dropped) => {
                let if_exists = when(dropped.if_exists, "IF EXISTS ");
                write!(out, "DROP TYPE {if_exists}{}", QualifiedType(&dropped.name))
            }
            Self::CreateIndex(statement) => statement.fmt(out),
            Self::DropIndex(dropped) => drop_object(out, "INDEX", dropped),
            Self::CreateView(statement) => statement.fmt(out),
            Self::AlterView(statement) => statement.fmt(out),
            Self::DropView(dropped) => drop_object(out, "MATERIALIZED VIEW", dropped),
            Self::CreateTrigger(statement) => statement.fmt(out),
            Self::DropTrigger(statement) => statement.fmt(out),
            Self::CreateFunction(statement) => statement.fmt(out),
            Self::DropFunction(dropped) => write!(out, "DROP FUNCTION {dropped}"),
            Self::CreateAggregate(statement) => statement.fmt(out),
            Self::DropAggregate(dropped) => write!(out, "DROP AGGREGATE {dropped}"),
            Self::CreateRole(statement) => statement.fmt(out),
            Self::AlterRole(statement) => statement.fmt(out),
            Self::DropRole(statement) => statement.fmt(out),
            Self::GrantPermissions(change) => {
                let role = Role(&change.role);
                write!(
                    out,
                    "GRANT {} ON {} TO {role}",
                    change.permissions, change.resource
                )
            }
            Self::RevokePermissions(change) => {
                let role = Role(&change.role);
                write!(
                    out,
                    "REVOKE {} ON {} FROM {role}",
                    change.permissions, change.resource
                )
            }
            Self::GrantRole(change) => {
                write!(out, "GRANT {} TO {}", Role(&change.role), Role(&change.member))
            }
            Self::RevokeRole(change) => {
                write!(out, "REVOKE {} FROM {}", Role(&change.role), Role(&change.member))
            }
            Self::ListRoles(statement) => statement.fmt(out),
            Self::ListUsers => out.write_str("LIST USERS"),
            Self::ListSuperusers => out.write_str("LIST SUPERUSERS"),
            Self::ListPermissions(statement) => statement.fmt(out),
            Self::AddIdentity(statement) => statement.fmt(out),
            Self::DropIdentity(statement) => statement.fmt(out),
            Self::Describe(statement) => statement.fmt(out),
        }
    }
}

fn drop_object(out: &mut Formatter<'_>, what: &str, dropped: &DropObject) -> Result {
    write!(
        out,
        "DROP {what} {}{}",
        when(dropped.if_exists, "IF EXISTS "),
        dropped.name
    )
}

impl Display for DropRole {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        write!(
            out,
            "DROP ROLE {}{}",
            when(self.if_exists, "IF EXISTS "),
            Role(&self.role)
        )
    }
}

impl Display for Describe {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        write!(
            out,
            "DESCRIBE {}{}",
            self.target,
            when(self.with_internals, " WITH INTERNALS")
        )
    }
}

impl Display for DescribeTarget {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Cluster => out.write_str("CLUSTER"),
            Self::Schema => out.write_str("SCHEMA"),
            Self::FullSchema => out.write_str("FULL SCHEMA"),
            Self::Keyspaces => out.write_str("KEYSPACES"),
            Self::Keyspace(keyspace) => described_keyspace(out, "KEYSPACE", keyspace.as_ref()),
            Self::OnlyKeyspace(keyspace) => described_keyspace(out, "ONLY KEYSPACE", keyspace.as_ref()),
            Self::Tables => out.write_str("TABLES"),
            Self::Table(name) => write!(out, "TABLE {name}"),
            Self::Index(name) => write!(out, "INDEX {name}"),
            Self::View(name) => write!(out, "MATERIALIZED VIEW {name}"),
            Self::Types => out.write_str("TYPES"),
            Self::Type(name) => write!(out, "TYPE {}", QualifiedType(name)),
            Self::Functions => out.write_str("FUNCTIONS"),
            Self::Function(name) => write!(out, "FUNCTION {}", QualifiedFunction(name)),
            Self::Aggregates => out.write_str("AGGREGATES"),
            Self::Aggregate(name) => write!(out, "AGGREGATE {}", QualifiedFunction(name)),
            Self::Any(name) => any_name(out, name),
        }
    }
}

fn described_keyspace(out: &mut Formatter<'_>, what: &str, keyspace: Option<&Identifier>) -> Result {
    match keyspace {
        Some(keyspace) => write!(out, "{what} {}", Name(keyspace)),
        None => out.write_str(what),
    }
}

/// A name that must not be parsed as a kind of object.
fn any_name(out: &mut Formatter<'_>, name: &QualifiedName) -> Result {
    if let Some(keyspace) = &name.keyspace {
        write!(out, "{}.", SafeName(keyspace))?;
    }
    SafeName(&name.name).fmt(out)
}
