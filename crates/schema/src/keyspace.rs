//! The schema as one immutable value.

use std::collections::BTreeMap;
use std::sync::Arc;

use ilion_types::{CqlType, UserType};
use uuid::Uuid;

use crate::digests::RowDigests;
use crate::{
    AggregateSchema, FunctionSchema, IndexSchema, Release, TableId, TableSchema, TriggerSchema, ViewSchema,
};

/// All keyspaces, including the node's own (`system`, `system_schema`, virtual ones).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    /// By name.
    pub keyspaces: BTreeMap<String, Arc<Keyspace>>,
    /// Digest of all keyspaces except the node's own; equal schemas have equal versions.
    pub version: Uuid,
    /// Counts changes in this process; a prepared statement with an older epoch is planned again.
    pub epoch: u64,
    /// The oldest Cassandra release that must be able to read the files.
    pub release: Release,
    /// The digest behind `version`; a change subtracts the old rows and adds the new ones.
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

/// A keyspace. The table of a view is in `tables` (kind `View`), its definition in `views`.
#[derive(Clone, Debug, PartialEq)]
pub struct Keyspace {
    /// Its name.
    pub name: String,
    /// Its replication. A cluster places replicas by it; a single node has all data and only stores it.
    pub replication: Replication,
    /// If false, writes are not recorded in the commit log.
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
    /// Parses the CQL text of a type. User types are looked up in this keyspace.
    ///
    /// # Errors
    /// The text does not parse, or names an unknown type.
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
