//! `metadata`: prints the content of Statistics.db like Cassandra's `sstablemetadata`. Dates are in UTC, columns in the order of
//! the file.

mod histogram;
mod scan;
mod style;
pub(super) mod units;

use std::io::Write;

use ilion_env::Env;
use ilion_rows::{Bound, NO_DELETION_TIME, Slice};
use ilion_sstable::compression_info::CompressionInfo;
use ilion_sstable::{
    Component, Descriptor, EncodingStats, HeaderColumn, OpenOptions, SSTable, SerializationHeader,
    Statistics, StatsMetadata, read_component,
};
use ilion_types::{CqlType, Partitioner, hex};

use super::arguments::MetadataArguments;
use super::keys::print_key;
use super::source::{Source, descriptors, partitioner_of, read_statistics, table_of};
use histogram::{Histogram, drop_times, partition_sizes, plain_number};
use scan::Overview;
use style::Style;
use units::{TimestampUnit, date, deletion, double, duration};

const COMPRESSOR_PACKAGE: &str = "org.apache.cassandra.io.compress";
const NOT_THERE: &str = "--";

pub(super) fn run(
    env: &std::sync::Arc<dyn Env>,
    arguments: &MetadataArguments,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    print(env, arguments, env.now_secs(), out)
}

/// Prints the content; `now_secs` is the time for the estimate of droppable tombstones.
pub(super) fn print(
    env: &std::sync::Arc<dyn Env>,
    arguments: &MetadataArguments,
    now_secs: i64,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let gc_before = u64::try_from(now_secs)
        .unwrap_or(0)
        .saturating_sub(arguments.gc_grace_seconds);
    for descriptor in descriptors(env.as_ref(), &arguments.files.files)? {
        let statistics = read_statistics(env.as_ref(), &descriptor)?;
        let mut printer = Printer {
            env,
            descriptor: &descriptor,
            statistics: &statistics,
            style: Style {
                has_colors: arguments.colors,
                has_unicode: arguments.unicode,
            },
            unit: arguments.timestamp_unit,
            text: String::new(),
        };
        printer.name();
        if arguments.scan {
            printer.scan()?;
        }
        printer.file();
        printer.times();
        printer.compression()?;
        printer.ends()?;
        printer.contents(gc_before);
        printer.histograms();
        printer.header();
        out.write_all(printer.text.as_bytes())?;
    }
    Ok(())
}

struct Printer<'a> {
    env: &'a std::sync::Arc<dyn Env>,
    descriptor: &'a Descriptor,
    statistics: &'a Statistics,
    style: Style,
    unit: TimestampUnit,
    text: String,
}

