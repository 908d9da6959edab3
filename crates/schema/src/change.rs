//! A change of the schema, as a value, and what it does, as a pure function.
//!
//! [`Schema::apply`] checks a [`SchemaChange`] against the schema and answers with the next schema and the list of what
//! differs. It touches nothing: the engine stores the rows (`rows`) and creates or drops tables as the diffs say.
//!
//! Compat: rules and messages are those of Cassandra 5.0 (`org.apache.cassandra.cql3.statements.schema`).

mod alter_table;
mod create_table;
mod functions;
mod indexes;
mod keyspaces;
mod permitted;
mod tables;
mod types;
mod views;

use std::sync::Arc;

use ilion_types::CqlType;

use crate::error::invalid;
use crate::{ClusteringOrder, Diff, Error, Keyspace, Properties, Schema, TableId, diff};

/// A statement that changes the schema. Types are resolved by the caller (see [`Keyspace::parse_type`]).
#[derive(Clone, Debug, PartialEq)]
pub enum SchemaChange {
    /// `CREATE KEYSPACE`
    CreateKeyspace {
        /// The keyspace.
        name: String,
        /// `replication` and `durable_writes`.
        properties: Properties,
        /// `IF NOT EXISTS`
        if_not_exists: bool,
    },
    /// `ALTER KEYSPACE`
    AlterKeyspace {
        /// The keyspace.
        name: String,
        /// What changes.
        properties: Properties,
        /// `IF EXISTS`
        if_exists: bool,
    },
    /// `DROP KEYSPACE`
    DropKeyspace {
        /// The keyspace.
        name: String,
        /// `IF EXISTS`
        if_exists: bool,
    },
    /// `CREATE TABLE`
    CreateTable(Box<CreateTable>),
    /// `CREATE TABLE new LIKE old`
    CopyTable(Box<CopyTable>),
    /// `ALTER TABLE`
    AlterTable {
        /// Its keyspace.
        keyspace: String,
        /// The table.
        table: String,
        /// `IF EXISTS`
        if_exists: bool,
        /// The change.
        alteration: TableAlteration,
    },
    /// `DROP TABLE`
    DropTable(DropObject),
    /// `CREATE TYPE`
    CreateType {
        /// Its keyspace.
        keyspace: String,
        /// The type.
        name: String,
        /// Names and types of its fields.
        fields: Vec<(String, CqlType)>,
        /// `IF NOT EXISTS`
        if_not_exists: bool,
    },
    /// `ALTER TYPE`
    AlterType {
        /// Its keyspace.
        keyspace: String,
        /// The type.
        name: String,
        /// `IF EXISTS`
        if_exists: bool,
        /// The change.
        alteration: TypeAlteration,
    },
    /// `DROP TYPE`
    DropType(DropObject),
    /// `CREATE INDEX`
    CreateIndex(Box<CreateIndex>),
    /// `DROP INDEX`
    DropIndex(DropObject),
    /// `CREATE MATERIALIZED VIEW`
    CreateView(Box<CreateView>),
    /// `ALTER MATERIALIZED VIEW`
    AlterView {
        /// Its keyspace.
        keyspace: String,
        /// The view.
        view: String,
        /// `IF EXISTS`
        if_exists: bool,
        /// `WITH`
        properties: Properties,
    },
    /// `DROP MATERIALIZED VIEW`
    DropView(DropObject),
    /// `CREATE FUNCTION`
    CreateFunction(Box<CreateFunction>),
    /// `DROP FUNCTION`
    DropFunction(DropFunction),
    /// `CREATE AGGREGATE`
    CreateAggregate(Box<CreateAggregate>),
    /// `DROP AGGREGATE`
    DropAggregate(DropFunction),
    /// `CREATE TRIGGER`
    CreateTrigger {
        /// Its keyspace.
        keyspace: String,
        /// Its table.
        table: String,
        /// The trigger.
        name: String,
        /// Class that would run.
        class: String,
        /// `IF NOT EXISTS`
        if_not_exists: bool,
    },
    /// `DROP TRIGGER`
    DropTrigger {
        /// Its keyspace.
        keyspace: String,
        /// Its table.
        table: String,
        /// The trigger.
        name: String,
        /// `IF EXISTS`
        if_exists: bool,
    },
}

