//! The table and options of new SSTables: the columns of all inputs, and the options that the files show.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use ilion_env::Env;
use ilion_schema::TableSchema;
use ilion_sstable::compression_info::{CompressionInfo, NEVER_RAW};
use ilion_sstable::{
    Component, Descriptor, EncodingStats, HeaderColumn, SerializationHeader, Statistics, StatsMetadata,
    WriterOptions, read_component, union_intervals,
};
use ilion_types::Partitioner;

/// Table and options of the new SSTables.
#[derive(Clone)]
pub(super) struct OutputSchema {
    pub(super) table: Arc<TableSchema>,
    pub(super) options: WriterOptions,
}

impl OutputSchema {
    /// The schema for SSTables of one table. Where these differ, the newest SSTable decides.
    pub(super) fn of(env: &dyn Env, sources: &[(&Descriptor, &Statistics)]) -> anyhow::Result<Self> {
        let mut newest_first = sources.to_vec();
        newest_first.sort_by_key(|(_, statistics)| std::cmp::Reverse(statistics.stats.max_timestamp_micros));
        let Some((newest, rest)) = newest_first.split_first() else {
            bail!("there is nothing to read");
        };
        let mut header = newest.1.header.clone();
        for older in rest {
            check_keys(newest, older)?;
            add_columns(&mut header.statics, &older.1.header.statics, older.0)?;
            add_columns(&mut header.regulars, &older.1.header.regulars, older.0)?;
        }
        let statistics: Vec<&Statistics> = sources.iter().map(|(_, statistics)| *statistics).collect();
        let table = header
            .to_table("keyspace", "table")
            .with_context(|| newest.0.to_string())?;
        Ok(Self {
            table: with_options(env, &table, newest.0, newest.1)?,
            options: options_of(&statistics, super::source::partitioner_of(newest.0, newest.1)?),
        })
    }
}

fn check_keys(a: &(&Descriptor, &Statistics), b: &(&Descriptor, &Statistics)) -> anyhow::Result<()> {
    let keys = |header: &SerializationHeader| {
        let types = header.clustering_types.iter().map(|class| class.text.clone());
        [header.key_type.text.clone()]
            .into_iter()
            .chain(types)
            .collect::<Vec<_>>()
    };
    let partitioner = |statistics: &Statistics| {
        let validation = statistics.validation.as_ref();
        validation.map(|validation| validation.partitioner.clone())
    };
    if keys(&a.1.header) != keys(&b.1.header) || partitioner(a.1) != partitioner(b.1) {
        bail!(
            "{} and {} are not of one table: their keys have different types",
            a.0,
            b.0
        );
    }
    Ok(())
}

/// Adds the missing columns.
fn add_columns(
    columns: &mut Vec<HeaderColumn>,
    older: &[HeaderColumn],
    descriptor: &Descriptor,
) -> anyhow::Result<()> {
    for column in older {
        let Some(known) = columns.iter().find(|known| known.name == column.name) else {
            columns.push(column.clone());
            continue;
        };
        let (new, old) = (&known.class.ty, &column.class.ty);
        if new.is_multi_cell() != old.is_multi_cell() || new.fixed_len() != old.fixed_len() {
            bail!(
                "{descriptor}: column {} has the type {}, and {} in a newer SSTable",
                column.name,
                column.class.text,
                known.class.text
            );
        }
    }
    Ok(())
}

/// Sets the table's options, as far as the files show them.
fn with_options(
    env: &dyn Env,
    table: &Arc<TableSchema>,
    descriptor: &Descriptor,
    statistics: &Statistics,
) -> anyhow::Result<Arc<TableSchema>> {
    let mut builder = table.to_builder();
    if let Some(validation) = &statistics.validation {
        builder.options.bloom_filter_fp_chance = validation.bloom_filter_fp_chance;
    }
    builder.options.compression.clear();
    if let Some(bytes) = read_component(env, descriptor, &Component::CompressionInfo)? {
        let path = descriptor.path(&Component::CompressionInfo);
        let info = CompressionInfo::decode(&bytes, descriptor.version, &path)?;
        builder.options.compression = compression_of(&info);
    }
    Ok(builder.build())
}

fn compression_of(info: &CompressionInfo) -> BTreeMap<String, String> {
    let mut options: BTreeMap<String, String> = info.options.iter().cloned().collect();
    options.insert("class".to_owned(), info.class.clone());
    options.insert(
        "chunk_length_in_kb".to_owned(),
        (info.chunk_length >> 10).to_string(),
    );
    if info.compressed_length_max < NEVER_RAW && info.compressed_length_max > 0 {
        let ratio = f64::from(info.chunk_length) / f64::from(info.compressed_length_max);
        options.insert("min_compress_ratio".to_owned(), ratio.to_string());
    }
    options
}

fn options_of(statistics: &[&Statistics], partitioner: Partitioner) -> WriterOptions {
    let stats = || statistics.iter().map(|statistics| &statistics.stats);
    let headers = statistics.iter().map(|statistics| statistics.header.stats);
    let host = common(stats().map(|stats| stats.originating_host)).flatten();
    let intervals = stats()
        .flat_map(StatsMetadata::covered_intervals)
        .filter(|_| host.is_some());
    // The new SSTable is repaired only if all inputs are.
    let repaired_at_millis = match stats().map(|stats| stats.repaired_at_millis).min() {
        Some(millis) if stats().all(|stats| stats.repaired_at_millis > 0) => millis,
        _ => 0,
    };
    WriterOptions {
        partitioner,
        estimated_partitions: stats()
            .map(|stats| stats.partition_sizes.count())
            .fold(0, u64::saturating_add),
        commit_log_intervals: union_intervals(intervals.collect()),
        has_static_rows: statistics
            .iter()
            .any(|statistics| !statistics.header.statics.is_empty()),
        encoding_stats: headers.fold(EncodingStats::NONE, EncodingStats::merge),
        level: common(stats().map(|stats| stats.level))
            .filter(|_| statistics.len() == 1)
            .unwrap_or(0),
        repaired_at_millis,
        pending_repair: common(stats().map(|stats| stats.pending_repair)).flatten(),
        originating_host: host,
        ..WriterOptions::default()
    }
}

/// The value that all have in common; `None` if they differ.
fn common<T: PartialEq>(mut values: impl Iterator<Item = T>) -> Option<T> {
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}
