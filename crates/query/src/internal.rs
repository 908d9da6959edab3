//! Executes Ilion's own statements: this crate keeps state in tables of the server.

use std::cell::RefCell;

use bytes::Bytes;

use crate::context::{Execution, Sight};
use crate::planned::Planned;
use crate::term::functions::function_calls;
use crate::{Error, ExecuteOptions, Executed, Outcome, QueryOptions, ResultSet, Store, Value};

/// Executes a statement; returns the cells of its rows, row after row. Requires: its table has no view. Does nothing if the store
/// has no keyspace `system`.
///
/// # Errors
/// The store refused, or the statement is wrong, which is a bug.
pub(crate) fn run(
    store: &dyn Store,
    options: &QueryOptions,
    cql: &str,
    values: &[Value],
) -> Result<Vec<Option<Bytes>>, Error> {
    if store.schema().keyspace("system").is_none() {
        return Ok(Vec::new());
    }
    match execute(store, options, cql, values)?.outcome {
        Outcome::Rows(rows) => Ok(cells(&rows)),
        _ => Ok(Vec::new()),
    }
}

/// Like [`run`], but returns the whole answer, and fails if the table does not exist.
///
/// # Errors
/// As [`run`].
pub(crate) fn execute(
    store: &dyn Store,
    options: &QueryOptions,
    cql: &str,
    values: &[Value],
) -> Result<Executed, Error> {
    let schema = store.schema();
    // The operator's limits and permissions apply only to clients.
    let own = QueryOptions {
        access: crate::AccessOptions::default(),
        guardrails: crate::Guardrails::default(),
        batch_size_warn_bytes: 0,
        batch_size_fail_bytes: 0,
        ..options.clone()
    };
    let planned = Planned::of(cql, None, store, &own)?;
    let (execute_options, warnings) = (ExecuteOptions::default(), RefCell::default());
    let calls = function_calls(&own, None);
    let execution = Execution {
        store,
        schema: &schema,
        values,
        options: &execute_options,
        query_options: &own,
        now_secs: store.now_micros().div_euclid(1_000_000),
        warnings: &warnings,
        calls: &calls,
        patience: None,
        views: None,
        sight: Sight::Clear,
    };
    planned.plan.execute(&execution)
}

fn cells(rows: &ResultSet) -> Vec<Option<Bytes>> {
    let count = rows.columns.len() * rows.row_count as usize;
    let joined = rows.cells.clone().into_vec();
    let mut left = joined.as_slice();
    let mut cells = Vec::with_capacity(count);
    while cells.len() < count
        && let Some((len, rest)) = left.split_first_chunk::<4>()
    {
        let len = usize::try_from(i32::from_be_bytes(*len)).ok();
        let value = len.and_then(|len| rest.get(..len));
        left = value.map_or(rest, |value| &rest[value.len()..]);
        cells.push(value.map(Bytes::copy_from_slice));
    }
    cells
}

/// A text as a bound value.
pub(crate) fn text(text: &str) -> Value {
    Value::Bytes(Bytes::copy_from_slice(text.as_bytes()))
}
