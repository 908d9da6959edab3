//! Benchmarks: load over the socket against any CQL server, and experiments from published accounts of Cassandra.
//!
//! Each connection has a thread with a blocking socket, and `--in-flight` requests under way. A thread reads
//! what has arrived, checks every answer, and sends the next requests with one system call. The client should cost a small part
//! of what the server costs; its CPU time is part of the result. The experiments also run embedded, on databases that the
//! program provides ([`Host`]).
//!
//! | module | what |
//! | --- | --- |
//! | `throughput` | `write`, `read`, `scan`: cassandra-stress's table |
//! | `settings`, `work`, `write`, `counts`, `read`, `scan`, `report` | its settings, requests, checks of answers, and result |
//! | `e1` | the time of a start |
//! | `e2` | writes with secondary indexes, and queries by them |
//! | `e3` | look-ups by the position of a key in the index |
//! | `e4` | reads after a burst of writes |
//! | `e5` | one column of many |
//! | `soak` | a mix of reads and writes, measured second by second for a given time |
//! | `queue` | a table used as a queue |
//! | `store` | the target of an experiment: a server, or a database in this process |
//! | `job`, `small_rows`, `drive` | a statement executed many times; the experiments' rows; all clients at once |
//! | `files`, `process` | files and page cache of a table; CPU, memory and reads of a process |
//! | `dataset` | rows that are a function of a seed, and checks of them |
//! | `template`, `load`, `tally` | a request encoded once; the loop of one client (`ilion-client` has the socket); its counts |
//! | `watcher` | a thread that observes a run until it is over |
//! | `table` | output: tables for people, JSON for programs |
//!
//! Every row of an answer is compared with the row that was written. A wrong or missing row is an error, and a run with errors
//! fails.

mod counts;
mod dataset;
mod drive;
mod e1;
mod e2;
mod e3;
mod e4;
mod e5;
mod files;
mod job;
mod load;
mod process;
mod queue;
mod read;
mod report;
mod scan;
mod settings;
mod small_rows;
mod soak;
mod store;
mod table;
mod tally;
mod template;
mod throughput;
mod watcher;
mod work;
mod write;

pub use crate::bench::e1::E1Args;
pub use crate::bench::e2::args::E2Args;
pub use crate::bench::e3::E3Args;
pub use crate::bench::e4::args::E4Args;
pub use crate::bench::e5::args::E5Args;
pub use crate::bench::queue::args::QueueArgs;
pub use crate::bench::settings::{BenchArgs, Workload};
pub use crate::bench::soak::args::SoakArgs;
pub use crate::bench::store::{Admin, Embedded, Host, Judge, Prepared};

/// What to measure.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Command {
    /// INSERT of whole rows of cassandra-stress's table over the socket; creates keyspace and table first.
    Write(BenchArgs),
    /// UPDATE of the five counters of a row of cassandra-stress's counter table; creates keyspace and table first.
    Count(BenchArgs),
    /// SELECT of whole rows by random keys; `write` must have run with the same keys, seed and value size.
    Read(BenchArgs),
    /// SELECT of the whole table by token ranges, paged.
    Scan(BenchArgs),
    /// The time from exec to the first answered query, with the page cache dropped, for several amounts of data.
    E1(E1Args),
    /// Writes with none, one and three secondary indexes, and queries while old entries are still there.
    E2(E2Args),
    /// Look-ups of keys that the index summary samples, and of keys far from a sample.
    E3(E3Args),
    /// Reads after a burst of writes: directly after it, after a pause, after a major compaction.
    E4(E4Args),
    /// Reads of one blob column of many, and of the same blobs in rows of their own: bytes read for each requested byte.
    E5(E5Args),
    /// A mix of reads and writes of YCSB for as long as asked: a line a second, the slowest second, the longest wait, what was written and
    /// kept for what clients wrote.
    Soak(SoakArgs),
    /// A table used as a queue: inserts at its end, reads and deletes of its first entry. Latencies by tenths of the cycles.
    Queue(QueueArgs),
}

/// Runs a benchmark and prints its result.
///
/// # Errors
/// The server cannot be reached, or an operation failed or returned a wrong row.
pub fn run(command: Command, host: &dyn Host) -> anyhow::Result<()> {
    let throughput = |args: BenchArgs, workload| throughput::run(&BenchArgs { workload, ..args });
    match command {
        Command::Write(args) => throughput(args, Workload::Write),
        Command::Count(args) => throughput(args, Workload::Count),
        Command::Read(args) => throughput(args, Workload::Read),
        Command::Scan(args) => throughput(args, Workload::Scan),
        Command::E1(args) => e1::run(&args, host),
        Command::E2(args) => e2::run(&args, host),
        Command::E3(args) => e3::run(&args, host),
        Command::E4(args) => e4::run(&args, host),
        Command::E5(args) => e5::run(&args, host),
        Command::Soak(args) => soak::run(&args, host),
        Command::Queue(args) => queue::run(&args, host),
    }
}
