//! What experiment 4 found.

use serde::Serialize;

use crate::bench::drive::{Load, Rate};
use crate::bench::e4::E4Args;
use crate::bench::files::Cached;
use crate::bench::small_rows::SmallRows;
use crate::bench::store::Store;
use crate::bench::table::{Table, number, number_or_dash};

/// The result.
#[derive(Debug, Serialize)]
pub struct Report {
    experiment: &'static str,
    release_version: String,
    partitioner: &'static str,
    is_embedded: bool,
    rows: u64,
    value_bytes: u32,
    load: Load,
    /// Compaction was off, and so many SSTables were left.
    sstables_wanted: Option<u64>,
    table_options: Option<String>,
    page_cache_dropped: bool,
    inserted: Inserted,
    stages: Vec<Stage>,
    /// Of the first stage to the last.
    ratio: Ratio,
}

/// The burst.
#[derive(Debug, Serialize)]
pub struct Inserted {
    /// How long it took, flushes that were asked for among it.
    pub secs: f64,
    /// Rows a second.
    pub rows_per_sec: f64,
    /// Latency of the slowest hundredth (of the last part).
    pub p99_micros: f64,
    /// SSTables that were seen at once, at most.
    pub sstables_most: u64,
}

/// One time of reading.
#[derive(Debug, Serialize)]
pub struct Stage {
    /// When.
    pub name: String,
    /// SSTables before the reads.
    pub sstables: Option<u64>,
    /// SSTables after them.
    pub sstables_at_end: Option<u64>,
    /// Reads by key.
    pub points: Rate,
    /// Reads of the two rows behind a token.
    pub ranges: Rate,
    /// What the page cache had of the files.
    pub page_cache: PageCache,
}

/// What the page cache had before the reads, if it is known.
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

impl Report {
    /// Puts it together.
    pub fn new(
        args: &E4Args,
        store: &Store,
        rows: &SmallRows,
        load: Load,
        inserted: Inserted,
        stages: Vec<Stage>,
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

    /// For people.
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

fn line(stage: &Stage) -> Vec<String> {
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

/// How much of the files is in the page cache.
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

fn ratio(stages: &[Stage], of: impl Fn(&Stage) -> &Rate) -> Option<f64> {
    let [first, .., last] = stages else {
        return None;
    };
    Some(of(first).per_sec / of(last).per_sec)
}
