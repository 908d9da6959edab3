//! The whole schema as one immutable value.

use std::collections::BTreeMap;
use std::sync::Arc;

use ilion_types::{CqlType, UserType};
use uuid::Uuid;

use crate::version::RowDigests;
use crate::{Release, TableId, TableSchema};

/// All keyspaces, local ones (`system`, `system_schema`, virtual) included.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    /// By name.
    pub keyspaces: BTreeMap<String, Arc<Keyspace>>,
    /// Digest of the user's part; equal schemas have equal versions.
    pub version: Uuid,
    /// Counts changes in this process; used to find out of date prepared statements.
    pub epoch: u64,
    /// Which Cassandra must be able to read what is written.
    pub release: Release,
    /// Of all rows (`version`); a change adds and takes away what it changes.
    pub(crate) digests: RowDigests,
}

impl Schema {
    /// The keyspace of this name.
    pub fn keyspace(&self, name: &str) -> Option<&Arc<Keyspace>> {
        self.keyspaces.get(name)
    }

    /// The table of this name.
    pub fn table(&self, keyspace: &str, name: &str) -> Option<&Arc<TableSchema>> {
        self.keyspace(keyspace)?.tables.get(name)
    }

    /// The table with this id (walks all keyspaces; not for hot paths).
    pub fn table_by_id(&self, id: TableId) -> Option<&Arc<TableSchema>> {
        self.keyspaces
            .values()
            .flat_map(|keyspace| keyspace.tables.values())
            .find(|table| table.id == id)
    }
}

/// A keyspace. Views are listed in `tables` as well (kind `View`), with their definition in `views`.
#[derive(Clone, Debug, PartialEq)]
pub struct Keyspace {
    /// Its name.
    pub name: String,
    /// How it is replicated; kept as given, one node stores everything.
    pub replication: Replication,
    /// False: writes skip the commit log.
    pub durable_writes: bool,
    /// Tables by name.
    pub tables: BTreeMap<String, Arc<TableSchema>>,
    /// User types by name.
    pub types: BTreeMap<String, Arc<UserType>>,
    /// Indexes by name.
    pub indexes: BTreeMap<String, Arc<IndexSchema>>,
    /// Materialized views by name.
    pub views: BTreeMap<String, Arc<ViewSchema>>,
    /// User functions.
    pub functions: Vec<Arc<FunctionSchema>>,
    /// User aggregates.
    pub aggregates: Vec<Arc<AggregateSchema>>,
    /// Triggers.
    pub triggers: Vec<Arc<TriggerSchema>>,
}

impl Keyspace {
    /// An empty keyspace.
    pub fn new(name: impl Into<String>, replication: Replication, durable_writes: bool) -> Self {
        Self {
            name: name.into(),
            replication,
            durable_writes,
            tables: BTreeMap::new(),
            types: BTreeMap::new(),
            indexes: BTreeMap::new(),
            views: BTreeMap::new(),
            functions: Vec::new(),
            aggregates: Vec::new(),
            triggers: Vec::new(),
        }
    }
}

impl Keyspace {
    /// Reads a CQL type string whose user types are this keyspace's.
    ///
    /// # Errors
    /// It does not parse or names an unknown type.
    pub fn parse_type(&self, text: &str) -> Result<CqlType, ilion_types::Error> {
        CqlType::parse_cql(text, &self.name, &|name| self.types.get(name).cloned())
    }

    /// The indexes of a table.
    pub fn indexes_of<'a>(&'a self, table: &'a str) -> impl Iterator<Item = &'a Arc<IndexSchema>> {
        self.indexes.values().filter(move |index| index.table == table)
    }

    /// The views of a base table.
    pub fn views_of<'a>(&'a self, base: &'a str) -> impl Iterator<Item = &'a Arc<ViewSchema>> {
        self.views.values().filter(move |view| view.base_table == base)
    }
}

/// Replication options as in `system_schema.keyspaces.replication` (class with its full name).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replication {
    /// All options, `class` among them.
    pub options: BTreeMap<String, String>,
}

/// How an index is implemented (`system_schema.indexes.kind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// `KEYS`: of compact tables.
    Keys,
    /// `COMPOSITES`: the hidden table.
    Composites,
    /// `CUSTOM`: by class name in the options.
    Custom,
}

/// A secondary index definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexSchema {
    /// Its name, unique in the keyspace.
    pub name: String,
    /// Table that it is of.
    pub table: String,
    /// Kind.
    pub kind: IndexKind,
    /// Options; `target` always.
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
    /// `SELECT *` was used.
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

/// A trigger definition; kept for DESCRIBE, never run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerSchema {
    /// Its name.
    pub name: String,
    /// Table that it is on.
    pub table: String,
    /// Options; `class` always.
    pub options: BTreeMap<String, String>,
}
