//! Statistics of tables: `nodetool tablestats`, `tablehistograms`, `statusautocompaction`, `toppartitions`, `viewbuildstatus`.

use std::fmt::Write as _;

use ilion_server::admin::{
    NodeReport, Percentiles, TableStats, TableStatsReport, ThresholdsReport, TopPartitionReport,
    TopPartitionsReport, file_size, laid_out,
};
use serde_json::{Value, json};

use super::call::{Call, missing_keyspace};
use super::node::running;
use crate::Failure;
use crate::ask::say;
use crate::bar::while_time_passes;

/// Prints statistics.
pub fn stats(call: &Call) -> Result<(), Failure> {
    let mut report: TableStatsReport = call.get("table-stats", &[])?;
    choose(&mut report, &call.values, call.has("--ignore"))?;
    match call.option("--format") {
        None => say(&stats_of(&report, call.has("--human-readable"))),
        Some("json") => {
            let text = serde_json::to_string_pretty(&as_json(&report));
            say(&text.map_err(Failure::of)?);
        }
        Some("yaml") => return Err(Failure::nodetool("-F yaml is not built: json is")),
        Some(_) => {
            return Err(Failure::nodetool("arguments for -F are json,yaml only."));
        }
    }
    Ok(())
}

/// Keeps the named tables; if `are_ignored`, all others. A name is `keyspace` or `keyspace.table`.
fn choose(report: &mut TableStatsReport, names: &[String], are_ignored: bool) -> Result<(), Failure> {
    for name in names {
        let (keyspace, table) = name
            .split_once('.')
            .map_or((&**name, None), |(k, t)| (k, Some(t)));
        let mut of_keyspace = report.tables.iter().filter(|known| known.keyspace == keyspace);
        match table {
            // Compat: messages of `TableStats`.
            None if of_keyspace.next().is_none() => {
                return Err(Failure::nodetool(format!("Unknown keyspace: {name}")));
            }
            Some(table) if !of_keyspace.any(|known| known.table == table) => {
                return Err(Failure::nodetool(format!("Unknown table: {name}")));
            }
            _ => {}
        }
    }
    if !names.is_empty() {
        report.tables.retain(|known| {
            let is_named = names.iter().any(|name| {
                *name == known.keyspace || *name == format!("{}.{}", known.keyspace, known.table)
            });
            is_named != are_ignored
        });
    }
    Ok(())
}

/// The tables of each keyspace, one keyspace after the other.
fn by_keyspace(report: &TableStatsReport) -> impl Iterator<Item = &[TableStats]> {
    report.tables.chunk_by(|a, b| a.keyspace == b.keyspace)
}

/// Number and mean latency in milliseconds of all reads or writes (`of` chooses) on the tables of a keyspace.
#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn together(tables: &[TableStats], of: fn(&TableStats) -> (u64, &Percentiles)) -> (u64, f64) {
    let count: u64 = tables.iter().map(|table| of(table).0).sum();
    let micros: f64 = tables
        .iter()
        .map(|table| of(table).0 as f64 * of(table).1.mean)
        .sum();
    (count, micros / count as f64 / 1000.0)
}

fn reads(table: &TableStats) -> (u64, &Percentiles) {
    (table.reads, &table.read_micros)
}

fn writes(table: &TableStats) -> (u64, &Percentiles) {
    (table.writes, &table.write_micros)
}

