//! `CREATE TABLE`, `ALTER TABLE`, and views, which share most clauses.

use super::{CqlTypeName, Direction, Identifier, Properties, QualifiedName, Relation, Selection, Term};

/// `CREATE TABLE`
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The table.
    pub table: QualifiedName,
    /// The columns, in the order of the text. The schema refuses repeated names.
    pub columns: Vec<ColumnDefinition>,
    /// `PRIMARY KEY`, from any place in the text.
    pub primary_key: Option<PrimaryKey>,
    /// `WITH CLUSTERING ORDER BY`, as written
    pub clustering_order: Vec<(Identifier, Direction)>,
    /// `WITH COMPACT STORAGE`
    pub compact_storage: bool,
    /// The other properties, including `id`.
    pub properties: Properties,
}

/// A column of a new table.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDefinition {
    /// Its name.
    pub name: Identifier,
    /// Its type.
    pub type_name: CqlTypeName,
    /// `STATIC`
    pub is_static: bool,
    /// `MASKED WITH`
    pub mask: Option<ColumnMask>,
}

/// `MASKED WITH function(arguments)`
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnMask {
    /// The masking function; `system.mask_default` for `MASKED WITH DEFAULT`.
    pub function: QualifiedName,
    /// Its arguments after the column itself.
    pub arguments: Vec<Term>,
}

/// `PRIMARY KEY ((a, b), c)`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrimaryKey {
    /// At least one column.
    pub partition_key: Vec<Identifier>,
    /// The clustering columns, in order.
    pub clustering: Vec<Identifier>,
}

/// `CREATE TABLE new LIKE old`
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTableLike {
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The new table.
    pub table: QualifiedName,
    /// The table whose structure is copied.
    pub source: QualifiedName,
    /// `WITH INDEXES`
    pub with_indexes: bool,
    /// Properties that differ from the source's.
    pub properties: Properties,
}

/// `ALTER TABLE`
#[derive(Clone, Debug, PartialEq)]
pub struct AlterTable {
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The table.
    pub table: QualifiedName,
    /// The change.
    pub change: TableChange,
}

/// The kinds of `ALTER TABLE`.
#[derive(Clone, Debug, PartialEq)]
pub enum TableChange {
    /// `ADD`
    AddColumns {
        /// `ADD IF NOT EXISTS`
        if_not_exists: bool,
        /// At least one.
        columns: Vec<ColumnDefinition>,
    },
    /// `DROP`
    DropColumns {
        /// `DROP IF EXISTS`
        if_exists: bool,
        /// At least one.
        columns: Vec<Identifier>,
        /// `USING TIMESTAMP`: the integer as written.
        timestamp_micros: Option<String>,
    },
    /// `RENAME a TO b AND c TO d`
    RenameColumns {
        /// `RENAME IF EXISTS`
        if_exists: bool,
        /// Old and new names, at least one pair.
        renames: Vec<(Identifier, Identifier)>,
    },
    /// `ALTER c TYPE t`, which Cassandra parses and then refuses
    AlterColumnType {
        /// The column.
        column: Identifier,
        /// The new type.
        type_name: CqlTypeName,
    },
    /// `ALTER c MASKED WITH ..` or `ALTER c DROP MASKED`
    AlterColumnMask {
        /// `ALTER IF EXISTS`
        if_exists: bool,
        /// The column.
        column: Identifier,
        /// The new mask; `None` to drop it.
        mask: Option<ColumnMask>,
    },
    /// `DROP COMPACT STORAGE`
    DropCompactStorage,
    /// `WITH`
    Properties(Properties),
}

/// `CREATE MATERIALIZED VIEW`
#[derive(Clone, Debug, PartialEq)]
pub struct CreateView {
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The view.
    pub view: QualifiedName,
    /// The columns of the view.
    pub selection: Selection,
    /// The base table.
    pub base: QualifiedName,
    /// `WHERE`; may be empty.
    pub relations: Vec<Relation>,
    /// `PRIMARY KEY`
    pub primary_key: PrimaryKey,
    /// `WITH CLUSTERING ORDER BY`, as written
    pub clustering_order: Vec<(Identifier, Direction)>,
    /// The other properties.
    pub properties: Properties,
}

/// `ALTER MATERIALIZED VIEW`
#[derive(Clone, Debug, PartialEq)]
pub struct AlterView {
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The view.
    pub view: QualifiedName,
    /// `WITH`
    pub properties: Properties,
}
