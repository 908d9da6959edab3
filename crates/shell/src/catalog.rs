//! [`Catalog`]: the names of the schema, for completion.

use std::collections::{BTreeMap, BTreeSet};

use crate::shell::Shell;

/// The names of the schema.
#[derive(Debug, Default)]
pub struct Catalog {
    /// Keyspaces by name.
    pub keyspaces: BTreeMap<String, Names>,
    /// The keyspace of unqualified names.
    pub current: Option<String>,
}

/// The names of a keyspace.
#[derive(Debug, Default)]
pub struct Names {
    /// Tables and views, each with its columns.
    pub tables: BTreeMap<String, Vec<String>>,
    /// User types.
    pub types: BTreeSet<String>,
    /// Functions and aggregates.
    pub functions: BTreeSet<String>,
}

const COLUMNS: [&str; 2] = [
    "SELECT keyspace_name, table_name, column_name FROM system_schema.columns",
    "SELECT keyspace_name, table_name, column_name FROM system_virtual_schema.columns",
];
const TYPES: &str = "SELECT keyspace_name, type_name FROM system_schema.types";
const FUNCTIONS: [&str; 2] = [
    "SELECT keyspace_name, function_name FROM system_schema.functions",
    "SELECT keyspace_name, aggregate_name FROM system_schema.aggregates",
];

impl Shell<'_> {
    /// Reads the names of the schema. What the role may not read has no names.
    pub(crate) fn read_catalog(&mut self) -> Catalog {
        let mut catalog = Catalog {
            current: self.keyspace.clone(),
            ..Catalog::default()
        };
        for row in self.names("SELECT keyspace_name FROM system_schema.keyspaces") {
            if let [keyspace] = &row[..] {
                catalog.of(keyspace);
            }
        }
        for row in COLUMNS.into_iter().flat_map(|cql| self.names(cql)) {
            if let [keyspace, table, column] = &row[..] {
                let tables = &mut catalog.of(keyspace).tables;
                tables.entry(table.clone()).or_default().push(column.clone());
            }
        }
        for row in self.names(TYPES) {
            if let [keyspace, name] = &row[..] {
                catalog.of(keyspace).types.insert(name.clone());
            }
        }
        for row in FUNCTIONS.into_iter().flat_map(|cql| self.names(cql)) {
            if let [keyspace, name] = &row[..] {
                catalog.of(keyspace).functions.insert(name.clone());
            }
        }
        catalog
    }

    fn names(&mut self, cql: &str) -> Vec<Vec<String>> {
        self.ask(cql).unwrap_or_default()
    }
}

impl Catalog {
    fn of(&mut self, keyspace: &str) -> &mut Names {
        self.keyspaces.entry(keyspace.to_owned()).or_default()
    }

    /// The names of a keyspace, or of the current one.
    pub fn names(&self, keyspace: Option<&str>) -> Option<&Names> {
        self.keyspaces.get(keyspace.or(self.current.as_deref())?)
    }
}
