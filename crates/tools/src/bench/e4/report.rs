//! The result of experiment 4.

use serde::Serialize;

use crate::bench::drive::{Load, Rate};
use crate::bench::e4::args::E4Args;
use crate::bench::files::Cached;
use crate::bench::small_rows::SmallRows;
use crate::bench::store::Store;
use crate::bench::table::{Table, number, number_or_dash};

/// The result.
#[derive(Debug, Serialize)]
pub struct E4Report {
    experiment: &'static str,
    release_version: String,
    partitioner: &'static str,
    is_embedded: bool,
    rows: u64,
    value_bytes: u32,
    load: Load,
    /// The number of SSTables that were requested; `None` if compaction was on.
    sstables_wanted: Option<u64>,
    table_options: Option<String>,
    page_cache_dropped: bool,
    inserted: Inserted,
    stages: Vec<ReadStage>,
    /// Ratio of the first measurement to the last.
    ratio: Ratio,
}

/// The burst of writes.
#[derive(Debug, Serialize)]
pub struct Inserted {
    /// Duration in seconds, including requested flushes.
    pub secs: f64,
    /// Rows per second.
    pub rows_per_sec: f64,
    /// The 99th percentile of the latency, in the last part of the burst.
    pub p99_micros: f64,
    /// Largest number of SSTables that was counted during the burst.
    pub sstables_most: u64,
}

/// One measurement of reads.
#[derive(Debug, Serialize)]
pub struct ReadStage {
    /// Name of the moment of the measurement.
    pub name: String,
    /// SSTables before the reads.
    pub sstables: Option<u64>,
    /// SSTables after the reads.
    pub sstables_at_end: Option<u64>,
    /// Reads by key.
    pub points: Rate,
    /// Reads of two rows after a token.
    pub ranges: Rate,
    /// State of the page cache.
    pub page_cache: PageCache,
}

/// How much of the files was in the page cache; `None` if unknown.
#[derive(Debug, Serialize)]
pub struct PageCache {
    /// Before reads by key.
    pub before_points: Option<Cached>,
    /// Before range reads.
    pub before_ranges: Option<Cached>,
}

#[derive(Debug, Serialize)]
struct Ratio {
    points: Option<f64>,
    ranges: Option<f64>,
}

impl E4Report {
    /// Collects the result and computes the ratios.
    pub fn new(
        args: &E4Args,
        store: &Store,
        rows: &SmallRows,
        load: Load,
        inserted: Inserted,
        stages: Vec<ReadStage>,
    ) -> anyhow::Result<Self> {
        let ratio = Ratio {
            points: ratio(&stages, |stage| &stage.points),
            ranges: ratio(&stages, |stage| &stage.ranges),
        };
        Ok(Self {
            experiment: "e4",
            release_version: store.local("release_version")?,
            partitioner: rows.partitioner.class_name(),
            is_embedded: store.embedded().is_some(),
            rows: args.rows,
            value_bytes: args.value_size,
            load,
            sstables_wanted: args.sstables,
            table_options: args.with.clone(),
            page_cache_dropped: args.drop_cache,
            inserted,
            stages,
            ratio,
        })
    }

    /// Prints a table.
    pub fn print(&self) -> String {
        let inserted = &self.inserted;
        let mut table = Table::new(&[
            "reads",
            "SSTables",
            "points/s",
            "p99 us",
            "bytes each",
            "from disk",
            "ranges/s",
            "p99 us",
            "bytes each",
            "from disk",
            "cached",
        ]);
        for stage in &self.stages {
            table.line(line(stage));
        }
        let mut out = format!(
            "{} rows of {} bytes in {:.1} s: {} rows/s, {} SSTables at most\n{}",
            number(self.rows as f64),
            self.value_bytes + 10,
            inserted.secs,
            number(inserted.rows_per_sec),
            inserted.sstables_most,
            table.print()
        );
        if let (Some(points), Some(ranges)) = (self.ratio.points, self.ratio.ranges) {
            out.push_str(&format!(
                "first to last: points {:.0} %, ranges {:.0} %",
                points * 100.0,
                ranges * 100.0
            ));
        }
        out
    }
}

fn line(stage: &ReadStage) -> Vec<String> {
    let rate = |rate: &Rate| {
        [
            number(rate.per_sec),
            number(rate.p99_micros),
            number_or_dash(rate.read_bytes.or(rate.read_bytes_by_calls)),
            number_or_dash(rate.read_bytes_from_disk),
        ]
    };
    let sstables = match (stage.sstables, stage.sstables_at_end) {
        (Some(before), Some(after)) if before != after => format!("{before}-{after}"),
        (Some(before), _) => before.to_string(),
        (None, _) => "-".to_owned(),
    };
    let mut cells = vec![stage.name.clone(), sstables];
    cells.extend(rate(&stage.points));
    cells.extend(rate(&stage.ranges));
    cells.push(share(stage.page_cache.before_points));
    cells
}

/// Share of the files in the page cache, as text.
fn share(cached: Option<Cached>) -> String {
    let share = cached.and_then(|cached| {
        let bytes = cached.cached_bytes? as f64;
        Some(format!(
            "{:.0} %",
            bytes * 100.0 / cached.size_bytes.max(1) as f64
        ))
    });
    share.unwrap_or_else(|| "-".to_owned())
}

fn ratio(stages: &[ReadStage], of: impl Fn(&ReadStage) -> &Rate) -> Option<f64> {
    let [first, .., last] = stages else {
        return None;
    };
    Some(of(first).per_sec / of(last).per_sec)
}
