//! The result of experiment 2.

use serde::Serialize;

use crate::bench::drive::Rate;
use crate::bench::e2::args::{E2Args, Indexes};
use crate::bench::store::Store;
use crate::bench::table::{Table, number, number_or_dash};

/// The result.
#[derive(Debug, Serialize)]
pub struct E2Report {
    experiment: &'static str,
    release_version: String,
    is_embedded: bool,
    rows: u64,
    per_value: u64,
    value_bytes: u32,
    clients: u16,
    runs: u16,
    cases: Vec<IndexCase>,
}

/// The result for one choice of indexes.
#[derive(Debug, Serialize)]
pub struct IndexCase {
    /// The indexes.
    pub indexes: Indexes,
    /// Writes of new rows.
    pub inserts: WriteCost,
    /// Writes of other values to rows on disk.
    pub updates: WriteCost,
    /// Two passes of queries: with stale entries, and again.
    pub queries: Vec<Rate>,
    /// SSTables of the table at the end.
    pub sstables: Option<u64>,
}

/// Rate and CPU time of writes.
#[derive(Clone, Debug, Serialize)]
pub struct WriteCost {
    /// Rate and latency of the writes.
    pub rate: Rate,
    /// CPU time of the server's process for each write; embedded, this includes the client.
    pub cpu_micros: Option<f64>,
}

impl IndexCase {
    /// Keeps the faster of two runs, separately for inserts, updates and queries.
    pub fn keep_faster(&mut self, other: Self) {
        let keep = |known: &mut WriteCost, other: WriteCost| {
            if other.rate.per_sec > known.rate.per_sec {
                *known = other;
            }
        };
        keep(&mut self.inserts, other.inserts);
        keep(&mut self.updates, other.updates);
        for (known, other) in self.queries.iter_mut().zip(other.queries) {
            if other.per_sec > known.per_sec {
                *known = other;
            }
        }
    }
}

impl E2Report {
    /// Collects the result.
    pub fn new(args: &E2Args, store: &Store, cases: Vec<IndexCase>) -> anyhow::Result<Self> {
        Ok(Self {
            experiment: "e2",
            release_version: store.local("release_version")?,
            is_embedded: store.embedded().is_some(),
            rows: args.rows,
            per_value: args.per_value,
            value_bytes: args.value_size,
            clients: args.clients,
            runs: args.runs,
            cases,
        })
    }

    /// Prints a table.
    pub fn print(&self) -> String {
        let mut table = Table::new(&[
            "indexes",
            "inserts/s",
            "cost",
            "CPU us",
            "CPU cost",
            "read bytes",
            "updates/s",
            "cost",
            "CPU us",
            "CPU cost",
            "read bytes",
            "query p50 us",
            "p99 us",
            "again p50",
            "p99 us",
            "rows",
            "SSTables",
        ]);
        for case in &self.cases {
            table.line(self.line(case));
        }
        format!(
            "{} rows, about {} of a value, fastest of {} runs; cost: time of a write to that with {}; read bytes: from files, for each write\n{}",
            number(self.rows as f64),
            self.per_value,
            self.runs,
            self.cases.first().map_or("no index", |case| case.indexes.name()),
            table.print().trim_end()
        )
    }

    fn line(&self, case: &IndexCase) -> Vec<String> {
        let mut cells = vec![case.indexes.name().to_owned()];
        cells.extend(self.paid(case, |case| &case.inserts));
        cells.extend(self.paid(case, |case| &case.updates));
        let query = |place: usize, of: fn(&Rate) -> f64| number_or_dash(case.queries.get(place).map(of));
        cells.push(query(0, |rate| rate.p50_micros));
        cells.push(query(0, |rate| rate.p99_micros));
        cells.push(query(1, |rate| rate.p50_micros));
        cells.push(query(1, |rate| rate.p99_micros));
        cells.push(query(0, |rate| rate.rows as f64 / rate.operations.max(1) as f64));
        cells.push(number_or_dash(case.sstables.map(|sstables| sstables as f64)));
        cells
    }

    fn paid(&self, case: &IndexCase, of: impl Fn(&IndexCase) -> &WriteCost) -> [String; 5] {
        let paid = of(case);
        let first = self.cases.first().map(of);
        let cost = first.map(|first| first.rate.per_sec / paid.rate.per_sec);
        let cpu_cost = first.and_then(|first| Some(paid.cpu_micros? / first.cpu_micros?));
        [
            number(paid.rate.per_sec),
            number_or_dash(cost),
            number_or_dash(paid.cpu_micros),
            number_or_dash(cpu_cost),
            number_or_dash(paid.rate.read_bytes),
        ]
    }
}
