//! Tables of text, laid out as Cassandra's nodetool does it.

/// Lines of cells, each column as wide as its widest cell, with a line break after each.
pub fn laid_out(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let padded = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"));
        text.push_str(&padded.collect::<Vec<_>>().join(" "));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::laid_out;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["Pool Name", "Active"], ["requests", "12"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(laid_out(&rows), "Pool Name Active\nrequests  12    \n");
        assert_eq!(laid_out(&[]), "");
    }
}
