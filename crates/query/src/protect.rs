//! Tables that no client may write to: what the server keeps in them would no longer be true, or what depends on them.

use ilion_schema::{LOCAL_KEYSPACES, TableSchema};

use crate::Error;
use crate::context::PlanContext;

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

/// Refuses changes that would leave an index behind: a data directory of somebody else may bring one of a class that is not known
/// here, and then nobody keeps it up to date.
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
