//! CREATE TABLE ... WITH COMPACT STORAGE: tables with the layout of Thrift.
//!
//! With clustering columns a table is dense: a row has one value, of type `Empty` if the statement does not name one. Without
//! clustering columns it is static: its columns are stored as static ones, and it has a clustering column and a value that CQL hides.
//!
//! Compat: `CreateTableStatement.validateCompactTable` and `fixupCompactTable` of Cassandra 5.0.

use std::collections::BTreeMap;

use ilion_types::CqlType;

use super::NewColumn;
use crate::error::invalid;
use crate::{ClusteringOrder, Error, TableBuilder};

/// Columns of a compact table by their role.
pub(super) struct CompactDraft<'a> {
    pub(super) clustering_count: usize,
    /// The columns outside of the key, by name.
    pub(super) columns: BTreeMap<&'a str, &'a NewColumn>,
    /// The names of all columns, including the key's.
    pub(super) names: Vec<&'a str>,
    pub(super) is_counter: bool,
}

impl CompactDraft<'_> {
    /// Refuses features that compact tables cannot have.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.columns.values().any(|column| column.ty.is_multi_cell()) {
            return invalid("Non-frozen collections and UDTs are not supported with COMPACT STORAGE");
        }
        if self.columns.values().any(|column| column.is_static) {
            return invalid("Static columns are not supported in COMPACT STORAGE tables");
        }
        if self.clustering_count == 0 {
            return match self.columns.is_empty() {
                true => invalid("No definition found that is not part of the PRIMARY KEY"),
                false => Ok(()),
            };
        }
        if self.columns.len() > 1 {
            let names: Vec<&str> = self.columns.keys().copied().collect();
            return invalid(format!(
                "COMPACT STORAGE with composite PRIMARY KEY allows no more than one column not part of the PRIMARY KEY \
                 (got: {})",
                names.join(", ")
            ));
        }
        Ok(())
    }

    /// `system_schema.tables.flags`.
    pub(super) fn flags(&self) -> Vec<String> {
        let flags = [
            ("compound", self.clustering_count > 1),
            ("counter", self.is_counter),
            ("dense", self.clustering_count > 0),
        ];
        let set = flags.into_iter().filter(|(_, is_set)| *is_set);
        set.map(|(flag, _)| flag.to_owned()).collect()
    }

    /// Adds the columns outside of the key.
    pub(super) fn add_columns(&self, mut builder: TableBuilder) -> TableBuilder {
        let is_dense = self.clustering_count > 0;
        for (name, column) in &self.columns {
            builder = match is_dense {
                true => builder.regular(*name, column.ty.clone()),
                false => builder.static_column(*name, column.ty.clone()),
            };
        }
        if is_dense && self.columns.is_empty() {
            return builder.regular(self.free_name("value"), CqlType::Empty);
        }
        if is_dense {
            return builder;
        }
        let value = match self.is_counter {
            true => CqlType::Counter,
            false => CqlType::Blob,
        };
        builder
            .clustering(self.free_name("column1"), CqlType::Text, ClusteringOrder::Asc)
            .regular(self.free_name("value"), value)
    }

    /// The wanted name; if a column has it, the name with the first free number after it.
    fn free_name(&self, wanted: &str) -> String {
        let stem = wanted.trim_end_matches('1');
        let numbered = (1_u32..).map(|number| format!("{stem}{number}"));
        let first = (wanted == stem).then(|| wanted.to_owned());
        let mut candidates = first.into_iter().chain(numbered);
        let is_free = |name: &String| !self.names.contains(&name.as_str());
        candidates.find(is_free).unwrap_or_else(|| wanted.to_owned())
    }
}
