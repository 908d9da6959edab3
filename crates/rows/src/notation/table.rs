//! Tables for tests, written in one line.

use std::sync::Arc;

use ilion_schema::{ClusteringOrder, ColumnKind, TableBuilder, TableId, TableSchema};
use ilion_types::{CqlType, Uuid};

use super::NotationError;

/// Parses `k int pk, c int ck desc, s text static, v map<int, text>` (with or without `table` in front) as table `ks.t`. A
/// column without `pk`, `ck` or `static` is regular.
///
/// # Errors
/// An unknown type (user types are unknown here), or no column at all.
pub fn parse_table(text: &str) -> Result<Arc<TableSchema>, NotationError> {
    let text = text.trim();
    let text = text.strip_prefix("table ").unwrap_or(text);
    let mut table = TableBuilder::new("ks", "t", TableId(Uuid::from_u128(1)));
    let mut has_counters = false;
    for part in split_columns(text) {
        let column = part.trim();
        let error = |expected: String| NotationError {
            line: 1,
            column: column.as_ptr() as usize - text.as_ptr() as usize + 1,
            expected,
        };
        let (name, rest) = column
            .split_once(' ')
            .ok_or_else(|| error("a name and a type".to_owned()))?;
        let (rest, order) = match (rest.strip_suffix(" desc"), rest.strip_suffix(" asc")) {
            (Some(rest), _) => (rest, ClusteringOrder::Desc),
            (_, Some(rest)) => (rest, ClusteringOrder::Asc),
            _ => (rest, ClusteringOrder::Asc),
        };
        let (rest, kind) = [
            (" pk", ColumnKind::PartitionKey),
            (" ck", ColumnKind::Clustering),
            (" static", ColumnKind::Static),
        ]
        .into_iter()
        .find_map(|(suffix, kind)| Some((rest.strip_suffix(suffix)?, kind)))
        .unwrap_or((rest, ColumnKind::Regular));
        let ty = CqlType::parse_cql(rest, "ks", &|_| None).map_err(|reason| error(reason.to_string()))?;
        has_counters |= ty == CqlType::Counter;
        table = table.add(name.to_owned(), kind, ty, order);
    }
    if has_counters {
        table.flags.push("counter".to_owned());
    }
    Ok(table.build())
}

/// Splits at commas outside of `<...>`.
fn split_columns(text: &str) -> Vec<&str> {
    let mut depth = 0;
    text.split(|c: char| {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    })
    .collect()
}
