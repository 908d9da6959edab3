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

/// Refuses changes that would leave an index or view behind: a data directory of Cassandra's may bring them, and nobody
/// here keeps them up to date.
pub(crate) fn check_derived(table: &TableSchema, schema: &Schema) -> Result<(), Error> {
    let Some(keyspace) = schema.keyspace(&table.keyspace) else {
        return Ok(());
    };
    let index = keyspace.indexes_of(&table.name).map(|index| &index.name).next();
    let view = keyspace.views_of(&table.name).map(|view| &view.name).next();
    let (what, name) = match (index, view) {
        (None, None) => return Ok(()),
        (Some(index), _) => ("index", index),
        (None, Some(view)) => ("materialized view", view),
    };
    Err(Error::invalid(format!(
        "Cannot write to {}.{}: its {what} {name} would go stale, since Ilion does not maintain it yet; drop the {what} first",
        table.keyspace, table.name
    )))
}

fn not_modifiable(table: &TableSchema) -> Error {
    Error::Unauthorized(format!("{} keyspace is not user-modifiable.", table.keyspace))
}
