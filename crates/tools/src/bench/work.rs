//! What the clients have to do: the plan of a run, one of its phases, and the work of one client.

use std::sync::atomic::{AtomicU64, Ordering};

use ilion_protocol::Response;

use crate::bench::dataset::{COLUMN_COUNT, Dataset};
use crate::bench::load::{Crowd, Tally};
use crate::bench::settings::{BenchArgs, Workload};

/// What does not change during a run.
#[derive(Debug)]
pub struct Plan {
    /// Whom to ask, and how much at once.
    pub crowd: Crowd,
    /// What to run.
    pub workload: Workload,
    /// The rows.
    pub dataset: Dataset,
    /// How many there are.
    pub keys: u64,
    /// Scan: rows in a page.
    pub page_rows: u32,
    /// Scan: ranges of the ring.
    pub ranges: u32,
    /// Orders the reads.
    pub seed: u64,
    keyspace: String,
}

/// Operations that are handed out to the clients one by one.
#[derive(Debug)]
pub struct Phase {
    next: AtomicU64,
    limit: u64,
}

/// What one client sends and how it judges the answers. `slot` is the stream, below `in_flight`.
pub trait Work {
    /// Appends the next request, or nothing if none is left.
    fn next(&mut self, slot: usize, out: &mut Vec<u8>) -> anyhow::Result<bool>;

    /// Judges the answer to the last request of this slot; returns the number of rows in it, or what is wrong with it.
    fn check(&mut self, slot: usize, response: Response) -> Result<u64, String>;
}

impl Plan {
    /// The plan for these settings.
    pub fn new(args: &BenchArgs, dataset: Dataset) -> Self {
        Self {
            crowd: Crowd {
                address: format!("{}:{}", args.host, args.port),
                clients: args.clients,
                in_flight: args.in_flight,
            },
            workload: args.workload,
            dataset,
            keys: args.keys,
            page_rows: args.page_rows,
            ranges: args.ranges,
            seed: args.seed,
            keyspace: args.keyspace.clone(),
        }
    }

    /// The table with its keyspace.
    pub fn table(&self) -> String {
        format!("{}.standard1", self.keyspace)
    }

    /// The columns, separated by commas.
    pub fn columns() -> String {
        let names: Vec<_> = (0..COLUMN_COUNT).map(|column| format!("\"C{column}\"")).collect();
        names.join(", ")
    }

    /// The statements that make keyspace and table.
    pub fn schema(&self) -> [String; 2] {
        let columns: Vec<_> = (0..COLUMN_COUNT)
            .map(|column| format!("\"C{column}\" blob"))
            .collect();
        [
            format!(
                "CREATE KEYSPACE IF NOT EXISTS {} WITH replication = \
                 {{'class': 'SimpleStrategy', 'replication_factor': 1}}",
                self.keyspace
            ),
            format!(
                "CREATE TABLE IF NOT EXISTS {} (key blob PRIMARY KEY, {})",
                self.table(),
                columns.join(", ")
            ),
        ]
    }
}

impl Phase {
    /// What comes before the measurement, if anything.
    pub fn warm_up(args: &BenchArgs) -> Option<Self> {
        (args.warm_up > 0).then(|| Self::new(args, args.warm_up))
    }

    /// What is measured.
    pub fn measured(args: &BenchArgs) -> Self {
        let usual = match args.workload {
            Workload::Write | Workload::Read => args.keys,
            Workload::Scan => 1,
        };
        Self::new(args, args.operations.unwrap_or(usual))
    }

    fn new(args: &BenchArgs, count: u64) -> Self {
        let each = match args.workload {
            Workload::Write | Workload::Read => 1,
            Workload::Scan => u64::from(args.ranges),
        };
        Self {
            next: AtomicU64::new(0),
            limit: count.saturating_mul(each),
        }
    }

    /// The number of the next operation (a scan: of the next range).
    pub fn take(&self) -> Option<u64> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number < self.limit).then_some(number)
    }

    /// What can only be judged when all is done: a scan must have seen every row.
    pub fn conclude(&self, args: &BenchArgs, tally: &mut Tally) {
        let passes = self.limit / u64::from(args.ranges).max(1);
        let expected = args.keys.saturating_mul(passes);
        if args.workload == Workload::Scan && tally.rows != expected {
            tally
                .faults
                .add(format!("the scan saw {} rows, not {expected}", tally.rows));
        }
    }
}