impl Printer<'_> {
    fn field(&mut self, name: &str, value: impl std::fmt::Display) {
        self.field_with(name, value, None::<&str>);
    }

    fn field_with(
        &mut self,
        name: &str,
        value: impl std::fmt::Display,
        comment: Option<impl std::fmt::Display>,
    ) {
        let style = self.style;
        let (blue, cyan, reset) = (style.blue(), style.cyan(), style.reset());
        self.text.push_str(&format!("{blue}{name}{cyan}: {reset}{value}"));
        if let Some(comment) = comment {
            self.text
                .push_str(&format!("{} ({comment}){reset}", style.white()));
        }
        self.text.push('\n');
    }

    fn name(&mut self) {
        self.field("SSTable", self.descriptor);
    }

    fn scan(&mut self) -> anyhow::Result<()> {
        let overview = Overview::of(&Source::open(self.env, self.descriptor)?)?;
        for (name, value) in overview.fields() {
            self.field(name, value);
        }
        for (name, lines) in overview.lists(self.style) {
            self.field(name, "");
            self.text.push_str(&lines);
        }
        Ok(())
    }

    fn file(&mut self) {
        if let Some(validation) = &self.statistics.validation {
            self.field("Partitioner", &validation.partitioner);
            self.field(
                "Bloom Filter FP chance",
                double(validation.bloom_filter_fp_chance),
            );
        }
    }

    /// Prints a date and the stored number.
    fn timestamp(&mut self, name: &str, stored: i64) {
        let date = (stored != 0).then(|| date(self.unit.millis(stored).div_euclid(1000)));
        self.field_with(name, date.unwrap_or_else(|| NOT_THERE.to_owned()), Some(stored));
    }

    fn deletion_time(&mut self, name: &str, secs: u32) {
        let stored = match secs {
            NO_DELETION_TIME => i64::MAX,
            secs => i64::from(secs),
        };
        self.field_with(name, deletion(secs), Some(stored));
    }

    fn ttl(&mut self, name: &str, secs: u32) {
        self.field_with(name, secs, duration(secs));
    }

    fn times(&mut self) {
        let stats = &self.statistics.stats;
        let (least, greatest) = (stats.min_timestamp_micros, stats.max_timestamp_micros);
        self.timestamp("Minimum timestamp", least);
        self.timestamp("Maximum timestamp", greatest);
        let secs = greatest.wrapping_sub(least) / 1_000_000;
        let (days, second) = (secs / 86_400, secs % 86_400);
        let text = format!(
            "Days: {days} Hours: {} Minutes: {} Seconds: {}",
            second / 3600,
            second / 60 % 60,
            second % 60
        );
        self.field("Duration", text);
        self.deletion_time("SSTable min local deletion time", stats.min_local_deletion_secs);
        self.deletion_time("SSTable max local deletion time", stats.max_local_deletion_secs);
    }

    fn compression(&mut self) -> anyhow::Result<()> {
        let path = self.descriptor.path(&Component::CompressionInfo);
        let bytes = read_component(self.env.as_ref(), self.descriptor, &Component::CompressionInfo)?;
        let stats = &self.statistics.stats;
        match bytes {
            Some(bytes) => {
                let info = CompressionInfo::decode(&bytes, self.descriptor.version, &path)?;
                self.field("Compressor", format!("{COMPRESSOR_PACKAGE}.{}", info.class));
                self.field("Compression ratio", double(stats.compression_ratio));
            }
            None => self.field("Compressor", "-"),
        }
        self.ttl("TTL min", stats.min_ttl_secs);
        self.ttl("TTL max", stats.max_ttl_secs);
        Ok(())
    }

    /// Prints the first and the last token. They are left out if Statistics.db does not have them and the index cannot be read.
    fn ends(&mut self) -> anyhow::Result<()> {
        let partitioner = partitioner_of(self.descriptor, self.statistics)?;
        let Some((first, last)) = self.first_and_last_key(partitioner) else {
            return Ok(());
        };
        let table = table_of(self.descriptor, self.statistics)?;
        for (name, key) in [("First token", first), ("Last token", last)] {
            let token = partitioner.token(&key);
            self.field_with(name, token, Some(print_key(&table, &key)));
        }
        Ok(())
    }

    fn first_and_last_key(&self, partitioner: Partitioner) -> Option<(Vec<u8>, Vec<u8>)> {
        if let Some((first, last)) = &self.statistics.stats.first_and_last_key {
            return Some((first.to_vec(), last.to_vec()));
        }
        let options = OpenOptions {
            partitioner,
            chunk_cache: None,
            ..OpenOptions::default()
        };
        let sstable = SSTable::open(self.env, self.descriptor, &options).ok()?;
        Some((sstable.first_key().key.to_vec(), sstable.last_key().key.to_vec()))
    }

    fn contents(&mut self, gc_before: u64) {
        let stats = &self.statistics.stats;
        let covered = covered(
            self.descriptor,
            &self.statistics.header,
            &stats.covered_clusterings,
        );
        self.field("Covered clusterings", covered);
        self.field(
            "Estimated droppable tombstones",
            double(droppable_ratio(stats, gc_before)),
        );
        self.field("SSTable Level", stats.level);
        let repaired_at = stats.repaired_at_millis;
        let date = (repaired_at != 0).then(|| date(repaired_at.div_euclid(1000)));
        self.field_with("Repaired at", repaired_at, date);
        let or_none =
            |uuid: Option<ilion_types::Uuid>| uuid.map_or(NOT_THERE.to_owned(), |uuid| uuid.to_string());
        self.field("Originating host id", or_none(stats.originating_host));
        self.field("Pending repair", or_none(stats.pending_repair));
        self.field("Replay positions covered", replay_positions(stats));
        self.field("totalColumnsSet", stats.total_columns);
        self.field("totalRows", stats.total_rows);
    }

    fn histograms(&mut self) {
        let stats = &self.statistics.stats;
        self.field("Estimated tombstone drop times", "");
        let bins = stats.tombstone_drop_times.bins().iter().copied();
        Histogram::new("Drop Time", bins, drop_times).print(self.style, &mut self.text);
        self.field("Partition Size", "");
        Histogram::new("Size (bytes)", buckets(&stats.partition_sizes), partition_sizes)
            .print(self.style, &mut self.text);
        self.field("Column Count", "");
        Histogram::new("Columns", buckets(&stats.cells_per_partition), plain_number)
            .print(self.style, &mut self.text);
        self.field("Local token space coverage", double(stats.token_space_coverage));
        if let Some(cardinality) = &self.statistics.cardinality {
            self.field("Estimated cardinality", cardinality.estimate());
        }
    }

    fn header(&mut self) {
        let header = &self.statistics.header;
        let EncodingStats {
            min_timestamp_micros,
            min_local_deletion_secs,
            min_ttl_secs,
        } = header.stats;
        self.ttl("EncodingStats minTTL", min_ttl_secs);
        let secs = i64::from(min_local_deletion_secs);
        let date = (secs != 0).then(|| date(secs));
        self.field_with(
            "EncodingStats minLocalDeletionTime",
            date.unwrap_or_else(|| NOT_THERE.to_owned()),
            Some(secs),
        );
        self.timestamp("EncodingStats minTimestamp", min_timestamp_micros);
        self.field("KeyType", &header.key_type.text);
        let types: Vec<&str> = header
            .clustering_types
            .iter()
            .map(|class| class.text.as_str())
            .collect();
        self.field("ClusteringTypes", format!("[{}]", types.join(", ")));
        self.field("StaticColumns", columns(&header.statics));
        self.field("RegularColumns", columns(&header.regulars));
        self.field("IsTransient", self.statistics.stats.is_transient);
    }
}

