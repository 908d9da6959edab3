//! The options after `WITH` of tables and views, one per line.

use std::collections::BTreeMap;

use ilion_types::{hex, quote_name};

use super::{Internals, map_literal, quoted};
use crate::options::java_double::java_double;
use crate::{ClusteringOrder, TableKind, TableOptions, TableSchema};

/// The text between `WITH ` and `;`.
pub(super) fn with_clause(table: &TableSchema, internals: Internals) -> String {
    let mut lines = Vec::new();
    if table.is_compact() {
        lines.push("COMPACT STORAGE".to_owned());
    }
    if internals == Internals::Shown {
        lines.push(format!("ID = {}", table.id));
    }
    let order: Vec<String> = table
        .clustering()
        .map(|column| {
            let direction = if column.order == ClusteringOrder::Desc {
                "DESC"
            } else {
                "ASC"
            };
            format!("{} {direction}", quote_name(&column.name))
        })
        .collect();
    if !order.is_empty() {
        lines.push(format!("CLUSTERING ORDER BY ({})", order.join(", ")));
    }
    match table.kind {
        TableKind::Virtual => lines.push(format!("comment = {}", quoted(&table.options.comment))),
        kind => lines.extend(option_lines(&table.options, kind)),
    }
    lines.join("\n    AND ")
}

fn option_lines(options: &TableOptions, kind: TableKind) -> Vec<String> {
    let extensions: Vec<String> = options
        .extensions
        .iter()
        .map(|(name, value)| format!("{}: 0x{}", quoted(name), hex::print(value)))
        .collect();
    let line = |name: &str, value: String| format!("{name} = {value}");
    let map = |map: &BTreeMap<String, String>| map_literal(map);
    let mut lines = vec![
        line(
            "additional_write_policy",
            quoted(&options.additional_write_policy),
        ),
        line("allow_auto_snapshot", options.allow_auto_snapshot.to_string()),
        line(
            "bloom_filter_fp_chance",
            java_double(options.bloom_filter_fp_chance),
        ),
        line("caching", map(&options.caching.to_map())),
        line("cdc", options.cdc.to_string()),
        line("comment", quoted(&options.comment)),
        line("compaction", map(&options.compaction)),
        line("compression", map(&options.compression_map())),
        line("memtable", quoted(&options.memtable)),
        line("crc_check_chance", java_double(options.crc_check_chance)),
    ];
    if kind != TableKind::View {
        lines.push(line(
            "default_time_to_live",
            options.default_time_to_live_secs.to_string(),
        ));
    }
    lines.extend([
        line("extensions", format!("{{{}}}", extensions.join(", "))),
        line("gc_grace_seconds", options.gc_grace_secs.to_string()),
        line("incremental_backups", options.incremental_backups.to_string()),
        line("max_index_interval", options.max_index_interval.to_string()),
        line(
            "memtable_flush_period_in_ms",
            options.memtable_flush_period_ms.to_string(),
        ),
        line("min_index_interval", options.min_index_interval.to_string()),
        line("read_repair", quoted(&options.read_repair)),
        line("speculative_retry", quoted(&options.speculative_retry)),
    ]);
    lines
}
