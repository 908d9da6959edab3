//! The result of the queue experiment.

use serde::Serialize;

use crate::bench::queue::args::QueueArgs;
use crate::bench::queue::consumer::Finding;
use crate::bench::soak::LatencyHistograms;
use crate::bench::store::Store;
use crate::bench::table::{Table, number, number_or_dash};

/// The result.
#[derive(Debug, Serialize)]
pub struct QueueReport {
    experiment: &'static str,
    release_version: String,
    is_embedded: bool,
    cycles: u64,
    finding: Finding,
    depth: u64,
    queues: u16,
    value_bytes: u32,
    table_options: Option<String>,
    parts: Vec<Part>,
}

/// A tenth of the cycles.
#[derive(Debug, Serialize)]
pub struct Part {
    cycles: u64,
    cycles_per_sec: f64,
    reads: Latencies,
    writes: Latencies,
    /// At the end of the part.
    sstables: Option<u64>,
}

/// Latencies in microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
struct Latencies {
    p50_micros: f64,
    p99_micros: f64,
    p999_micros: f64,
    max_micros: f64,
}

impl Latencies {
    fn of(histogram: &hdrhistogram::Histogram<u64>) -> Self {
        let micros = |nanos: u64| nanos as f64 / 1e3;
        let at = |quantile: f64| micros(histogram.value_at_quantile(quantile));
        Self {
            p50_micros: at(0.5),
            p99_micros: at(0.99),
            p999_micros: at(0.999),
            max_micros: micros(histogram.max()),
        }
    }
}

impl Part {
    pub fn new(cycles: u64, nanos: u64, latencies: &LatencyHistograms, sstables: Option<u64>) -> Self {
        Self {
            cycles,
            cycles_per_sec: cycles as f64 / (nanos.max(1) as f64 / 1e9),
            reads: Latencies::of(&latencies.reads),
            writes: Latencies::of(&latencies.writes),
            sstables,
        }
    }
}

impl QueueReport {
    /// Collects the result.
    pub fn new(args: &QueueArgs, store: &Store, parts: Vec<Part>) -> anyhow::Result<Self> {
        Ok(Self {
            experiment: "queue",
            release_version: store.local("release_version")?,
            is_embedded: store.embedded().is_some(),
            cycles: args.cycles,
            finding: args.find_by,
            depth: args.depth,
            queues: args.queues,
            value_bytes: args.value_size,
            table_options: args.with.clone(),
            parts,
        })
    }

    /// Prints a table.
    pub fn print(&self) -> String {
        let mut table = Table::new(&[
            "cycles",
            "a second",
            "read p50",
            "p99",
            "p99.9",
            "longest",
            "write p50",
            "p99",
            "longest",
            "SSTables",
        ]);
        for part in &self.parts {
            let Part { reads, writes, .. } = part;
            table.line(vec![
                number(part.cycles as f64),
                number(part.cycles_per_sec),
                number(reads.p50_micros),
                number(reads.p99_micros),
                number(reads.p999_micros),
                number(reads.max_micros),
                number(writes.p50_micros),
                number(writes.p99_micros),
                number(writes.max_micros),
                number_or_dash(part.sstables.map(|sstables| sstables as f64)),
            ]);
        }
        let cycle = match self.finding {
            Finding::Partition => "insert, read the oldest entry, delete it",
            Finding::TableIndex => "insert, find an entry by its status (table index), change the status",
            Finding::Sai => "insert, find an entry by its status (SAI), change the status",
        };
        format!(
            "{cycle}: {} queues of {} entries of {} bytes; latencies in us\n{}",
            self.queues,
            number(self.depth as f64),
            number(f64::from(self.value_bytes)),
            table.print().trim_end()
        )
    }
}
