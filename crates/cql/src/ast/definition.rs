//! Definitions of keyspaces, user types, indexes and triggers, and their properties.

use super::{CqlTypeName, Identifier, QualifiedName};

/// `WITH a = 1 AND b = {'c': 'd'}`, in the order of the text. Names are unique.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties(pub Vec<(Identifier, PropertyValue)>);

impl Properties {
    /// The value of a property.
    pub fn find(&self, name: &str) -> Option<&PropertyValue> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// True if there are no properties.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The value of a property. As in Cassandra, numbers, booleans and words are text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PropertyValue {
    /// `'text'`, `0.1`, `true`, `NaN`, an unreserved keyword
    Text(String),
    /// `{'a': 1}`, keys and values as text. Keys are unique.
    Map(Vec<(String, String)>),
}

/// `CREATE KEYSPACE`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateKeyspace {
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The keyspace.
    pub keyspace: Identifier,
    /// `WITH`
    pub properties: Properties,
}

/// `ALTER KEYSPACE`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterKeyspace {
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The keyspace.
    pub keyspace: Identifier,
    /// `WITH`
    pub properties: Properties,
}

/// `DROP KEYSPACE`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropKeyspace {
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The keyspace.
    pub keyspace: Identifier,
}

/// `DROP` of a table, view, type or index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropObject {
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The object to drop.
    pub name: QualifiedName,
}

/// `CREATE TYPE`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateType {
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The type.
    pub name: QualifiedName,
    /// Names and types of the fields, at least one.
    pub fields: Vec<(Identifier, CqlTypeName)>,
}

/// `ALTER TYPE`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterType {
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The type.
    pub name: QualifiedName,
    /// The change.
    pub change: TypeChange,
}

/// The kinds of `ALTER TYPE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeChange {
    /// `ADD f t`
    AddField {
        /// `ADD IF NOT EXISTS`
        if_not_exists: bool,
        /// The new field.
        field: Identifier,
        /// Its type.
        type_name: CqlTypeName,
    },
    /// `RENAME a TO b AND c TO d`
    RenameFields {
        /// `RENAME IF EXISTS`
        if_exists: bool,
        /// Old and new names, at least one pair.
        renames: Vec<(Identifier, Identifier)>,
    },
    /// `ALTER f TYPE t`, which Cassandra parses and then refuses
    AlterField {
        /// The field.
        field: Identifier,
        /// The new type.
        type_name: CqlTypeName,
    },
}

/// `CREATE INDEX`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateIndex {
    /// `CREATE CUSTOM INDEX`
    pub is_custom: bool,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// `None` if the name is to be derived from table and column.
    pub name: Option<Identifier>,
    /// The table.
    pub table: QualifiedName,
    /// The indexed columns; may be empty for a custom index.
    pub targets: Vec<IndexTarget>,
    /// `USING 'class'`
    pub using: Option<String>,
    /// `WITH`, including `options`
    pub properties: Properties,
}

/// The target of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexTarget {
    /// The indexed part of the column.
    pub kind: IndexTargetKind,
    /// The column.
    pub column: Identifier,
}

/// The parts of a column that can be indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexTargetKind {
    /// `c`: the value, or the values of a collection
    Simple,
    /// `values(c)`
    Values,
    /// `keys(c)`
    Keys,
    /// `entries(c)`
    Entries,
    /// `full(c)`: a frozen collection as a whole
    Full,
}

/// `CREATE TRIGGER`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateTrigger {
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The trigger.
    pub name: Identifier,
    /// The table.
    pub table: QualifiedName,
    /// `USING 'class'`
    pub class: String,
}

/// `DROP TRIGGER`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropTrigger {
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The trigger.
    pub name: Identifier,
    /// The table.
    pub table: QualifiedName,
}
