//! Tables that no client may write to: what the server keeps in them would no longer be true, or what depends on them.

use ilion_schema::{LOCAL_KEYSPACES, Schema, TableSchema};

use crate::Error;

/// Refuses changes of the rows that hold the schema: they are for schema statements.
pub(crate) fn check_change(table: &TableSchema) -> Result<(), Error> {
    match table.keyspace.as_str() {
        "system_schema" => Err(not_modifiable(table)),
        _ => Ok(()),
    }
}

/// Refuses to empty tables of the server itself.
pub(crate) fn check_truncate(table: &TableSchema) -> Result<(), Error> {
    if LOCAL_KEYSPACES.contains(&table.keyspace.as_str()) {
        return Err(not_modifiable(table));
    }
    Ok(())
}

/// Refuses changes that would leave an index behind: a data directory of Cassandra's may bring one, and nobody here keeps it
/// up to date.
pub(crate) fn check_derived(table: &TableSchema, schema: &Schema) -> Result<(), Error> {
    let keyspace = schema.keyspace(&table.keyspace);
    let index = keyspace.and_then(|keyspace| keyspace.indexes_of(&table.name).next());
    match index {
        None => Ok(()),
        Some(index) => Err(Error::invalid(format!(
            "Cannot write to {}.{}: its index {} would go stale, since Ilion does not maintain it yet; drop the index first",
            table.keyspace, table.name, index.name
        ))),
    }
}

fn not_modifiable(table: &TableSchema) -> Error {
    Error::Unauthorized(format!("{} keyspace is not user-modifiable.", table.keyspace))
}