/// Leaves out lines for which Ilion has no figure: heap, Bloom filters, repairs.
fn stats_of(report: &TableStatsReport, is_for_people: bool) -> String {
    let mut text = format!(
        "Total number of tables: {}\n----------------\n",
        report.tables.len()
    );
    for tables in by_keyspace(report) {
        let keyspace = tables.first().map_or("", |table| &table.keyspace);
        let ((reads, read_millis), (writes, write_millis)) =
            (together(tables, reads), together(tables, writes));
        let _ = writeln!(
            text,
            "Keyspace: {keyspace}\n\tRead Count: {reads}\n\tRead Latency: {} ms\n\tWrite Count: {writes}\n\
             \tWrite Latency: {} ms",
            plain(read_millis),
            plain(write_millis)
        );
        for table in tables {
            let name = match table.table.contains('.') {
                true => "Table (index)",
                false => "Table",
            };
            let _ = writeln!(text, "\t\t{name}: {}", table.table);
            for (name, value) in lines(table, is_for_people) {
                let _ = writeln!(text, "\t\t{name}: {value}");
            }
            text.push('\n');
        }
        text.push_str("----------------\n");
    }
    text.pop();
    text
}

fn plain(number: f64) -> String {
    match number.is_nan() {
        true => "NaN".to_owned(),
        false => format!("{:.3}", number),
    }
}

