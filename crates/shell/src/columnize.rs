//! Names in columns, as many as fit. Compat: Python's `cmd.columnize`, which cqlsh uses.

/// Columns of the terminal that are used.
const LINE_WIDTH: usize = 80;

/// The names as lines, from top to bottom and then from left to right.
pub fn columnize(names: &[String]) -> Vec<String> {
    let Some(rows) = (1..=names.len()).find(|rows| total_width(names, *rows) <= LINE_WIDTH) else {
        return match names {
            [] => vec!["<empty>".to_owned()],
            _ => names.to_vec(),
        };
    };
    let widths = widths(names, rows);
    (0..rows)
        .map(|row| {
            let cells = names.iter().skip(row).step_by(rows).zip(&widths);
            let line: Vec<_> = cells.map(|(name, width)| format!("{name:<width$}")).collect();
            line.join("  ")
        })
        .collect()
}

/// The width of each column.
fn widths(names: &[String], rows: usize) -> Vec<usize> {
    let width = |column: &[String]| column.iter().map(|name| name.chars().count()).max();
    names.chunks(rows).filter_map(width).collect()
}

fn total_width(names: &[String], rows: usize) -> usize {
    let widths = widths(names, rows);
    widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::columnize;

    #[test]
    fn names_go_down_before_they_go_right() {
        let names: Vec<String> = (0..30).map(|number| format!("name{number}")).collect();
        let lines = columnize(&names);
        assert_eq!(lines.len(), 3);
        assert!(
            lines[0].starts_with("name0  name3  name6  name9   name12"),
            "{}",
            lines[0]
        );
        assert_eq!(columnize(&[]), ["<empty>"]);
        assert_eq!(columnize(&["a".to_owned()]), ["a"]);
    }
}
