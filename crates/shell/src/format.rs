//! [`Format`]: how rows are printed, and printing a page of them.

use std::io;

use ilion_protocol::{ColumnSpec, Rows};
use ilion_types::json;

use crate::cell::Cell;
use crate::columnar::Kind;
use crate::csv::Dialect;
use crate::output::Output;
use crate::table::Table;

/// How rows are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Aligned columns.
    #[default]
    Table,
    /// One value a line.
    Vertical,
    /// One JSON object a line.
    Json,
    /// Comma-separated values, with the names of the columns first.
    Csv,
    /// A Parquet file, which holds one result.
    Parquet,
    /// An Arrow file (IPC, Feather V2), which holds one result.
    Arrow,
}

impl Format {
    /// The kind of file, if rows become a file that holds one result.
    pub fn columnar(self) -> Option<Kind> {
        match self {
            Self::Parquet => Some(Kind::Parquet),
            Self::Arrow => Some(Kind::Arrow),
            _ => None,
        }
    }
}

/// What was printed of a result before.
#[derive(Clone, Copy)]
pub struct Before {
    /// Rows of earlier pages.
    pub rows: usize,
    /// True if the names of the columns are printed again.
    pub with_header: bool,
}

/// Prints a page of rows.
pub fn print_page(format: Format, rows: &Rows, before: Before, out: &mut Output<'_>) -> io::Result<()> {
    let columns = rows.metadata.columns.as_deref().unwrap_or_default();
    match format {
        Format::Table => table_of(rows, columns).print(before.with_header, out),
        Format::Vertical => table_of(rows, columns).print_expanded(before.rows, out),
        Format::Json => rows
            .rows()
            .try_for_each(|row| out.result(&json_line(columns, &row))),
        Format::Parquet | Format::Arrow => Err(io::Error::other("a page is no file")),
        Format::Csv => {
            if before.rows == 0 && before.with_header {
                let names = columns.iter().map(|column| &*column.name);
                out.result(Dialect::COMMON.line(names).trim_end())?;
            }
            rows.rows().try_for_each(|row| {
                let cells = row
                    .iter()
                    .zip(columns)
                    .map(|(bytes, column)| csv_value(column, *bytes));
                let cells: Vec<String> = cells.collect();
                let line = Dialect::COMMON.line(cells.iter().map(String::as_str));
                out.result(line.strip_suffix('\n').unwrap_or(&line))
            })
        }
    }
}

/// The rows as a table.
pub fn table_of(rows: &Rows, columns: &[ColumnSpec]) -> Table {
    let cells = |row: Vec<Option<&[u8]>>| {
        let cells = row.iter().zip(columns);
        cells
            .map(|(bytes, column)| Cell::of_value(&column.cql_type, *bytes))
            .collect()
    };
    Table {
        names: columns.iter().map(|column| Cell::of_name(&column.name)).collect(),
        rows: rows.rows().map(cells).collect(),
    }
}

fn json_line(columns: &[ColumnSpec], row: &[Option<&[u8]>]) -> String {
    let mut line = String::from("{");
    for (index, (bytes, column)) in row.iter().zip(columns).enumerate() {
        if index > 0 {
            line.push_str(", ");
        }
        json::print_string(&column.name, &mut line);
        line.push_str(": ");
        let value = bytes.and_then(|bytes| column.cql_type.print_json(bytes).ok());
        line.push_str(value.as_deref().unwrap_or("null"));
    }
    line.push('}');
    line
}

/// A value for CSV files; null is empty.
fn csv_value(column: &ColumnSpec, bytes: Option<&[u8]>) -> String {
    bytes.map_or_else(String::new, |bytes| csv_text(column, bytes))
}

fn csv_text(column: &ColumnSpec, bytes: &[u8]) -> String {
    match &column.cql_type {
        ilion_types::CqlType::Ascii | ilion_types::CqlType::Text => {
            String::from_utf8_lossy(bytes).into_owned()
        }
        other => Cell::of_value(other, Some(bytes)).text,
    }
}
