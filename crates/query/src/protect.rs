//! Tables that no client may write to: what the server keeps in them would no longer be true.

use ilion_schema::{LOCAL_KEYSPACES, TableSchema};

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

fn not_modifiable(table: &TableSchema) -> Error {
    Error::Unauthorized(format!("{} keyspace is not user-modifiable.", table.keyspace))
}
