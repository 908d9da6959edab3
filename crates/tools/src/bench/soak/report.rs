//! The summary of the soak.

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::bench::drive::Load;
use crate::bench::soak::args::{Mix, SoakArgs, Spread};
use crate::bench::soak::rows::SoakRows;
use crate::bench::soak::turns::Turns;
use crate::bench::soak::watch::{Second, Watched};
use crate::bench::store::Store;
use crate::bench::table::{Table, number, number_or_dash};
use crate::bench::tally::Tally;

/// The result.
#[derive(Debug, Serialize)]
pub struct SoakReport {
    experiment: &'static str,
    release_version: String,
    is_embedded: bool,
    mix: Mix,
    spread: Spread,
    rate_wanted: Option<u64>,
    load: Load,
    rows_before: u64,
    rows_after: u64,
    /// Bytes of a row, without what the store adds.
    row_bytes: u64,
    operations: u64,
    per_sec: f64,
    reads: Quantiles,
    writes: Quantiles,
    /// Rate of the slowest second, as a share of that of the median second.
    slowest_second: f64,
    median_per_sec: f64,
    /// CPU time of the store's process for each operation; embedded, this includes the client.
    cpu_micros: Option<f64>,
    memory_most_bytes: Option<u64>,
    /// Bytes that the store's process wrote for each byte that clients wrote.
    write_amplification: Option<f64>,
    /// Bytes that the store's process read from the disk for each operation.
    disk_bytes_read: Option<f64>,
    /// Largest size of the table's files, for each byte of live rows.
    space_amplification: Option<f64>,
    seconds: Vec<Second>,
}

/// Latencies of operations, in microseconds.
#[derive(Debug, Serialize)]
pub struct Quantiles {
    operations: u64,
    p50: f64,
    p99: f64,
    p999: f64,
    p9999: f64,
    max: f64,
}

impl Quantiles {
    fn of(times: &Histogram<u64>) -> Self {
        let at = |quantile: f64| times.value_at_quantile(quantile) as f64 / 1e3;
        Self {
            operations: times.len(),
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            p9999: at(0.9999),
            max: times.max() as f64 / 1e3,
        }
    }

    fn line(&self, name: &str) -> Vec<String> {
        let micros = [self.p50, self.p99, self.p999, self.p9999, self.max].map(number);
        let head = [name.to_owned(), number(self.operations as f64)];
        head.into_iter().chain(micros).collect()
    }
}

impl SoakReport {
    /// Computes the result.
    ///
    /// # Errors
    /// The store does not answer.
    pub fn new(
        args: &SoakArgs,
        store: &Store,
        load: Load,
        rows: &SoakRows,
        turns: &Turns,
        tally: &Tally,
        watched: Watched,
    ) -> anyhow::Result<Self> {
        let seconds = watched.seconds;
        let secs = seconds.last().map_or(0.0, |second| second.at).max(1e-9);
        let operations = tally.operations.max(1) as f64;
        let median = median(&seconds);
        let slowest = seconds.iter().map(Second::per_sec).fold(median, f64::min);
        let live_bytes = turns.rows().saturating_mul(rows.row_bytes()) as f64;
        let written = turns.written_bytes() as f64;
        let each = |before: u64, after: u64, of: f64| after.saturating_sub(before) as f64 / of;
        let transferred = watched.transferred;
        Ok(Self {
            experiment: "soak",
            release_version: store.local("release_version")?,
            is_embedded: store.embedded().is_some(),
            mix: args.mix,
            spread: args.spread(),
            rate_wanted: args.rate,
            load,
            rows_before: args.rows,
            rows_after: turns.rows(),
            row_bytes: rows.row_bytes(),
            operations: tally.operations,
            per_sec: tally.operations as f64 / secs,
            reads: Quantiles::of(&watched.times.reads),
            writes: Quantiles::of(&watched.times.writes),
            slowest_second: slowest / median.max(1e-9),
            median_per_sec: median,
            cpu_micros: watched
                .usage
                .map(|(before, after)| (after.cpu_secs - before.cpu_secs) * 1e6 / operations),
            memory_most_bytes: seconds.iter().filter_map(|second| second.memory_bytes).max(),
            write_amplification: transferred
                .filter(|_| written > 0.0)
                .map(|(before, after)| each(before.to_disk, after.to_disk, written)),
            disk_bytes_read: transferred
                .map(|(before, after)| each(before.from_disk, after.from_disk, operations)),
            space_amplification: seconds
                .iter()
                .filter_map(|second| second.file_bytes)
                .max()
                .map(|bytes| bytes as f64 / live_bytes),
            seconds,
        })
    }

    /// Prints a table.
    pub fn print(&self) -> String {
        let mut table = Table::new(&["us", "operations", "p50", "p99", "p99.9", "p99.99", "longest"]);
        for (name, quantiles) in [("reads", &self.reads), ("writes", &self.writes)] {
            if quantiles.operations > 0 {
                table.line(quantiles.line(name));
            }
        }
        let mebibytes = self.memory_most_bytes.map(|bytes| (bytes >> 20) as f64);
        format!(
            "mix {:?}, {:?}, {} rows: {} operations/s; slowest second {:.0} % of the median one ({}/s)\n{}\
             CPU {} us an operation, at most {} MiB resident; written {} times what clients wrote, files at most {} times the live rows, {} bytes \
             from the disk an operation",
            self.mix,
            self.spread,
            number(self.rows_after as f64),
            number(self.per_sec),
            self.slowest_second * 100.0,
            number(self.median_per_sec),
            table.print(),
            number_or_dash(self.cpu_micros),
            number_or_dash(mebibytes),
            number_or_dash(self.write_amplification),
            number_or_dash(self.space_amplification),
            number_or_dash(self.disk_bytes_read),
        )
    }
}

/// Operations a second, in the median second.
fn median(seconds: &[Second]) -> f64 {
    let mut rates: Vec<f64> = seconds.iter().map(Second::per_sec).collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or_default()
}
