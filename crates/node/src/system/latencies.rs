//! Tables of `system_views` about reads and writes: one row per table. Compat: `TableMetricTables`.

use ilion_engine::{Engine, TableDetails, VirtualRow};

use crate::costs::{Histogram, OperationKind, RecentRates, StatementCosts, TableCosts};
use crate::values::{bigint, cell, double, text};

/// Selects a histogram from the costs of a table.
pub(super) type Pick = fn(&TableCosts) -> Histogram;

/// Keyspace and name of each table.
type TableNames = Vec<(String, String)>;

/// All stored tables. Each gets a row, also a table without statements.
pub(super) fn stored(engine: &Engine) -> TableNames {
    let tables = engine.tables();
    let schemas = tables.iter().map(|store| store.schema());
    schemas
        .map(|table| (table.keyspace.clone(), table.name.clone()))
        .collect()
}

/// One row per table: latencies in milliseconds from the histogram that `of` selects, and statements of `kind` per second.
pub(super) fn latency(
    costs: &StatementCosts,
    rates: &RecentRates,
    tables: TableNames,
    of: Pick,
    kind: OperationKind,
) -> Vec<VirtualRow> {
    let mut rows = rows(costs, &tables, of, ["p50th_ms", "p99th_ms", "max_ms"], 1e6);
    for (name, row) in &mut rows {
        let rate = rates.of_table(name, kind);
        row.cells.push(cell("per_second", double(rate)));
    }
    rows.into_iter().map(|(_, row)| row).collect()
}

/// One row per table: counts from the histogram that `of` selects.
pub(super) fn count(costs: &StatementCosts, tables: TableNames, of: Pick) -> Vec<VirtualRow> {
    let rows = rows(costs, &tables, of, ["p50th", "p99th", "max"], 1.0);
    rows.into_iter().map(|(_, row)| row).collect()
}

fn rows(
    costs: &StatementCosts,
    tables: &TableNames,
    of: Pick,
    [p50, p99, max]: [&str; 3],
    unit: f64,
) -> Vec<((String, String), VirtualRow)> {
    let mut counted = costs.by_table();
    for name in tables {
        counted.entry(name.clone()).or_default();
    }
    let row = |(name, costs): ((String, String), TableCosts)| {
        let values = of(&costs);
        let summary = values.summary();
        #[expect(clippy::cast_precision_loss, reason = "shown to people")]
        let shown = |value: u64| double(value as f64 / unit);
        let row = VirtualRow {
            partition_key: vec![text(&name.0), text(&name.1)],
            clustering: Vec::new(),
            cells: vec![
                cell("count", bigint(values.count())),
                cell(p50, shown(summary.p50)),
                cell(p99, shown(summary.p99)),
                cell(max, shown(summary.max)),
            ],
        };
        (name, row)
    };
    counted.into_iter().map(row).collect()
}

/// `max_partition_size`: for each table, the size of its largest partition in one SSTable.
pub(super) fn max_partition_size(tables: &[TableDetails]) -> Vec<VirtualRow> {
    largest(tables, "mebibytes", |table| {
        let bytes = table.partition_bytes.percentile(1.0).unwrap_or(i64::MAX);
        u64::try_from(bytes).unwrap_or(0).div_ceil(1 << 20)
    })
}

/// `max_sstable_size`: for each table, the size of its largest SSTable.
pub(super) fn max_sstable_size(tables: &[TableDetails]) -> Vec<VirtualRow> {
    largest(tables, "mebibytes", |table| {
        table.sstable_bytes_max.div_ceil(1 << 20)
    })
}

/// `max_sstable_duration`: for each table, the longest time between the oldest and the newest data of one SSTable, in milliseconds.
pub(super) fn max_sstable_duration(tables: &[TableDetails]) -> Vec<VirtualRow> {
    largest(tables, "max_sstable_duration", |table| {
        table.sstable_duration_micros_max / 1000
    })
}

fn largest(tables: &[TableDetails], column: &str, of: fn(&TableDetails) -> u64) -> Vec<VirtualRow> {
    let row = |table: &TableDetails| VirtualRow {
        partition_key: vec![text(&table.facts.keyspace), text(&table.facts.table)],
        clustering: Vec::new(),
        cells: vec![cell(column, bigint(of(table)))],
    };
    tables.iter().map(row).collect()
}
