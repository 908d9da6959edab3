//! Whether the columns of an SSTable fit a table. Pure.

use ilion_schema::{ColumnKind, TableSchema, is_serialization_compatible};
use ilion_sstable::{HeaderColumn, Statistics};
use ilion_types::{CqlType, Partitioner};

/// Refuses an SSTable of another table: one with keys, clusterings or columns that this table does not have, or has with types
/// that cannot read them. Columns that the table has dropped are accepted.
pub(crate) fn check(
    statistics: &Statistics,
    table: &TableSchema,
    partitioner: Partitioner,
) -> Result<(), String> {
    check_partitioner(statistics, partitioner)?;
    let header = &statistics.header;
    let file = header.to_table("", "").map_err(|error| error.to_string())?;
    check_types(
        "partition key",
        file.partition_key().map(|column| (&column.ty, column.order)),
        table.partition_key().map(|column| (&column.ty, column.order)),
    )?;
    check_types(
        "clustering",
        file.clustering().map(|column| (&column.ty, column.order)),
        table.clustering().map(|column| (&column.ty, column.order)),
    )?;
    for column in &header.statics {
        check_column(column, ColumnKind::Static, table)?;
    }
    for column in &header.regulars {
        check_column(column, ColumnKind::Regular, table)?;
    }
    Ok(())
}

fn check_partitioner(statistics: &Statistics, partitioner: Partitioner) -> Result<(), String> {
    let Some(validation) = &statistics.validation else {
        return Err("Statistics.db does not say by which partitioner its keys are ordered".to_owned());
    };
    let of_file = Partitioner::from_class(&validation.partitioner).map_err(|error| error.to_string())?;
    if of_file != partitioner {
        return Err(format!(
            "its keys are ordered by {}, those of the table by {}",
            of_file.class_name(),
            partitioner.class_name()
        ));
    }
    Ok(())
}

/// Keys and clusterings must have the same values in the same order.
fn check_types<'t, O: PartialEq>(
    what: &str,
    file: impl Iterator<Item = (&'t CqlType, O)>,
    table: impl Iterator<Item = (&'t CqlType, O)>,
) -> Result<(), String> {
    let (file, table): (Vec<_>, Vec<_>) = (file.collect(), table.collect());
    let is_same = |a: &(&CqlType, O), b: &(&CqlType, O)| {
        a.1 == b.1 && is_serialization_compatible(a.0, b.0) && is_serialization_compatible(b.0, a.0)
    };
    if file.len() == table.len() && file.iter().zip(&table).all(|(a, b)| is_same(a, b)) {
        return Ok(());
    }
    let print = |types: &[(&CqlType, O)]| {
        let names: Vec<String> = types.iter().map(|(ty, _)| ty.to_string()).collect();
        names.join(", ")
    };
    let order = if print(&file) == print(&table) {
        ", in another order"
    } else {
        ""
    };
    Err(format!(
        "its {what} is ({}), that of the table ({}){order}",
        print(&file),
        print(&table)
    ))
}

fn check_column(column: &HeaderColumn, kind: ColumnKind, table: &TableSchema) -> Result<(), String> {
    let (name, ty) = (&column.name, &column.class.ty);
    let current = table.column_named(name).filter(|column| column.kind == kind);
    let dropped = table.dropped.get(name).filter(|column| column.kind == kind);
    let of_table = match (current, dropped) {
        (Some(column), _) => &column.ty,
        (None, Some(_)) => return Ok(()),
        (None, None) => {
            let word = match kind {
                ColumnKind::Static => "static column",
                _ => "column",
            };
            return Err(format!("the table has no {word} {name}, and has not dropped one"));
        }
    };
    if is_serialization_compatible(of_table, ty) {
        return Ok(());
    }
    Err(format!(
        "its column {name} is of type {ty}, that of the table of type {of_table}"
    ))
}