fn buckets(histogram: &ilion_sstable::EstimatedHistogram) -> impl Iterator<Item = (u64, u64)> {
    histogram.buckets().map(|(greatest, count)| {
        let greatest = greatest.unwrap_or(i64::MAX);
        (greatest.max(0).unsigned_abs(), count.max(0).unsigned_abs())
    })
}

/// Estimated share of droppable tombstones in the cells (`StatsMetadata.getEstimatedDroppableTombstoneRatio`).
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn droppable_ratio(stats: &StatsMetadata, gc_before: u64) -> f64 {
    let cells = &stats.cells_per_partition;
    let estimated_cells = cells.mean().ceil() * cells.count() as f64;
    if estimated_cells > 0.0 {
        stats.tombstone_drop_times.sum_until(gc_before) / estimated_cells
    } else {
        0.0
    }
}

fn covered(descriptor: &Descriptor, header: &SerializationHeader, slice: &Slice) -> String {
    // Compat: formats before oa have lists of values, and empty lists mean all clusterings.
    if !descriptor.version.is_oa_or_later() && *slice == Slice::all() {
        return "ALL".to_owned();
    }
    let values = |bound: &Bound| -> String {
        let types = header.clustering_types.iter().map(|class| &class.ty);
        let texts = bound
            .values
            .iter()
            .zip(types)
            .map(|(value, ty)| clustering_text(ty, value.as_deref()));
        texts.collect::<Vec<_>>().join(":")
    };
    let is_inclusive = |bound: &Bound| {
        use ilion_rows::BoundKind::{InclEnd, InclStart};
        matches!(bound.kind, InclStart | InclEnd)
    };
    format!(
        "{}{}, {}{}",
        if is_inclusive(&slice.start) { '[' } else { '(' },
        values(&slice.start),
        values(&slice.end),
        if is_inclusive(&slice.end) { ']' } else { ')' }
    )
}

fn clustering_text(ty: &CqlType, value: Option<&[u8]>) -> String {
    match value {
        None => "null".to_owned(),
        Some(value) => {
            let text = ty.print_plain(value).unwrap_or_else(|_| hex::print(value));
            // Compat: timestamps in clusterings are printed differently from those in keys.
            match ty {
                CqlType::Timestamp => text.replace(' ', "T"),
                _ => text,
            }
        }
    }
}

fn replay_positions(stats: &StatsMetadata) -> String {
    let intervals = stats.commit_log_intervals.iter().map(|(start, end)| {
        let position = |at: &ilion_sstable::CommitLogPosition| {
            format!(
                "CommitLogPosition(segmentId={}, position={})",
                at.segment, at.offset
            )
        };
        format!("{}={}", position(start), position(end))
    });
    format!("{{{}}}", intervals.collect::<Vec<_>>().join(", "))
}

fn columns(columns: &[HeaderColumn]) -> String {
    let texts = columns
        .iter()
        .map(|column| format!("{}:{}", column.name, column.class.text));
    texts.collect::<Vec<_>>().join(", ")
}
