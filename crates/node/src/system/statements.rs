//! `system_views.statements`: costs of statements by shape.

use bytes::Bytes;
use ilion_engine::VirtualRow;
use ilion_env::Count;

use crate::costs::{StatementFacts, Summary};
use crate::values::{bigint, cell, double, text};

/// One row per shape.
pub(super) fn statements(facts: &[StatementFacts]) -> Vec<VirtualRow> {
    facts.iter().map(row).collect()
}

fn row(facts: &StatementFacts) -> VirtualRow {
    let costs = &facts.costs;
    let mut cells = vec![
        cell("calls", bigint(costs.calls)),
        cell("errors", bigint(costs.errors)),
    ];
    let mut add = |name: String, value: Bytes| cells.push((name, Some(value)));
    for (name, summary, scale) in [
        ("latency_ms", costs.latency.summary(), 1e6),
        ("amplification", costs.amplification.summary(), 100.0),
    ] {
        for (suffix, value) in parts(&summary) {
            add(format!("{name}_{suffix}"), double(scaled(value, scale)));
        }
    }
    for (name, summary) in [
        ("disk_bytes", costs.disk_bytes.summary()),
        ("rows_scanned", costs.rows.summary()),
        ("tombstones_scanned", costs.tombstones.summary()),
    ] {
        for (suffix, value) in parts(&summary) {
            add(format!("{name}_{suffix}"), bigint(value));
        }
    }
    let io = &costs.total.io;
    add(
        "latency_ms_total".to_owned(),
        double(scaled(costs.latency.summary().sum, 1e6)),
    );
    add("disk_bytes_total".to_owned(), bigint(io.bytes_read));
    add("disk_reads_total".to_owned(), bigint(io.reads));
    add(
        "disk_wait_ms_total".to_owned(),
        double(scaled(io.read_nanos, 1e6)),
    );
    for count in Count::ALL {
        let amount = costs.total.of(count);
        match count.name().strip_suffix("_nanos") {
            Some(name) => add(format!("{name}_ms_total"), double(scaled(amount, 1e6))),
            None => add(format!("{}_total", count.name()), bigint(amount)),
        }
    }
    VirtualRow {
        partition_key: vec![text(&facts.shape.keyspace)],
        clustering: vec![text(&facts.shape.text)],
        cells,
    }
}

fn parts(summary: &Summary) -> [(&'static str, u64); 4] {
    [
        ("p50", summary.p50),
        ("p95", summary.p95),
        ("p99", summary.p99),
        ("max", summary.max),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "shown to people")]
fn scaled(value: u64, scale: f64) -> f64 {
    value as f64 / scale
}
