//! Applies the mutations of a write, after the guardrails.

use ilion_rows::{DecoratedKey, Mutation};
use ilion_schema::{TableId, is_system_keyspace};

use crate::context::Execution;
use crate::guardrails;
use crate::{Error, Executed, Outcome, WriteType, views};

/// Applies the guardrails of writes.
///
/// # Errors
/// A value is too large, or the consistency level is not allowed.
pub(crate) fn check_written(mutations: &[Mutation], execution: &Execution<'_>) -> Result<(), Error> {
    if mutations
        .iter()
        .any(|mutation| !is_system_keyspace(&mutation.table.keyspace))
    {
        guardrails::check_write_level(execution.options.consistency, execution)?;
        guardrails::check_disk(execution)?;
    }
    guardrails::check_values(mutations, execution)
}

/// Applies mutations. `locked` are the partitions that the caller has locked.
///
/// # Errors
/// A guardrail or the store refuses the mutations.
pub(super) fn apply(
    execution: &Execution<'_>,
    mutations: Vec<Mutation>,
    locked: &[(TableId, DecoratedKey)],
    write_type: WriteType,
) -> Result<Executed, Error> {
    let mut executed = Executed::of(Outcome::Void);
    if !mutations.is_empty() {
        check_written(&mutations, execution)?;
        let awaited = views::apply(execution, mutations, locked, write_type)?;
        executed.awaited = awaited.map(|awaited| awaited.of(execution.options.consistency, write_type));
    }
    Ok(executed)
}
