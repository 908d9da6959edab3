//! The columns that an expression reads, found before types are resolved.

use ilion_cql::ast::{Selection, Selector};
use ilion_schema::{Column, TableSchema};

use crate::Error;
use crate::restrictions::relation::existing;

/// The columns that a selection reads, each once.
///
/// # Errors
/// The table does not have a column.
pub(super) fn columns_of(selection: &Selection, table: &TableSchema) -> Result<Vec<Column>, Error> {
    let mut columns = Vec::new();
    match selection {
        Selection::All => columns.extend(table.select_order().into_iter().cloned()),
        Selection::Items(items) => {
            for item in items {
                collect(&item.selector, table, &mut columns)?;
            }
        }
    }
    Ok(columns)
}

/// The columns that a selector reads, each once.
///
/// # Errors
/// The table does not have a column.
pub(super) fn columns_in(selector: &Selector, table: &TableSchema) -> Result<Vec<Column>, Error> {
    let mut columns = Vec::new();
    collect(selector, table, &mut columns)?;
    Ok(columns)
}

fn collect(selector: &Selector, table: &TableSchema, columns: &mut Vec<Column>) -> Result<(), Error> {
    match selector {
        Selector::Column(name) => {
            let column = existing(table, name)?;
            if columns.iter().all(|known| known.id != column.id) {
                columns.push(column.clone());
            }
            Ok(())
        }
        Selector::Literal(_) | Selector::Bind(_) | Selector::CountRows => Ok(()),
        Selector::Function { arguments: parts, .. }
        | Selector::List(parts)
        | Selector::Set(parts)
        | Selector::Tuple(parts) => parts.iter().try_for_each(|part| collect(part, table, columns)),
        Selector::Writetime(of)
        | Selector::MaxWritetime(of)
        | Selector::Ttl(of)
        | Selector::Negate(of)
        | Selector::Cast { selector: of, .. }
        | Selector::TypeHint { selector: of, .. }
        | Selector::Element { of, .. }
        | Selector::Slice { of, .. }
        | Selector::Field { of, .. } => collect(of, table, columns),
        Selector::Arithmetic { left, right, .. } => {
            collect(left, table, columns)?;
            collect(right, table, columns)
        }
        Selector::MapOrUserType(entries) => entries.iter().try_for_each(|(key, value)| {
            // A name before a colon may be the name of a field.
            let is_field = matches!(key, Selector::Column(name) if table.shown_named(name).is_none());
            if !is_field {
                collect(key, table, columns)?;
            }
            collect(value, table, columns)
        }),
    }
}
