//! Refuses writes of clients to tables on whose content the server or other tables depend.

use ilion_schema::{LOCAL_KEYSPACES, TableSchema};

use crate::Error;
use crate::context::PlanContext;

/// Refuses writes to the rows that hold the schema: only schema statements change them.
pub(crate) fn check_change(table: &TableSchema) -> Result<(), Error> {
    match table.keyspace.as_str() {
        "system_schema" => Err(not_modifiable(table)),
        _ => Ok(()),
    }
}

/// Refuses TRUNCATE of the server's own tables.
pub(crate) fn check_truncate(table: &TableSchema) -> Result<(), Error> {
    if LOCAL_KEYSPACES.contains(&table.keyspace.as_str()) {
        return Err(not_modifiable(table));
    }
    Ok(())
}

/// Refuses writes to a table with an index of an unknown class: nothing would keep that index up to date. A data directory of
/// Cassandra may have such indexes.
pub(crate) fn check_derived(table: &TableSchema, context: &PlanContext<'_>) -> Result<(), Error> {
    let keyspace = context.schema.keyspace(&table.keyspace);
    let mut indexes = keyspace
        .into_iter()
        .flat_map(|keyspace| keyspace.indexes_of(&table.name));
    let Some(first) = indexes.next() else {
        return Ok(());
    };
    let kept = context.store.indexes_of(table.id);
    let is_kept = |name: &str| {
        kept.iter()
            .any(|open| open.index.definition().schema.name == name)
    };
    match std::iter::once(first)
        .chain(indexes)
        .find(|index| !is_kept(&index.name))
    {
        None => Ok(()),
        Some(index) => Err(Error::invalid(format!(
            "Cannot write to {}.{}: its index {} would go stale, since Ilion does not maintain it; drop the index first",
            table.keyspace, table.name, index.name
        ))),
    }
}

fn not_modifiable(table: &TableSchema) -> Error {
    Error::Unauthorized(format!("{} keyspace is not user-modifiable.", table.keyspace))
}
