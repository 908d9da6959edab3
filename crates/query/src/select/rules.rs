//! The rules of a SELECT beyond its WHERE. Pure.

use ilion_cql::ast;
use ilion_schema::{Column, ColumnKind, TableSchema};

use super::group_by::GroupBy;
use super::selection::Selection;
use crate::Error;
use crate::context::PlanContext;
use crate::guardrails::ensure;
use crate::restrictions::Restrictions;

/// Marks the plan as forbidden if the statement has ALLOW FILTERING or GROUP BY and the operator has switched that off.
pub(super) fn note_forbidden(ast: &ast::Select, context: &PlanContext<'_>) {
    if ast.allow_filtering && !context.options.allow_filtering {
        context.forbid(Err(Error::invalid(
            "Guardrail allow_filtering violated: Querying with ALLOW FILTERING is not allowed. ALLOW FILTERING can \
             potentially visit all the data in the table and have unpredictable performance.",
        )));
    }
    if !ast.group_by.is_empty() {
        let is_enabled = context.options.guardrails.group_by_enabled;
        context.forbid(ensure("group_by", is_enabled, "GROUP BY functionality"));
    }
}

/// Refuses PER PARTITION LIMIT with DISTINCT, which has one row per partition.
pub(super) fn check_distinct_limit(ast: &ast::Select) -> Result<(), Error> {
    if ast.distinct && ast.per_partition_limit.is_some() {
        return Err(Error::invalid(
            "PER PARTITION LIMIT is not allowed with SELECT DISTINCT queries",
        ));
    }
    Ok(())
}

const DISTINCT_BY_ROWS: &str =
    "SELECT DISTINCT with WHERE clause only supports restriction by partition key and/or static columns.";

/// Refuses DISTINCT with an order by nearness. Compat: such an order counts as a restriction.
pub(super) fn check_distinct_order(is_by_nearness: bool) -> Result<(), Error> {
    match is_by_nearness {
        true => Err(Error::invalid(DISTINCT_BY_ROWS)),
        false => Ok(()),
    }
}

/// Refuses DISTINCT of anything but the partition key and static columns.
pub(super) fn check_distinct(
    table: &TableSchema,
    selected: &[Column],
    restrictions: &Restrictions,
    ordering: &[ast::Ordering],
) -> Result<(), Error> {
    if restrictions.restricts_clustering() || restrictions.restricts_regular() {
        return Err(Error::invalid(DISTINCT_BY_ROWS));
    }
    // Compat: the columns by which rows are sorted count as selected.
    let sorted_by = ordering.iter().filter(|_| restrictions.has_key_in());
    let sorted_by = sorted_by.filter_map(|ordering| table.shown_named(&ordering.column));
    for column in selected.iter().chain(sorted_by) {
        if !matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Static) {
            return Err(Error::invalid(format!(
                "SELECT DISTINCT queries must only request partition key columns and/or static columns (not {})",
                column.name
            )));
        }
    }
    if restrictions.is_by_key() {
        return Ok(());
    }
    for column in table.partition_key() {
        if selected.iter().all(|selected| selected.id != column.id) {
            return Err(Error::invalid(format!(
                "SELECT DISTINCT queries must request all the partition key columns (missing {})",
                column.name
            )));
        }
    }
    Ok(())
}

/// Refuses PER PARTITION LIMIT with aggregates, whose answer is one row.
pub(super) fn check_limits(
    ast: &ast::Select,
    selection: &Selection,
    group_by: Option<&GroupBy>,
) -> Result<(), Error> {
    if ast.per_partition_limit.is_none() {
        return Ok(());
    }
    if selection.is_aggregate() && group_by.is_none() {
        return Err(Error::invalid(
            "PER PARTITION LIMIT is not allowed with aggregate queries.",
        ));
    }
    Ok(())
}
