//! The plan of a run, one of its phases, and the work of one client.

use std::sync::atomic::{AtomicU64, Ordering};

use ilion_protocol::{Consistency, Response, Version};

use crate::bar::while_counting;
use crate::bench::dataset::{COLUMN_COUNT, Dataset};
use crate::bench::settings::{BenchArgs, Workload, create_keyspace};
use crate::bench::tally::Tally;
use ilion_client::Target;

/// The server, and the number of concurrent requests.
#[derive(Clone, Debug)]
pub struct Crowd {
    /// The server, and the role that logs in.
    pub target: Target,
    /// Connections.
    pub clients: u16,
    /// Requests under way on each.
    pub in_flight: u16,
}

/// The parameters of a run.
#[derive(Debug)]
pub struct Plan {
    /// The server, and the number of concurrent requests.
    pub crowd: Crowd,
    /// What to run.
    pub workload: Workload,
    /// The consistency level of all requests.
    pub consistency: Consistency,
    /// Write: only rows that do not exist.
    pub if_not_exists: bool,
    /// The rows.
    pub dataset: Dataset,
    /// Number of rows.
    pub keys: u64,
    /// Scan: rows in a page.
    pub page_rows: u32,
    /// Scan: number of ranges into which the ring is cut.
    pub ranges: u32,
    /// Seed of the order of reads.
    pub seed: u64,
    keyspace: String,
}

/// A number of operations, which the clients take one by one.
#[derive(Debug)]
pub struct Phase {
    next: AtomicU64,
    limit: u64,
}

/// The requests and checks of one client. `slot` is the stream id, below `in_flight`.
pub trait Work {
    /// Appends the next request; returns false if none is left.
    fn next(&mut self, slot: usize, out: &mut Vec<u8>) -> anyhow::Result<bool>;

    /// Checks the answer to the last request of this slot. Returns the number of rows, or what is wrong.
    fn check(&mut self, slot: usize, response: Response) -> Result<u64, String>;

    /// Notes when the last request of this slot was sent and answered, after [`Self::check`].
    fn observe(&mut self, _slot: usize, _sent_nanos: u64, _now_nanos: u64) {}
}

/// Describes a wrong answer: the error of the server, or that the answer has the wrong kind for the statement.
pub fn wrong_answer(statement: &str, response: &Response) -> String {
    match response {
        Response::Error(error) => error.to_string(),
        other => format!("{statement} was answered with {}", other.opcode()),
    }
}

/// The newest version of the protocol that benchmarks propose. The Go and Rust drivers speak this one, and figures stay comparable with older
/// ones: v5 adds checksums on both sides.
pub const PROTOCOL: Version = Version::V4;

impl Plan {
    /// The plan for these arguments.
    pub fn new(args: &BenchArgs, dataset: Dataset) -> Self {
        Self {
            crowd: Crowd {
                target: Target::new(&args.host, args.port, &args.login).with_newest(PROTOCOL),
                clients: args.clients,
                in_flight: args.in_flight,
            },
            workload: args.workload,
            consistency: args.consistency,
            if_not_exists: args.if_not_exists,
            dataset,
            keys: args.keys,
            page_rows: args.page_rows,
            ranges: args.ranges,
            seed: args.seed,
            keyspace: args.keyspace.clone(),
        }
    }

    /// The name of the table, with its keyspace.
    pub fn table(&self) -> String {
        let table = match self.workload {
            Workload::Count => "counter1",
            Workload::Write | Workload::Read | Workload::Scan => "standard1",
        };
        format!("{}.{table}", self.keyspace)
    }

    /// Names of the columns, separated by commas.
    pub fn columns() -> String {
        let names: Vec<_> = (0..COLUMN_COUNT).map(|column| format!("\"C{column}\"")).collect();
        names.join(", ")
    }

    /// The statements that create keyspace and table.
    pub fn schema(&self) -> [String; 2] {
        let ty = match self.workload {
            Workload::Count => "counter",
            Workload::Write | Workload::Read | Workload::Scan => "blob",
        };
        let columns: Vec<_> = (0..COLUMN_COUNT)
            .map(|column| format!("\"C{column}\" {ty}"))
            .collect();
        [
            create_keyspace(&self.keyspace),
            format!(
                "CREATE TABLE IF NOT EXISTS {} (key blob PRIMARY KEY, {})",
                self.table(),
                columns.join(", ")
            ),
        ]
    }
}

impl Phase {
    /// The phase before the measurement; `None` if there is none.
    pub fn warm_up(args: &BenchArgs) -> Option<Self> {
        (args.warm_up > 0).then(|| Self::new(args, args.warm_up))
    }

    /// The phase that is measured.
    pub fn measured(args: &BenchArgs) -> Self {
        let usual = match args.workload {
            Workload::Write | Workload::Count | Workload::Read => args.keys,
            Workload::Scan => 1,
        };
        Self::new(args, args.operations.unwrap_or(usual))
    }

    fn new(args: &BenchArgs, count: u64) -> Self {
        let each = match args.workload {
            Workload::Write | Workload::Count | Workload::Read => 1,
            Workload::Scan => u64::from(args.ranges),
        };
        Self {
            next: AtomicU64::new(0),
            limit: count.saturating_mul(each),
        }
    }

    /// Runs `work` with a bar that shows how far the phase is.
    pub fn with_bar<T>(&self, label: &str, work: impl FnOnce() -> T) -> T {
        while_counting(label, self.limit, || self.next.load(Ordering::Relaxed), work)
    }

    /// The number of the next operation (scan: of the next range); `None` at the end.
    pub fn take(&self) -> Option<u64> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number < self.limit).then_some(number)
    }

    /// Checks the number of rows of a scan at the end.
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
