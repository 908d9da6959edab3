//! Where the files of tables are: `nodetool datapaths` and `getsstables`.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use ilion_engine::Engine;
use ilion_schema::TableSchema;
use ilion_types::{encode_composite, hex};
use serde::{Deserialize, Serialize};

use super::AdminError;
use super::handling::failed;

/// Selects the tables of a [`DataPathsReport`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct DataPathsOrder {
    /// `keyspace` or `keyspace.table`, one per line; an empty text selects all tables.
    #[serde(default)]
    pub tables: String,
}

/// The directories of tables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataPathsReport {
    /// Directory by table, in a map by keyspace.
    pub keyspaces: BTreeMap<String, BTreeMap<String, String>>,
}

impl DataPathsOrder {
    pub(super) fn report(&self, engine: &Engine) -> Result<DataPathsReport, AdminError> {
        let mut wanted: Vec<(&str, bool)> = self
            .tables
            .lines()
            .filter(|name| !name.is_empty())
            .map(|name| (name, false))
            .collect();
        let mut report = DataPathsReport::default();
        // Compat: the hidden table of an index is `table.index`.
        for store in engine.all_tables() {
            let table = store.schema();
            let whole = format!("{}.{}", table.keyspace, table.name);
            let mut is_chosen = wanted.is_empty();
            for (name, is_found) in &mut wanted {
                let is_it = *name == table.keyspace || *name == whole;
                *is_found |= is_it;
                is_chosen |= is_it;
            }
            if is_chosen {
                let tables = report.keyspaces.entry(table.keyspace.clone()).or_default();
                tables.insert(table.name.clone(), store.directory().display().to_string());
            }
        }
        match wanted.iter().find(|(_, is_found)| !is_found) {
            None => Ok(report),
            Some((name, _)) => Err(AdminError::Refused(format!(
                "{name} is no keyspace and no table with files"
            ))),
        }
    }
}

/// Compat: the layout of `nodetool datapaths`.
impl fmt::Display for DataPathsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        for (keyspace, tables) in &self.keyspaces {
            lines.push(format!("Keyspace: {keyspace}"));
            for (table, path) in tables {
                lines.push(format!("\tTable: {table}\n\tPaths:\n\t\t{path}\n"));
            }
        }
        f.write_str(&lines.join("\n"))
    }
}

/// Selects the partition of an [`SSTablesReport`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct SSTablesOrder {
    /// The table's keyspace.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// The partition key as text; parts of a composite one separated by colons.
    pub key: String,
    /// Whether the key is hexadecimal.
    #[serde(default)]
    pub hex: bool,
}

/// Paths of Data.db of SSTables that may have a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SSTablesReport {
    /// The paths, those of the newest SSTables first.
    pub sstables: Vec<String>,
    /// The token of the partition.
    #[serde(default)]
    pub token: String,
}

impl SSTablesOrder {
    pub(super) fn report(&self, engine: &Engine) -> Result<SSTablesReport, AdminError> {
        let schema = engine.schema();
        let table = schema.table(&self.keyspace, &self.table).ok_or_else(|| {
            AdminError::Refused(format!("table {}.{} does not exist", self.keyspace, self.table))
        })?;
        let key = match self.hex {
            true => hex::parse(&self.key)
                .map(Bytes::from)
                .ok_or_else(|| AdminError::Refused(format!("{} is not hexadecimal", self.key)))?,
            false => key_of(table, &self.key)?,
        };
        let paths = engine.sstables_with(table.id, &key).map_err(failed)?;
        Ok(SSTablesReport {
            token: table.partitioner(engine.partitioner()).token(&key).to_string(),
            sstables: paths.into_iter().map(|path| path.display().to_string()).collect(),
        })
    }
}

impl fmt::Display for SSTablesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sstables.join("\n"))
    }
}

/// Parses a partition key.
pub(super) fn key_of(table: &TableSchema, text: &str) -> Result<Bytes, AdminError> {
    let columns: Vec<_> = table.partition_key().collect();
    let parts: Vec<&str> = match columns.len() {
        1 => vec![text],
        _ => text.split(':').collect(),
    };
    if parts.len() != columns.len() {
        return Err(AdminError::Refused(format!(
            "{text}: the key has {} components, joined by colons",
            columns.len()
        )));
    }
    let mut values = Vec::with_capacity(parts.len());
    for (column, part) in columns.iter().zip(parts) {
        let value = column.ty.parse_plain(part);
        values.push(value.map_err(|error| AdminError::Refused(format!("{part}: {error}")))?);
    }
    if let [only] = &mut values[..] {
        return Ok(std::mem::take(only).into());
    }
    let mut key = Vec::new();
    encode_composite(values.iter().map(Vec::as_slice), &mut key)
        .map_err(|error| AdminError::Refused(error.to_string()))?;
    Ok(key.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_laid_out_as_by_nodetool() {
        let table = |name: &str| (name.to_owned(), format!("/data/ks/{name}-1"));
        let report = DataPathsReport {
            keyspaces: [("ks".to_owned(), [table("a"), table("b")].into())].into(),
        };
        let expected = "Keyspace: ks\n\tTable: a\n\tPaths:\n\t\t/data/ks/a-1\n\n\tTable: b\n\tPaths:\n\t\t/data/ks/b-1\n";
        assert_eq!(report.to_string(), expected);
    }
}
