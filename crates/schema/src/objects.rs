//! The objects of a keyspace other than tables and user types: indexes, views, functions, aggregates, triggers.

use std::collections::BTreeMap;

use ilion_types::CqlType;

use crate::TableId;

/// The implementation of an index (`system_schema.indexes.kind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// `KEYS`, on compact tables.
    Keys,
    /// `COMPOSITES`, with a hidden table.
    Composites,
    /// `CUSTOM`; the options have the class name.
    Custom,
}

/// A secondary index definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexSchema {
    /// Its name, unique in the keyspace.
    pub name: String,
    /// The indexed table.
    pub table: String,
    /// The implementation.
    pub kind: IndexKind,
    /// Its options, always with `target`.
    pub options: BTreeMap<String, String>,
}

/// A materialized view definition.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewSchema {
    /// Its name.
    pub name: String,
    /// Base table.
    pub base_table: String,
    /// Base table's id.
    pub base_table_id: TableId,
    /// True for `SELECT *`.
    pub include_all_columns: bool,
    /// The WHERE clause as CQL.
    pub where_clause: String,
}

/// A user function definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionSchema {
    /// Its name.
    pub name: String,
    /// Argument names and types.
    pub arguments: Vec<(String, CqlType)>,
    /// Source text.
    pub body: String,
    /// `CALLED ON NULL INPUT`.
    pub called_on_null_input: bool,
    /// Language name.
    pub language: String,
    /// Return type.
    pub return_type: CqlType,
}

/// A user aggregate definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggregateSchema {
    /// Its name.
    pub name: String,
    /// Argument types.
    pub argument_types: Vec<CqlType>,
    /// State function.
    pub state_func: String,
    /// State type.
    pub state_type: CqlType,
    /// Final function.
    pub final_func: Option<String>,
    /// Initial state as a CQL literal.
    pub initcond: Option<String>,
    /// Return type.
    pub return_type: CqlType,
}

/// A trigger definition. It is only stored and described, never run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerSchema {
    /// Its name.
    pub name: String,
    /// Its table.
    pub table: String,
    /// Its options, always with `class`.
    pub options: BTreeMap<String, String>,
}
