//! `system_views` about reads and writes of tables, as Cassandra has them: one row a table that statements were about.
//!
//! Compat: `TableMetricTables`; rates of the last minute are not kept, and null.

use bytes::Bytes;
use ilion_engine::{TableDetails, VirtualRow};

use super::values::{bigint, double, text};
use crate::costs::{Histogram, StatementCosts, TableCosts};

/// Times in milliseconds of what `of` picks.
pub(super) fn latency(costs: &StatementCosts, of: fn(&TableCosts) -> &Histogram) -> Vec<VirtualRow> {
    let names = ["p50th_ms", "p99th_ms", "max_ms"];
    rows(costs, of, names, 1e6)
}

/// Tombstones that reads met.
pub(super) fn tombstones_per_read(costs: &StatementCosts) -> Vec<VirtualRow> {
    rows(
        costs,
        |table| &table.reads.tombstones,
        ["p50th", "p99th", "max"],
        1.0,
    )
}

fn rows(
    costs: &StatementCosts,
    of: fn(&TableCosts) -> &Histogram,
    [p50, p99, max]: [&str; 3],
    unit: f64,
) -> Vec<VirtualRow> {
    let tables = costs.by_table().into_iter();
    let counted = tables.filter(|(_, costs)| of(costs).count() > 0);
    let row = |((keyspace, table), costs): ((String, String), TableCosts)| {
        let values = of(&costs);
        let summary = values.summary();
        #[expect(clippy::cast_precision_loss, reason = "shown to people")]
        let shown = |value: u64| double(value as f64 / unit);
        let cell = |name: &str, value: Bytes| (name.to_owned(), Some(value));
        VirtualRow {
            partition_key: vec![text(&keyspace), text(&table)],
            clustering: Vec::new(),
            cells: vec![
                cell("count", bigint(values.count())),
                cell(p50, shown(summary.p50)),
                cell(p99, shown(summary.p99)),
                cell(max, shown(summary.max)),
            ],
        }
    };
    counted.map(row).collect()
}

/// The largest partition of each table in SSTables.
pub(super) fn max_partition_size(tables: &[TableDetails]) -> Vec<VirtualRow> {
    let row = |table: &TableDetails| {
        let bytes = table.partition_bytes.percentile(1.0).unwrap_or(i64::MAX);
        let mebibytes = u64::try_from(bytes).unwrap_or(0).div_ceil(1 << 20);
        VirtualRow {
            partition_key: vec![text(&table.facts.keyspace), text(&table.facts.table)],
            clustering: Vec::new(),
            cells: vec![("mebibytes".to_owned(), Some(bigint(mebibytes)))],
        }
    };
    tables
        .iter()
        .filter(|table| table.facts.sstables > 0)
        .map(row)
        .collect()
}
