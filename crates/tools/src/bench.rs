//! The benchmarks: load over the socket against any CQL server, and the experiments that Cassandra became known by.
//!
//! One thread for each connection, blocking sockets, and as many requests under way as `--in-flight` says: a thread reads
//! what has arrived, judges every answer, and sends the next requests with one system call. The client is meant to cost a
//! small part of what the server does; its own CPU is part of the result. The experiments also run embedded: the program
//! that this is part of brings databases ([`Host`]).
//!
//! | module | what |
//! | --- | --- |
//! | `throughput` | `write`, `read`, `scan`: cassandra-stress's table |
//! | `settings`, `work`, `write`, `read`, `scan`, `report` | its settings, what is sent, how answers are judged, the result |
//! | `e1` | the time of a start |
//! | `e2` | writes with secondary indexes, and queries by them |
//! | `e3` | where a key stands in the index |
//! | `e4` | reads after a burst of writes |
//! | `e5` | one column of many |
//! | `store` | what an experiment runs against: a server, or a database in this process |
//! | `job`, `small_rows`, `drive` | a statement executed many times; the experiments' rows; all clients at once |
//! | `files`, `process` | files and page cache of a table; CPU, memory and reads of a process |
//! | `dataset` | the rows, made from a seed, and how to know them again |
//! | `connection`, `template`, `load` | a socket; a request encoded once, filled in often; the loop of one client |
//! | `table` | tables for people, JSON for programs |
//!
//! Every row that comes back is compared with the row that was written: a wrong or missing one is an error, and a run with
//! errors fails.

mod connection;
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
mod read;
mod report;
mod scan;
mod settings;
mod small_rows;
mod store;
mod table;
mod template;
mod throughput;
mod work;
mod write;

pub use crate::bench::e1::E1Args;
pub use crate::bench::e2::E2Args;
pub use crate::bench::e3::E3Args;
pub use crate::bench::e4::E4Args;
pub use crate::bench::e5::E5Args;
pub use crate::bench::settings::{BenchArgs, Workload};
pub use crate::bench::store::{Admin, Embedded, Host, Judge, Prepared};

/// What to measure.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Command {
    /// INSERT of whole rows of cassandra-stress's table over the socket; creates keyspace and table first.
    Write(BenchArgs),
    /// SELECT of whole rows by key, keys at random, that `write` has written with the same keys, seed and value size.
    Read(BenchArgs),
    /// SELECT of the whole table by token ranges, paged.
    Scan(BenchArgs),
    /// The time from exec to the first answered query, page cache dropped, with little data and with much.
    E1(E1Args),
    /// Writes with none, one and three secondary indexes, and queries while old entries are still there.
    E2(E2Args),
    /// Lookups of keys that the index summary samples, and of keys far from a sample.
    E3(E3Args),
    /// Reads after a burst of writes: straight after, after a pause, after a major compaction.
    E4(E4Args),
    /// One column of rows of many blobs, and the same blobs in rows of their own: bytes read for each byte asked for.
    E5(E5Args),
}

/// Measures, and prints what was found.
///
/// # Errors
/// The server cannot be reached, or an operation failed or brought back something that was not written.
pub fn run(command: Command, host: &dyn Host) -> anyhow::Result<()> {
    let throughput = |args: BenchArgs, workload| throughput::run(&BenchArgs { workload, ..args });
    match command {
        Command::Write(args) => throughput(args, Workload::Write),
        Command::Read(args) => throughput(args, Workload::Read),
        Command::Scan(args) => throughput(args, Workload::Scan),
        Command::E1(args) => e1::run(&args, host),
        Command::E2(args) => e2::run(&args, host),
        Command::E3(args) => e3::run(&args, host),
        Command::E4(args) => e4::run(&args, host),
        Command::E5(args) => e5::run(&args, host),
    }
}
