//! The row that an INSERT writes.

use ilion_schema::{Column, ColumnId, ColumnKind, TableSchema};

use super::condition::Condition;
use super::modify::Target;
use super::operation::Operations;
use crate::Error;
use crate::term::Term;

/// The primary key of an INSERT, from the terms of its columns in any order.
pub(super) fn target_of_values(
    table: &TableSchema,
    mut keys: Vec<(&Column, Term)>,
    operations: &Operations,
    condition: &Condition,
) -> Result<Target, Error> {
    let sets_clustering = keys
        .iter()
        .any(|(column, _)| column.kind == ColumnKind::Clustering);
    let keys_given: Vec<ColumnId> = keys.iter().map(|(column, _)| column.id).collect();
    let mut take = |columns: &mut dyn Iterator<Item = &Column>, what: &str| {
        let mut terms = Vec::new();
        let mut missing = Vec::new();
        for column in columns {
            match keys.iter().position(|(known, _)| known.id == column.id) {
                Some(index) => terms.push(keys.swap_remove(index).1),
                None => missing.push(column.name.as_str()),
            }
        }
        if missing.is_empty() {
            return Ok(terms);
        }
        Err(Error::Invalid(format!(
            "Some {what} are missing: {}",
            missing.join(", ")
        )))
    };
    let partition_key = take(&mut table.partition_key(), "partition key parts")?;
    let only_statics =
        operations.regular.is_empty() && !operations.statics.is_empty() && !condition.is_on_regular();
    let clustering = if only_statics && !sets_clustering && table.clustering().len() > 0 {
        None
    } else {
        let given = match table.is_compact() && !table.is_static_compact() {
            true => {
                check_leading(table, &keys_given)?;
                leading(table, &keys_given)
            }
            false => table.clustering().len(),
        };
        Some(take(&mut table.clustering().take(given), "clustering keys")?)
    };
    Ok(Target::Values {
        partition_key,
        clustering,
    })
}

/// The number of clustering columns up to the last one given; all of them if none is given. Compat: rows of dense compact tables may
/// lack values of the last columns.
fn leading(table: &TableSchema, given: &[ColumnId]) -> usize {
    let columns = table.clustering().enumerate();
    let last = columns.filter(|(_, column)| given.contains(&column.id)).last();
    last.map_or(table.clustering().len(), |(index, _)| index + 1)
}

/// Refuses a clustering column whose predecessor is not given, as in a WHERE.
fn check_leading(table: &TableSchema, given: &[ColumnId]) -> Result<(), Error> {
    let mut missing = None;
    for column in table.clustering() {
        match (given.contains(&column.id), missing) {
            (true, Some(before)) => {
                return Err(Error::Invalid(format!(
                    "PRIMARY KEY column \"{}\" cannot be restricted as preceding column \"{before}\" is not restricted",
                    column.name
                )));
            }
            (false, None) => missing = Some(column.name.as_str()),
            _ => {}
        }
    }
    Ok(())
}
