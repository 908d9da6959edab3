//! The rows of DESCRIBE and their columns.

use std::sync::Arc;

use ilion_schema::describe::{Element, ElementKind};
use ilion_types::{CqlType, quote_name};

use crate::ColumnSpec;

/// The cells of one row.
pub(super) struct DescribedRow(Vec<Vec<u8>>);

impl DescribedRow {
    pub(super) fn new(cells: Vec<Vec<u8>>) -> Self {
        Self(cells)
    }

    /// The row of an object without its CREATE statement.
    pub(super) fn of_name(keyspace: &str, kind: ElementKind, name: &str) -> Self {
        Self(vec![
            quote_name(keyspace).into_owned().into_bytes(),
            kind.name().into(),
            quoted_element(name).into_bytes(),
        ])
    }

    pub(super) fn of_element(keyspace: &str, element: Element) -> Self {
        let mut row = Self::of_name(keyspace, element.kind, &element.name);
        row.0.push(element.create_statement.into_bytes());
        row
    }

    /// Adds the cells in the form of the protocol.
    pub(super) fn append_to(&self, cells: &mut Vec<u8>) {
        for cell in &self.0 {
            let len = i32::try_from(cell.len()).unwrap_or(i32::MAX);
            cells.extend(len.to_be_bytes());
            cells.extend(cell);
        }
    }
}

/// Quotes the name, but not the argument types after the name of a function.
fn quoted_element(name: &str) -> String {
    match name.split_once('(') {
        Some((name, arguments)) => format!("{}({arguments}", quote_name(name)),
        None => quote_name(name).into_owned(),
    }
}

pub(super) fn listing_columns() -> Arc<[ColumnSpec]> {
    ["keyspace_name", "type", "name"].map(text_column).into()
}

pub(super) fn element_columns() -> Arc<[ColumnSpec]> {
    ["keyspace_name", "type", "name", "create_statement"]
        .map(text_column)
        .into()
}

pub(super) fn text_column(name: &str) -> ColumnSpec {
    column(name, CqlType::Text)
}

pub(super) fn column(name: &str, ty: CqlType) -> ColumnSpec {
    ColumnSpec {
        keyspace: "system".into(),
        table: "describe".into(),
        name: name.into(),
        ty,
    }
}