/// `CREATE TABLE`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreateTable {
    /// Its keyspace.
    pub keyspace: String,
    /// The table.
    pub name: String,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The columns in the order of the text; a name may be there twice.
    pub columns: Vec<NewColumn>,
    /// Names of the partition key; empty if the statement had no primary key.
    pub partition_key: Vec<String>,
    /// Names of the clustering columns.
    pub clustering: Vec<String>,
    /// `CLUSTERING ORDER BY` as written.
    pub clustering_order: Vec<(String, ClusteringOrder)>,
    /// `COMPACT STORAGE`
    pub compact_storage: bool,
    /// `WITH`, perhaps with `id`.
    pub properties: Properties,
    /// Identity of the new table if `id` is not among the properties; made from the clock if absent.
    pub id: Option<TableId>,
}

/// A column of CREATE TABLE or ALTER TABLE ADD.
#[derive(Clone, Debug, PartialEq)]
pub struct NewColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: CqlType,
    /// `STATIC`
    pub is_static: bool,
}

/// `CREATE TABLE name LIKE source`
#[derive(Clone, Debug, PartialEq)]
pub struct CopyTable {
    /// Keyspace of the new table.
    pub keyspace: String,
    /// The new table.
    pub name: String,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// Keyspace of the table whose columns and options are taken.
    pub source_keyspace: String,
    /// The table whose columns and options are taken.
    pub source: String,
    /// `WITH`
    pub properties: Properties,
    /// Identity of the new table; made from the clock if absent.
    pub id: Option<TableId>,
}

/// What ALTER TABLE does.
#[derive(Clone, Debug, PartialEq)]
pub enum TableAlteration {
    /// `ADD`
    AddColumns {
        /// At least one.
        columns: Vec<NewColumn>,
        /// `ADD IF NOT EXISTS`
        if_not_exists: bool,
    },
    /// `DROP`
    DropColumns {
        /// At least one.
        columns: Vec<String>,
        /// `DROP IF EXISTS`
        if_exists: bool,
        /// `USING TIMESTAMP`
        timestamp_micros: Option<i64>,
    },
    /// `RENAME`
    RenameColumns {
        /// Old and new names.
        renames: Vec<(String, String)>,
        /// `RENAME IF EXISTS`
        if_exists: bool,
    },
    /// `ALTER column TYPE`, which is always refused.
    AlterColumnType,
    /// `DROP COMPACT STORAGE`
    DropCompactStorage,
    /// `WITH`
    Options(Properties),
}

/// What ALTER TYPE does.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeAlteration {
    /// `ADD`
    AddField {
        /// The field.
        name: String,
        /// Its type.
        ty: CqlType,
        /// `ADD IF NOT EXISTS`
        if_not_exists: bool,
    },
    /// `RENAME`
    RenameFields {
        /// Old and new names.
        renames: Vec<(String, String)>,
        /// `RENAME IF EXISTS`
        if_exists: bool,
    },
    /// `ALTER field TYPE`, which is always refused.
    AlterFieldType,
}

/// `DROP` of a table, type, index or view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropObject {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub name: String,
    /// `IF EXISTS`
    pub if_exists: bool,
}

/// `CREATE [CUSTOM] INDEX`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreateIndex {
    /// Its keyspace.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// The index; named after table and column if absent.
    pub name: Option<String>,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// `CUSTOM`
    pub is_custom: bool,
    /// `USING`
    pub class: Option<String>,
    /// What is indexed.
    pub targets: Vec<IndexTarget>,
    /// `WITH`, among them `options`.
    pub properties: Properties,
}

/// What an index is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexTarget {
    /// The column.
    pub column: String,
    /// Which part of it.
    pub part: IndexPart,
}

/// The parts of a column that can be indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexPart {
    /// The value; of an unfrozen collection its values.
    Simple,
    /// `values(c)`
    Values,
    /// `keys(c)`
    Keys,
    /// `entries(c)`
    Entries,
    /// `full(c)`
    Full,
}

