//! Guardrails of the size of written values and collections. Of a collection only the part that the statement writes is measured.

use ilion_rows::{Cell, Data, Mutation};
use ilion_schema::is_system_keyspace;

use super::{Threshold, check, terms};
use crate::Error;
use crate::context::Execution;

/// Refuses values and collections above the operator's limits.
///
/// # Errors
/// A value or collection is too large.
pub(crate) fn check_values(mutations: &[Mutation], execution: &Execution<'_>) -> Result<(), Error> {
    terms::check(mutations, execution)?;
    let limits = &execution.query_options.guardrails;
    let all = [
        limits.column_value_size,
        limits.collection_size,
        limits.items_per_collection,
    ];
    if !all.iter().any(Threshold::is_set) {
        return Ok(());
    }
    for mutation in mutations
        .iter()
        .filter(|mutation| !is_system_keyspace(&mutation.table.keyspace))
    {
        let update = &mutation.update;
        for entry in update
            .rows
            .iter()
            .chain(&update.static_row)
            .flat_map(|row| &row.columns)
        {
            let name = mutation
                .table
                .column(entry.column)
                .map_or("", |column| column.name.as_str());
            check_column(name, &entry.data, execution)?;
        }
    }
    Ok(())
}

fn check_column(name: &str, data: &Data, execution: &Execution<'_>) -> Result<(), Error> {
    let limits = &execution.query_options.guardrails;
    let size_of = |cell: &Cell| cell.value.len() as u64;
    let value = |size: u64| {
        check(
            "column_value_size",
            limits.column_value_size,
            size,
            execution,
            |verdict, limit| {
                format!(
                    "Value of column '{name}' has size {size}, this exceeds the {verdict} threshold of {limit}."
                )
            },
        )
    };
    let complex = match data {
        Data::Simple(cell) => return value(size_of(cell)),
        Data::Complex(complex) => complex,
    };
    let live = complex.cells.iter().filter(|(_, cell)| !cell.is_tombstone());
    let (mut count, mut total) = (0_u64, 0_u64);
    for (path, cell) in live {
        value(size_of(cell))?;
        count += 1;
        total += path.len() as u64 + size_of(cell);
    }
    check(
        "collection_size",
        limits.collection_size,
        total,
        execution,
        |verdict, limit| {
            format!(
                "Detected collection {name} of size {total}, this exceeds the {verdict} threshold of {limit}."
            )
        },
    )?;
    check(
        "items_per_collection",
        limits.items_per_collection,
        count,
        execution,
        |verdict, limit| {
            format!(
                "Detected collection {name} with {count} items, this exceeds the {verdict} threshold of {limit}."
            )
        },
    )
}
