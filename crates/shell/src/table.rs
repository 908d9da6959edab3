//! Rows as a table, or one value a line. Compat: as cqlsh prints them.

use std::io;

use crate::cell::Cell;
use crate::output::Output;

/// Rows to print.
pub struct Table {
    /// The names of the columns.
    pub names: Vec<Cell>,
    /// The rows; each has one cell for each column.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Prints aligned columns.
    pub fn print(&self, with_header: bool, out: &mut Output<'_>) -> io::Result<()> {
        let widths = self.widths();
        if with_header || self.rows.is_empty() {
            let cells = self.names.iter().zip(&widths);
            let names: Vec<_> = cells
                .map(|(cell, width)| format!("{}{}", out.paint(cell), blanks(cell, *width)))
                .collect();
            out.result(format!(" {}", names.join(" | ")).trim_end())?;
            let dashes: Vec<_> = widths.iter().map(|width| "-".repeat(*width)).collect();
            out.result(&format!("-{}-", dashes.join("-+-")))?;
        }
        for row in &self.rows {
            let cells = row.iter().zip(&widths);
            let values: Vec<_> = cells
                .map(|(cell, width)| format!("{}{}", blanks(cell, *width), out.paint(cell)))
                .collect();
            out.result(&format!(" {}", values.join(" | ")))?;
        }
        if self.rows.is_empty() {
            out.result("")?;
        }
        Ok(())
    }

    /// Prints one value a line; `rows_before` rows were printed before.
    pub fn print_expanded(&self, rows_before: usize, out: &mut Output<'_>) -> io::Result<()> {
        if self.rows.is_empty() {
            return self.print(true, out);
        }
        let name_width = width_of(&self.names);
        let value_width = self
            .rows
            .iter()
            .map(|row| width_of(row))
            .max()
            .unwrap_or_default();
        for (index, row) in self.rows.iter().enumerate() {
            out.result(&format!("@ Row {}", rows_before + index + 1))?;
            let (left, right) = ("-".repeat(name_width), "-".repeat(value_width));
            out.result(&format!("-{left}-+-{right}-"))?;
            for (name, cell) in self.names.iter().zip(row) {
                let gap = blanks(name, name_width);
                out.result(&format!(" {}{gap} | {}", out.paint(name), out.paint(cell)))?;
            }
            out.result("")?;
        }
        Ok(())
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.names.iter().map(|cell| cell.width).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width);
            }
        }
        widths
    }
}

fn width_of(cells: &[Cell]) -> usize {
    cells.iter().map(|cell| cell.width).max().unwrap_or_default()
}

fn blanks(cell: &Cell, width: usize) -> String {
    " ".repeat(width.saturating_sub(cell.width))
}
