//! Guardrails of timestamps in statements.

use super::check;
use crate::Error;
use crate::context::Execution;

const AHEAD: &str = "Timestamps too far in the future can lead to data that can't be easily overwritten";
const BEHIND: &str = "Timestamps too far in the past can cause writes can be unexpectedly lost";

/// Refuses a timestamp that is further from the clock than the operator allows.
///
/// # Errors
/// The timestamp is too far ahead or behind.
pub(crate) fn check_timestamp(
    timestamp_micros: i64,
    table: &str,
    execution: &Execution<'_>,
) -> Result<(), Error> {
    let limits = &execution.query_options.guardrails;
    if !limits.maximum_timestamp.is_set() && !limits.minimum_timestamp.is_set() {
        return Ok(());
    }
    let now_micros = execution.store.now_micros();
    let ahead = timestamp_micros.saturating_sub(now_micros).max(0).unsigned_abs();
    check(
        "maximum_timestamp",
        limits.maximum_timestamp,
        ahead,
        execution,
        |verdict, limit| {
            let last = now_micros.saturating_add_unsigned(limit);
            format!(
                "The modification to table {table} has a timestamp {timestamp_micros} after the maximum allowable {verdict} \
             threshold {last}. {AHEAD}"
            )
        },
    )?;
    let behind = now_micros.saturating_sub(timestamp_micros).max(0).unsigned_abs();
    check(
        "minimum_timestamp",
        limits.minimum_timestamp,
        behind,
        execution,
        |verdict, limit| {
            let first = now_micros.saturating_sub_unsigned(limit);
            format!(
                "The modification to table {table} has a timestamp {timestamp_micros} before the minimum allowable {verdict} \
             threshold {first}. {BEHIND}"
            )
        },
    )
}
