//! A change of the schema as a value, and its effect as a pure function.
//!
//! [`Schema::apply`] checks a [`SchemaChange`] against the schema and returns the next schema and the differences. It has no
//! side effects: the engine stores the rows (`rows`) and creates or drops the tables in the differences.
//!
//! Compat: rules and messages are those of Cassandra 5.0 (`org.apache.cassandra.cql3.statements.schema`).

mod alter_table;
mod compact_table;
mod create_table;
mod functions;
mod indexes;
mod keyspaces;
mod loadable;
mod permitted;
mod readable;
mod statement;
mod tables;
mod types;
mod views;

use std::sync::Arc;

use crate::error::invalid;
use crate::rows::ChangedRows;
use crate::{Diff, Error, Keyspace, RowChange, Schema, diff};

pub use statement::{
    CopyTable, CreateAggregate, CreateFunction, CreateIndex, CreateTable, CreateView, DropFunction,
    DropObject, IndexPart, IndexTarget, NewColumn, SchemaChange, TableAlteration, TypeAlteration,
};

/// The effect of a change.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The next schema; it shares unchanged keyspaces with the old one.
    pub schema: Schema,
    /// The differences; empty if nothing changed.
    pub diffs: Vec<Diff>,
    /// The rows to write to `system_schema`.
    pub changes: Vec<RowChange>,
}

impl Applied {
    /// The result of a change that left the schema as it was.
    pub fn no_change(schema: &Schema) -> Self {
        Self {
            schema: schema.clone(),
            diffs: Vec::new(),
            changes: Vec::new(),
        }
    }
}

impl Schema {
    /// The schema after `change`. Pure: `now_micros` is the caller's clock (drop times, ids of new tables).
    ///
    /// # Errors
    /// The rules of CQL do not allow the change; messages and codes are Cassandra's.
    pub fn apply(&self, change: &SchemaChange, now_micros: i64) -> Result<Applied, Error> {
        self.permit(change)?;
        let Some(schema) = self.next(change, now_micros)? else {
            return Ok(Applied::no_change(self));
        };
        let diffs = diff(self, &schema);
        if diffs.is_empty() {
            return Ok(Applied::no_change(self));
        }
        let rows = ChangedRows::of(&diffs, self, &schema);
        let applied = Applied {
            schema: schema.sealed_after(self, &rows),
            changes: rows.into_changes(),
            diffs,
        };
        self.release.check(&applied)?;
        applied.check_readable()?;
        Ok(applied)
    }

    /// The changed schema; `None` if the change has `IF [NOT] EXISTS` and there is nothing to do.
    fn next(&self, change: &SchemaChange, now_micros: i64) -> Result<Option<Schema>, Error> {
        match change {
            SchemaChange::CreateKeyspace {
                name,
                properties,
                if_not_exists,
            } => self.create_keyspace(name, properties, *if_not_exists),
            SchemaChange::AlterKeyspace {
                name,
                properties,
                if_exists,
            } => self.alter_keyspace(name, properties, *if_exists),
            SchemaChange::DropKeyspace { name, if_exists } => self.drop_keyspace(name, *if_exists),
            SchemaChange::CreateTable(create) => self.create_table(create, now_micros),
            SchemaChange::CopyTable(copy) => self.copy_table(copy, now_micros),
            SchemaChange::AlterTable {
                keyspace,
                table,
                if_exists,
                alteration,
            } => self.alter_table(keyspace, table, *if_exists, alteration, now_micros),
            SchemaChange::DropTable(drop) => self.drop_table(drop),
            SchemaChange::CreateType {
                keyspace,
                name,
                fields,
                if_not_exists,
            } => self.create_type(keyspace, name, fields, *if_not_exists),
            SchemaChange::AlterType {
                keyspace,
                name,
                if_exists,
                alteration,
            } => self.alter_type(keyspace, name, *if_exists, alteration),
            SchemaChange::DropType(drop) => self.drop_type(drop),
            SchemaChange::CreateIndex(create) => self.create_index(create),
            SchemaChange::DropIndex(drop) => self.drop_index(drop),
            SchemaChange::CreateView(create) => self.create_view(create, now_micros),
            SchemaChange::AlterView {
                keyspace,
                view,
                if_exists,
                properties,
            } => self.alter_view(keyspace, view, *if_exists, properties),
            SchemaChange::DropView(drop) => self.drop_view(drop),
            SchemaChange::CreateFunction(create) => self.create_function(create),
            SchemaChange::DropFunction(drop) => self.drop_function(drop),
            SchemaChange::CreateAggregate(create) => self.create_aggregate(create),
            SchemaChange::DropAggregate(drop) => self.drop_aggregate(drop),
            SchemaChange::CreateTrigger {
                keyspace,
                table,
                name,
                class,
                if_not_exists,
            } => self.create_trigger(keyspace, table, name, class, *if_not_exists),
            SchemaChange::DropTrigger {
                keyspace,
                table,
                name,
                if_exists,
            } => self.drop_trigger(keyspace, table, name, *if_exists),
        }
    }

    /// The keyspace of a statement. Fails if it does not exist.
    fn existing(&self, keyspace: &str) -> Result<&Arc<Keyspace>, Error> {
        match self.keyspace(keyspace) {
            Some(found) => Ok(found),
            None => invalid(format!("Keyspace '{keyspace}' doesn't exist")),
        }
    }

    /// This schema with one keyspace added or replaced.
    fn with(&self, keyspace: Keyspace) -> Schema {
        let mut next = self.clone();
        next.keyspaces.insert(keyspace.name.clone(), Arc::new(keyspace));
        next
    }
}
