//! Output: tables for people, and JSON for programs.

use std::fmt::Write as _;
use std::path::Path;

use ilion_env::Env;
use serde::Serialize;

/// A table of text; the first line has the names of the columns.
#[derive(Debug, Default)]
pub struct Table(Vec<Vec<String>>);

impl Table {
    /// A table with these columns.
    pub fn new(columns: &[&str]) -> Self {
        Self(vec![columns.iter().map(|name| (*name).to_owned()).collect()])
    }

    /// Adds a line.
    pub fn line(&mut self, cells: Vec<String>) {
        self.0.push(cells);
    }

    /// Prints the table as Markdown, with aligned columns.
    pub fn print(&self) -> String {
        let count = self.0.first().map_or(0, Vec::len);
        let width = |column: usize| {
            self.0
                .iter()
                .filter_map(|line| line.get(column))
                .map(String::len)
                .max()
        };
        let widths: Vec<usize> = (0..count)
            .map(|column| width(column).unwrap_or(0).max(3))
            .collect();
        let mut out = String::new();
        for (index, line) in self.0.iter().enumerate() {
            for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
                let _ = match column {
                    0 => write!(out, "| {cell:<width$} |"),
                    _ => write!(out, " {cell:>width$} |"),
                };
            }
            out.push('\n');
            if index == 0 {
                for (column, width) in widths.iter().enumerate() {
                    let dashes = "-".repeat(*width);
                    out.push_str(&match column {
                        0 => format!("| {dashes} |"),
                        _ => format!(" {}: |", &dashes[1..]),
                    });
                }
                out.push('\n');
            }
        }
        out
    }
}

/// Prints a number with commas; numbers below 10 have two decimals.
pub fn number(value: f64) -> String {
    if value.abs() < 10.0 {
        return format!("{value:.2}");
    }
    let digits = format!("{value:.0}");
    let (sign, digits) = digits
        .strip_prefix('-')
        .map_or(("", &*digits), |rest| ("-", rest));
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    format!("{sign}{out}")
}

/// Prints the number; a dash for `None`.
pub fn number_or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), number)
}

/// Prints the table, and writes the report to the file of `--json`.
///
/// # Errors
/// The file cannot be written.
#[expect(clippy::print_stdout, reason = "the report is the product of this tool")]
pub fn publish(
    env: &dyn Env,
    text: &str,
    report: &impl Serialize,
    json: Option<&Path>,
) -> anyhow::Result<()> {
    println!("{text}");
    if let Some(path) = json {
        let mut document = serde_json::to_vec_pretty(report)?;
        document.push(b'\n');
        env.write_atomically(path, &document)?;
    }
    Ok(())
}

/// Prints a line about the progress to stderr.
#[expect(clippy::print_stderr, reason = "who waits for minutes wants to know")]
pub fn say(text: &str) {
    eprintln!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&["when", "points/s"]);
        table.line(vec!["straight after".to_owned(), number(1234567.0)]);
        assert_eq!(
            table.print(),
            "| when           |  points/s |\n| -------------- | --------: |\n| straight after | 1,234,567 |\n"
        );
    }

    #[test]
    fn numbers_have_commas_and_few_decimals() {
        let shown = [0.0, 9.996, 10.4, 999.0, 1000.0, -12345.6].map(number);
        assert_eq!(shown, ["0.00", "10.00", "10", "999", "1,000", "-12,346"]);
    }
}
