//! Columns of `nodetool status` and `nodetool ring`.

use std::fmt::Write as _;

/// A table with two blanks between columns. Each row has as many cells as the first.
pub fn laid_out_wide(rows: &[Vec<String>]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let mut text = String::new();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            let end = match column + 1 == row.len() {
                true => "\n",
                false => "  ",
            };
            let _ = write!(text, "{cell:<width$}{end}", width = width(column));
        }
    }
    text
}

/// Appends a line of `nodetool ring`; `width` is the width of the addresses.
pub fn line_of(text: &mut String, width: usize, cells: [&str; 7]) {
    let [address, rack, status, state, load, owns, token] = cells;
    let _ = writeln!(
        text,
        "{address:<width$}  {rack:<12}{status:<7}{state:<8}{load:<16}{owns:<20}{token:<44}"
    );
}
