//! Guardrails of the size of values in storage-attached indexes.
//!
//! Compat: `sai_string_term_size`, `sai_frozen_term_size` and `sai_vector_term_size` of Cassandra 5.0.

use ilion_rows::{Data, Mutation, Row};
use ilion_schema::{Column, ColumnKind, IndexPart, IndexSchema, TableSchema};
use ilion_types::CqlType;

use super::{Threshold, check as check_threshold};
use crate::Error;
use crate::context::Execution;

/// Refuses values above the operator's limits in columns with a storage-attached index.
///
/// # Errors
/// A value is too large.
pub(super) fn check(mutations: &[Mutation], execution: &Execution<'_>) -> Result<(), Error> {
    let limits = &execution.query_options.guardrails;
    let all = [
        limits.sai_string_term_size,
        limits.sai_frozen_term_size,
        limits.sai_vector_term_size,
    ];
    let Some(least) = all
        .iter()
        .flat_map(|limit| [limit.warn, limit.fail])
        .flatten()
        .min()
    else {
        return Ok(());
    };
    for mutation in mutations.iter().filter(|mutation| longest(mutation) > least) {
        let keyspace = execution.schema.keyspace(&mutation.table.keyspace);
        let indexes = keyspace
            .into_iter()
            .flat_map(|keyspace| keyspace.indexes_of(&mutation.table.name));
        for index in indexes.filter(|index| index.is_storage_attached()) {
            check_index(index, mutation, execution)?;
        }
    }
    Ok(())
}

/// The length in bytes of the longest part of a mutation: a value or path of a cell, a clustering value, or the whole partition key.
fn longest(mutation: &Mutation) -> u64 {
    let update = &mutation.update;
    let rows = update.rows.iter().chain(&update.static_row);
    let of_row = |row: &Row| {
        let values = row.clustering.values().iter().flatten().map(|value| value.len());
        let cells = row.columns.iter().map(|entry| match &entry.data {
            Data::Simple(cell) => cell.value.len(),
            Data::Complex(complex) => {
                let lens = complex
                    .cells
                    .iter()
                    .map(|(path, cell)| path.len().max(cell.value.len()));
                lens.max().unwrap_or(0)
            }
        });
        values.chain(cells).max().unwrap_or(0)
    };
    rows.map(of_row)
        .chain([mutation.key.key.len()])
        .max()
        .unwrap_or(0) as u64
}

fn check_index(index: &IndexSchema, mutation: &Mutation, execution: &Execution<'_>) -> Result<(), Error> {
    let table = &mutation.table;
    let Some((name, part)) = index.target() else {
        return Ok(());
    };
    let Some(column) = table.column_named(&name) else {
        return Ok(());
    };
    let Some(limit) = limit_of(column, part, execution) else {
        return Ok(());
    };
    let update = &mutation.update;
    let mut result = Ok(());
    for row in update.rows.iter().chain(&update.static_row) {
        each_len(table, column, part, row, &mut |len| {
            if result.is_ok() {
                result = check_term(&name, limit, len, execution);
            }
        });
    }
    result
}

/// The limit for the values of a column.
fn limit_of(
    column: &Column,
    part: IndexPart,
    execution: &Execution<'_>,
) -> Option<(&'static str, Threshold)> {
    let limits = &execution.query_options.guardrails;
    let ty = match (&column.ty, part) {
        (CqlType::Map { key, .. }, IndexPart::Keys) => &**key,
        (CqlType::Map { value, .. }, IndexPart::Values) => &**value,
        (CqlType::List { element, .. } | CqlType::Set { element, .. }, IndexPart::Values) => &**element,
        (ty, _) => ty,
    };
    match ty {
        CqlType::Text | CqlType::Ascii => Some(("sai_string_term_size", limits.sai_string_term_size)),
        CqlType::Vector { .. } => Some(("sai_vector_term_size", limits.sai_vector_term_size)),
        CqlType::Tuple(_) | CqlType::Udt { .. } => {
            Some(("sai_frozen_term_size", limits.sai_frozen_term_size))
        }
        ty if ty.is_collection() => Some(("sai_frozen_term_size", limits.sai_frozen_term_size)),
        _ => None,
    }
}

fn each_len(table: &TableSchema, column: &Column, part: IndexPart, row: &Row, take: &mut dyn FnMut(usize)) {
    if column.kind == ColumnKind::Clustering && table.clustering().len() > 0 {
        let value = row.clustering.values().get(usize::from(column.position));
        if let Some(Some(value)) = value {
            take(value.len());
        }
    }
    match row.column(column.id) {
        None => {}
        Some(Data::Simple(cell)) => take(cell.value.len()),
        Some(Data::Complex(complex)) => {
            let is_set = matches!(column.ty, CqlType::Set { .. });
            for (path, cell) in complex.cells.iter().filter(|(_, cell)| !cell.is_tombstone()) {
                take(match part {
                    IndexPart::Keys => path.len(),
                    IndexPart::Entries => path.len() + cell.value.len(),
                    _ if is_set => path.len(),
                    _ => cell.value.len(),
                });
            }
        }
    }
}

fn check_term(
    column: &str,
    (name, limit): (&str, Threshold),
    len: usize,
    execution: &Execution<'_>,
) -> Result<(), Error> {
    check_threshold(name, limit, len as u64, execution, |verdict, limit| {
        format!("Value of column '{column}' has size {len}, this exceeds the {verdict} threshold of {limit}.")
    })
}