/// `CREATE MATERIALIZED VIEW`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreateView {
    /// Its keyspace.
    pub keyspace: String,
    /// The view.
    pub name: String,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// Keyspace of the base table.
    pub base_keyspace: String,
    /// The base table.
    pub base: String,
    /// Selected columns; empty for `SELECT *`.
    pub selected: Vec<String>,
    /// The WHERE clause as CQL.
    pub where_clause: String,
    /// Columns with an `IS NOT NULL` in the WHERE clause.
    pub not_null: Vec<String>,
    /// Columns that the WHERE clause restricts otherwise.
    pub restricted: Vec<String>,
    /// Names of the partition key.
    pub partition_key: Vec<String>,
    /// Names of the clustering columns.
    pub clustering: Vec<String>,
    /// `CLUSTERING ORDER BY` as written.
    pub clustering_order: Vec<(String, ClusteringOrder)>,
    /// `WITH`
    pub properties: Properties,
    /// Identity of the view's table; made from the clock if absent.
    pub id: Option<TableId>,
}

/// `CREATE FUNCTION`
#[derive(Clone, Debug, PartialEq)]
pub struct CreateFunction {
    /// Its keyspace.
    pub keyspace: String,
    /// The function.
    pub name: String,
    /// Argument names and types.
    pub arguments: Vec<(String, CqlType)>,
    /// `RETURNS`
    pub return_type: CqlType,
    /// `CALLED ON NULL INPUT`
    pub called_on_null_input: bool,
    /// `LANGUAGE`
    pub language: String,
    /// `AS`
    pub body: String,
    /// `OR REPLACE`
    pub or_replace: bool,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
}

/// `CREATE AGGREGATE`
#[derive(Clone, Debug, PartialEq)]
pub struct CreateAggregate {
    /// Its keyspace.
    pub keyspace: String,
    /// The aggregate.
    pub name: String,
    /// Argument types.
    pub argument_types: Vec<CqlType>,
    /// `SFUNC`
    pub state_func: String,
    /// `STYPE`
    pub state_type: CqlType,
    /// `FINALFUNC`
    pub final_func: Option<String>,
    /// `INITCOND` as CQL.
    pub initcond: Option<String>,
    /// `OR REPLACE`
    pub or_replace: bool,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
}

/// `DROP FUNCTION` or `DROP AGGREGATE`
#[derive(Clone, Debug, PartialEq)]
pub struct DropFunction {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub name: String,
    /// Absent where the name alone tells which is meant.
    pub argument_types: Option<Vec<CqlType>>,
    /// `IF EXISTS`
    pub if_exists: bool,
}

/// What a change did.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The next schema; the old one's keyspaces are shared where they did not change.
    pub schema: Schema,
    /// What differs; empty if the change was a no-op.
    pub diffs: Vec<Diff>,
}

impl Schema {
    /// The schema after `change`. Pure: `now_micros` is the caller's clock (drop times, ids of new tables).
    ///
    /// # Errors
    /// The rules of CQL do not allow the change; messages and codes are Cassandra's.
    pub fn apply(&self, change: &SchemaChange, now_micros: i64) -> Result<Applied, Error> {
        self.permit(change)?;
        let schema = match self.next(change, now_micros)? {
            Some(schema) => schema,
            None => {
                return Ok(Applied {
                    schema: self.clone(),
                    diffs: Vec::new(),
                });
            }
        };
        let diffs = diff(self, &schema);
        if diffs.is_empty() {
            return Ok(Applied {
                schema: self.clone(),
                diffs,
            });
        }
        Ok(Applied {
            schema: schema.sealed(self.epoch + 1),
            diffs,
        })
    }

    /// The changed schema, or nothing if the change is a no-op by its `IF`.
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

    /// The keyspace that a statement works in.
    fn existing(&self, keyspace: &str) -> Result<&Arc<Keyspace>, Error> {
        match self.keyspace(keyspace) {
            Some(found) => Ok(found),
            None => invalid(format!("Keyspace '{keyspace}' doesn't exist")),
        }
    }

    /// This schema with one keyspace put in or replaced.
    fn with(&self, keyspace: Keyspace) -> Schema {
        let mut next = self.clone();
        next.keyspaces.insert(keyspace.name.clone(), Arc::new(keyspace));
        next
    }
}