fn millis(count: u64, latency: &Percentiles) -> String {
    match count {
        0 => "NaN ms".to_owned(),
        _ => format!("{:.3} ms", latency.mean / 1000.0),
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn lines(table: &TableStats, is_for_people: bool) -> Vec<(&'static str, String)> {
    let size = |bytes: u64| match is_for_people {
        true => file_size(bytes),
        false => bytes.to_string(),
    };
    let partition = |bytes: f64| match table.sstables {
        0 => "0".to_owned(),
        _ => format!("{bytes:.0}"),
    };
    let mean = |count: u64, values: &Percentiles| match count {
        0 => "NaN".to_owned(),
        _ => format!("{:?}", values.mean),
    };
    let mut lines = vec![
        ("SSTable count", table.sstables.to_string()),
        (
            "Max SSTable size",
            file_size(table.sstable_bytes_max).replace(' ', ""),
        ),
    ];
    if !table.sstables_in_levels.is_empty() {
        lines.push((
            "SSTables in each level",
            format!("{:?}", table.sstables_in_levels),
        ));
    }
    let ratio = table.reads as f64 / table.writes.max(1) as f64;
    lines.extend([
        ("Space used (live)", size(table.sstable_bytes)),
        ("Space used by snapshots (total)", size(table.snapshots_bytes)),
        (
            "SSTable Compression Ratio",
            format!("{:.5}", table.compression_ratio.unwrap_or(-1.0)),
        ),
        (
            "Number of partitions (estimate)",
            table.estimated_partitions.to_string(),
        ),
        ("Memtable data size", size(table.memtable_bytes)),
        ("Local read count", table.reads.to_string()),
        ("Local read latency", millis(table.reads, &table.read_micros)),
        ("Local write count", table.writes.to_string()),
        ("Local write latency", millis(table.writes, &table.write_micros)),
        ("Local read/write ratio", format!("{ratio:.5}")),
        (
            "Compacted partition minimum bytes",
            partition(table.partition_bytes.min),
        ),
        (
            "Compacted partition maximum bytes",
            partition(table.partition_bytes.max),
        ),
        (
            "Compacted partition mean bytes",
            partition(table.partition_bytes.mean),
        ),
        (
            "Average live cells per slice (last five minutes)",
            mean(table.reads, &table.rows_per_read),
        ),
        (
            "Maximum live cells per slice (last five minutes)",
            format!("{:.0}", table.rows_per_read.max),
        ),
        (
            "Average tombstones per slice (last five minutes)",
            mean(table.reads, &table.tombstones_per_read),
        ),
        (
            "Maximum tombstones per slice (last five minutes)",
            format!("{:.0}", table.tombstones_per_read.max),
        ),
        (
            "Droppable tombstone ratio",
            format!("{:.5}", table.droppable_tombstones),
        ),
    ]);
    lines
}

/// Compat: the names of fields are those of `StatsKeyspace` and `StatsTable`.
fn as_json(report: &TableStatsReport) -> Value {
    let mut all = serde_json::Map::new();
    all.insert("total_number_of_tables".to_owned(), json!(report.tables.len()));
    for tables in by_keyspace(report) {
        let ((reads, read_millis), (writes, write_millis)) =
            (together(tables, reads), together(tables, writes));
        let of_table = |table: &TableStats| {
            json!({
                "sstable_count": table.sstables,
                "max_sstable_size": table.sstable_bytes_max,
                "sstables_in_each_level": table.sstables_in_levels,
                "space_used_live": table.sstable_bytes.to_string(),
                "space_used_by_snapshots_total": table.snapshots_bytes.to_string(),
                "sstable_compression_ratio": table.compression_ratio.unwrap_or(-1.0),
                "number_of_partitions_estimate": table.estimated_partitions,
                "memtable_data_size": table.memtable_bytes.to_string(),
                "local_read_count": table.reads,
                "local_read_latency_ms": plain(table.read_micros.mean / 1000.0),
                "local_write_count": table.writes,
                "local_write_latency_ms": plain(table.write_micros.mean / 1000.0),
                "compacted_partition_minimum_bytes": table.partition_bytes.min,
                "compacted_partition_maximum_bytes": table.partition_bytes.max,
                "compacted_partition_mean_bytes": table.partition_bytes.mean,
                "maximum_live_cells_per_slice_last_five_minutes": table.rows_per_read.max,
                "maximum_tombstones_per_slice_last_five_minutes": table.tombstones_per_read.max,
                "droppable_tombstone_ratio": format!("{:.5}", table.droppable_tombstones),
            })
        };
        let of_tables: serde_json::Map<String, Value> = tables
            .iter()
            .map(|table| (table.table.clone(), of_table(table)))
            .collect();
        let keyspace = tables.first().map_or("", |table| &table.keyspace);
        // A mean of no values is null.
        let of_keyspace = json!({
            "read_count": reads,
            "read_latency_ms": read_millis,
            "write_count": writes,
            "write_latency_ms": write_millis,
            "tables": of_tables,
        });
        all.insert(keyspace.to_owned(), of_keyspace);
    }
    Value::Object(all)
}

/// Prints percentiles.
pub fn histograms(call: &Call) -> Result<(), Failure> {
    let name = match (call.value(0), call.value(1)) {
        (None, _) => None,
        (Some(name), None) => Some(name.split_once('.').ok_or_else(|| {
            // Compat: the message of `TableHistograms`.
            Failure::nodetool(
                "tablehistograms requires <keyspace> <table> or <keyspace.table> format argument.",
            )
        })?),
        (Some(keyspace), Some(table)) => Some((keyspace, table)),
    };
    let mut report: TableStatsReport = call.get("table-stats", &[])?;
    if let Some((keyspace, table)) = name {
        report
            .tables
            .retain(|known| known.keyspace == keyspace && known.table == table);
        if report.tables.is_empty() {
            return Err(Failure::nodetool(format!("Unknown table: {keyspace}.{table}")));
        }
    }
    let texts: Vec<String> = report.tables.iter().map(histograms_of).collect();
    say(&texts.join("\n"));
    Ok(())
}

fn histograms_of(table: &TableStats) -> String {
    let mut text = format!("{}/{} histograms\n", table.keyspace, table.table);
    let _ = writeln!(
        text,
        "{:<10}{:>18}{:>18}{:>18}{:>18}{:>18}",
        "Percentile", "Read Latency", "Write Latency", "SSTables", "Partition Size", "Cell Count"
    );
    let _ = writeln!(
        text,
        "{:<10}{:>18}{:>18}{:>18}{:>18}{:>18}",
        "", "(micros)", "(micros)", "", "(bytes)", ""
    );
    let columns = [
        &table.read_micros,
        &table.write_micros,
        &table.sstables_per_read,
        &table.partition_bytes,
        &table.cells,
    ];
    let columns = columns.map(Percentiles::all);
    for row in 0..columns[0].len() {
        let [reads, writes, sstables, bytes, cells] = columns.map(|column| column[row].1);
        let name = columns[0][row].0;
        let _ = writeln!(
            text,
            "{name:<10}{reads:>18.2}{writes:>18.2}{sstables:>18.2}{bytes:>18.0}{cells:>18.0}"
        );
    }
    text
}

/// Prints whether automatic compaction is on.
pub fn status_autocompaction(call: &Call) -> Result<(), Failure> {
    let node: NodeReport = call.get("node", &[])?;
    let keyspace = call.value(0);
    let names = call.values.get(1..).unwrap_or_default();
    if let Some(keyspace) = keyspace.filter(|keyspace| !node.keyspaces.contains_key(*keyspace)) {
        return Err(missing_keyspace(keyspace));
    }
    let is_of_system = |keyspace: &str| keyspace == "system" || keyspace.starts_with("system_");
    let mut rows = Vec::new();
    for table in &node.tables {
        let is_meant = match keyspace {
            Some(keyspace) => {
                table.keyspace == keyspace && (names.is_empty() || names.contains(&table.table))
            }
            None => !is_of_system(&table.keyspace),
        };
        if is_meant {
            rows.push((table, running(table.is_auto_compacting)));
        }
    }
    if let Some(name) = names
        .iter()
        .find(|name| rows.iter().all(|(table, _)| table.table != **name))
    {
        return Err(Failure::nodetool(format!(
            "Unknown keyspace/cf pair ({}.{name})",
            keyspace.unwrap_or_default()
        )));
    }
    if call.has("--all") {
        let mut lines = vec![["Keyspace", "Table", "Status"].map(str::to_owned).to_vec()];
        for (table, state) in &rows {
            lines.push(
                [&*table.keyspace, &table.table, state]
                    .map(str::to_owned)
                    .to_vec(),
            );
        }
        say(laid_out(&lines).trim_end_matches('\n'));
        return Ok(());
    }
    let on = rows.iter().filter(|(table, _)| table.is_auto_compacting).count();
    say(match on {
        0 if !rows.is_empty() => "not running",
        on if on == rows.len() => "running",
        _ => "partially running",
    });
    Ok(())
}

/// Switches automatic compaction on.
pub fn enable_autocompaction(call: &Call) -> Result<(), Failure> {
    switch_autocompaction(call, "true")
}

/// Switches automatic compaction off.
pub fn disable_autocompaction(call: &Call) -> Result<(), Failure> {
    switch_autocompaction(call, "false")
}

fn switch_autocompaction(call: &Call, on: &str) -> Result<(), Failure> {
    super::files::for_tables(call, "autocompaction", &[("on", Some(on))])
}

/// Prints how many SSTables a compaction of a table merges.
pub fn get_thresholds(call: &Call) -> Result<(), Failure> {
    let [keyspace, table] = [call.value(0), call.value(1)].map(Option::unwrap_or_default);
    let parts = [("keyspace", Some(keyspace)), ("table", Some(table))];
    let found: ThresholdsReport = call.get("compaction-thresholds", &parts)?;
    // Compat: the layout of `GetCompactionThreshold`, with its two blanks.
    say(&format!(
        "Current compaction thresholds for {keyspace}/{table}: \n min = {},  max = {}",
        found.min, found.max
    ));
    Ok(())
}

/// Sets how many SSTables a compaction of a table merges.
pub fn set_thresholds(call: &Call) -> Result<(), Failure> {
    let (min, max): (i64, i64) = (call.number(2)?, call.number(3)?);
    // Compat: messages of `SetCompactionThreshold`.
    let refusal = match (min, max) {
        _ if min < 0 || max < 0 => Some("Thresholds must be positive integers"),
        _ if min > max => Some("Min threshold cannot be greater than max."),
        _ if min < 2 && max != 0 => Some("Min threshold must be at least 2"),
        // Compat: the message of `ColumnFamilyStore`.
        (0, 0) => Some(
            "Disabling compaction by setting min_compaction_threshold or max_compaction_threshold to 0 is deprecated, set the \
             compaction strategy option 'enabled' to 'false' instead or use the nodetool command 'disableautocompaction'.",
        ),
        _ => None,
    };
    if let Some(refusal) = refusal {
        return Err(Failure::nodetool(refusal));
    }
    let (min, max) = (min.to_string(), max.to_string());
    let parts = [
        ("keyspace", call.value(0)),
        ("table", call.value(1)),
        ("min", Some(&*min)),
        ("max", Some(&*max)),
    ];
    call.post("compaction-thresholds", &parts).map(drop)
}

/// Prints whether a view is built; exit code 1 if it is not.
pub fn view_build_status(call: &Call) -> Result<(), Failure> {
    let (keyspace, view) = match (call.value(0), call.value(1)) {
        (Some(name), None) => name.split_once('.').ok_or_else(|| {
            // Compat: the message of `ViewBuildStatus`.
            Failure::nodetool("viewbuildstatus requires keyspace and view name arguments")
        })?,
        (keyspace, view) => (keyspace.unwrap_or_default(), view.unwrap_or_default()),
    };
    let parts = [("keyspace", Some(keyspace)), ("table", Some(view))];
    let found: Value = call.get("view-built", &parts)?;
    if found["built"] == json!(true) {
        say(&format!("{keyspace}.{view} has finished building"));
        return Ok(());
    }
    let node: NodeReport = call.get("node", &[])?;
    let host = format!("/{}", node.listen_address);
    let mut tables = node.tables.iter();
    let state = match tables.any(|table| table.keyspace == keyspace && table.table == view) {
        true => "STARTED",
        false => "UNKNOWN",
    };
    let rows = [["Host", "Info"], [&host, state]].map(|row| row.map(str::to_owned).to_vec());
    say(&format!(
        "{keyspace}.{view} has not finished building; node status is below.\n\n{}",
        laid_out(&rows).trim_end_matches('\n')
    ));
    Err(Failure::Told)
}

/// Has no effect: `system.size_estimates` is computed when it is read.
pub fn size_estimates(_: &Call) -> Result<(), Failure> {
    Ok(())
}

/// Samples which partitions are used most, and prints them.
pub fn top_partitions(call: &Call) -> Result<(), Failure> {
    // Compat: without a table, all tables are sampled.
    let (names, duration) = match &*call.values {
        [] => (None, "10000"),
        [duration] => (None, &**duration),
        [keyspace, table] => (Some((keyspace, table)), "10000"),
        [keyspace, table, duration, ..] => (Some((keyspace, table)), &**duration),
    };
    let top = call.option("--k").unwrap_or("10");
    let parts = [
        ("millis", Some(duration)),
        ("top", Some(top)),
        ("keyspace", names.map(|(keyspace, _)| &**keyspace)),
        ("table", names.map(|(_, table)| &**table)),
    ];
    // The node refuses what is no number.
    let millis = duration.parse().unwrap_or(0);
    let found = while_time_passes("toppartitions", millis, || call.post("top-partitions", &parts))?;
    let report: TopPartitionsReport = serde_json::from_value(found).map_err(Failure::of)?;
    let texts = [
        samples("Frequency of reads by partition:", &report.reads),
        samples("Frequency of writes by partition:", &report.writes),
        samples("Max mutation size by partition:", &report.write_bytes),
    ];
    say(&texts.join("\n"));
    Ok(())
}

fn samples(title: &str, partitions: &[TopPartitionReport]) -> String {
    let mut text = format!("{title}\n");
    if partitions.is_empty() {
        text.push_str("   Nothing recorded during sampling period...\n");
        return text;
    }
    let mut rows = vec![
        ["   Table", "Partition", "Count", "+/-"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for top in partitions {
        let (table, key) = top.partition.split_once(':').unwrap_or(("", &top.partition));
        rows.push(vec![
            format!("   {table}"),
            key.to_owned(),
            top.count.to_string(),
            top.error.to_string(),
        ]);
    }
    text + &laid_out(&rows)
}
