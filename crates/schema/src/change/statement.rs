//! The content of a statement: [`SchemaChange`] and its parts. These types check no rules.

use ilion_types::CqlType;
use serde::{Deserialize, Serialize};

use crate::{ClusteringOrder, ColumnMask, Properties, TableId};

/// A statement that changes the schema. Types are resolved by the caller (see [`crate::Keyspace::parse_type`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
        /// The changed properties.
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
        /// The class; it is never run.
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

impl SchemaChange {
    /// Sets the id of a new table, unless it has one: in a cluster, replicas must not choose the id themselves.
    pub fn give_id(&mut self, new: impl FnOnce() -> TableId) {
        let id = match self {
            Self::CreateTable(create) => &mut create.id,
            Self::CopyTable(copy) => &mut copy.id,
            _ => return,
        };
        id.get_or_insert_with(new);
    }
}

/// `CREATE TABLE`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateTable {
    /// Its keyspace.
    pub keyspace: String,
    /// The table.
    pub name: String,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The columns, in the order of the text; may repeat a name.
    pub columns: Vec<NewColumn>,
    /// Names of the partition key; empty if the statement has no primary key.
    pub partition_key: Vec<String>,
    /// Names of the clustering columns.
    pub clustering: Vec<String>,
    /// `CLUSTERING ORDER BY` as written.
    pub clustering_order: Vec<(String, ClusteringOrder)>,
    /// `COMPACT STORAGE`
    pub compact_storage: bool,
    /// `WITH`, possibly with `id`.
    pub properties: Properties,
    /// Id of the new table if `id` is not among the properties; derived from the clock if `None`.
    pub id: Option<TableId>,
}

/// A column of CREATE TABLE or ALTER TABLE ADD.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: CqlType,
    /// `STATIC`
    pub is_static: bool,
    /// `MASKED WITH`
    pub mask: Option<ColumnMask>,
}

/// `CREATE TABLE name LIKE source`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopyTable {
    /// Keyspace of the new table.
    pub keyspace: String,
    /// The new table.
    pub name: String,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// Keyspace of the source table.
    pub source_keyspace: String,
    /// The table whose columns and options are copied.
    pub source: String,
    /// `WITH`
    pub properties: Properties,
    /// Id of the new table; derived from the clock if `None`.
    pub id: Option<TableId>,
}

/// The kinds of ALTER TABLE.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
    /// `ALTER column MASKED WITH` and `ALTER column DROP MASKED`
    MaskColumn {
        /// The column.
        column: String,
        /// `ALTER IF EXISTS`
        if_exists: bool,
        /// The new mask; `None` removes it.
        mask: Option<ColumnMask>,
    },
    /// `DROP COMPACT STORAGE`
    DropCompactStorage,
    /// `WITH`
    Options(Properties),
}

/// The kinds of ALTER TYPE.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DropObject {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub name: String,
    /// `IF EXISTS`
    pub if_exists: bool,
}

/// `CREATE [CUSTOM] INDEX`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateIndex {
    /// Its keyspace.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// The index; named after table and column if `None`.
    pub name: Option<String>,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// `CUSTOM`
    pub is_custom: bool,
    /// `USING`
    pub class: Option<String>,
    /// The indexed columns, each with its part.
    pub targets: Vec<IndexTarget>,
    /// `WITH`, including `options`.
    pub properties: Properties,
}

/// The target of an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexTarget {
    /// The column.
    pub column: String,
    /// The indexed part.
    pub part: IndexPart,
}

/// The parts of a column that can be indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IndexPart {
    /// The value; for an unfrozen collection, its values.
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
    /// `CLUSTERING ORDER BY`, as written.
    pub clustering_order: Vec<(String, ClusteringOrder)>,
    /// `WITH`
    pub properties: Properties,
    /// Id of the view's table; derived from the clock if `None`.
    pub id: Option<TableId>,
}

/// `CREATE FUNCTION`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DropFunction {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub name: String,
    /// The argument types; `None` if the statement has none: then only one function or aggregate may have the name.
    pub argument_types: Option<Vec<CqlType>>,
    /// `IF EXISTS`
    pub if_exists: bool,
}
