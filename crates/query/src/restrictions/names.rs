//! Columns as messages name them.

use ilion_schema::Column;

/// The names, separated by commas.
pub(super) fn names<'a>(columns: impl IntoIterator<Item = &'a Column>) -> String {
    let names: Vec<&str> = columns.into_iter().map(|column| column.name.as_str()).collect();
    names.join(", ")
}
