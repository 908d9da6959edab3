//! The command line.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use ilion_server::settings::parse_address;

/// A Cassandra-compatible column-family store.
///
/// Exit codes: 0 done; 1 it failed, stderr says why; 2 wrong arguments or settings; 130 stopped by a second signal.
#[derive(Parser)]
#[command(name = "ilion", version, max_term_width = 110)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Subcommand)]
pub enum Command {
    /// Runs a node until SIGINT or SIGTERM.
    Serve(ServeArguments),
    /// Says how a running node of this machine is doing, and lists its tables.
    Status(AdminArguments),
    /// Says who and what a running node is.
    Info(AdminArguments),
    /// Writes memtables to disk; returns when they are there.
    Flush(TableArguments),
    /// Merges the SSTables of each table as far as its strategy likes it, or only some; returns when that is done.
    Compact(CompactArguments),
    /// Lists the compactions that go on and the tables where some are due.
    Compactions(AdminArguments),
    /// Stops compactions; their inputs stay in use.
    Stop(StopArguments),
    /// Switches compactions that nobody asks for on or off, until the next start.
    Autocompaction(AutocompactionArguments),
    /// Limits how fast compactions read, all together, until the next start.
    CompactionThroughput(ThroughputArguments),
    /// Forgets what caches hold: rows, counters, keys or chunks, or all of them.
    InvalidateCaches(CacheArguments),
    /// Changes what a cache may take, until the next start.
    SetCacheCapacity(CacheCapacityArguments),
    /// Changes how many keys of a cache are saved, until the next start.
    SetCacheKeysToSave(CacheKeysArguments),
    /// Lists what statements have cost, those that took most time first; or forgets it (reset).
    Statements(StatementsArguments),
    /// Tells or sets how many requests are traced that do not ask for it, until the next start.
    TraceProbability(TraceProbabilityArguments),
    /// Tells of tables in detail: sizes, reads and writes.
    TableStats(TableArguments),
    /// Tells percentiles of tables: latencies, SSTables per read, sizes and cells of partitions.
    TableHistograms(TableArguments),
    /// Makes an index anew, or compares it with its table.
    #[command(subcommand)]
    Index(IndexCommand),
    /// Counts for a while which partitions are read and written most.
    TopPartitions(TopPartitionsArguments),
    /// Brings everything to disk, so that the next start has nothing to replay.
    Drain(AdminArguments),
    /// Measures any CQL server over the socket, or Ilion in this process.
    #[command(subcommand)]
    Bench(ilion_tools::bench::Command),
    /// Looks into SSTable files, checks them, makes new ones of them, brings them into tables and out of tables.
    #[command(subcommand)]
    Sstable(SstableCommand),
}

/// What to do with SSTable files. All but import and export need no node.
#[derive(Subcommand)]
pub enum SstableCommand {
    #[command(flatten)]
    Offline(ilion_tools::sstable::Command),
    /// Has a running node of this machine put the SSTables of a table into a directory, as hard links where it can.
    Export(ExportArguments),
    /// Has a running node of this machine take the SSTables of a directory into a table; exit code 1 if it left some alone.
    Import(ImportArguments),
}

/// What to export, and where to.
#[derive(Args)]
pub struct ExportArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// Writes the SSTables anew in this format; without it they stay as they are.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<ilion_tools::sstable::TargetFormat>,
    /// The table's keyspace.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// An empty directory; made if it is not there.
    #[arg(value_name = "OUT_DIR")]
    pub directory: PathBuf,
}

/// What to import.
#[derive(Args)]
pub struct ImportArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// Leaves the files where they are; without it they are removed once they are in the table.
    #[arg(long)]
    pub copy_data: bool,
    /// The table's keyspace.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// A directory with SSTables of the table.
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// How to run a node.
#[derive(Args, Default)]
#[command(
    after_help = "Flags beat ILION_* variables, which beat the file. docs/settings.md lists all settings."
)]
pub struct ServeArguments {
    /// Directory of data, commit log and logs [default: ilion-data].
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Port of CQL clients; 0 takes a free one [default: 9042].
    #[arg(long)]
    pub port: Option<u16>,
    /// Address that CQL clients connect to [default: 127.0.0.1].
    #[arg(long, value_name = "IP")]
    pub address: Option<IpAddr>,
    /// Port of dashboard, metrics and administration; 0 takes a free one [default: 9043].
    #[arg(long, value_name = "PORT")]
    pub admin_port: Option<u16>,
    /// Settings file (YAML, with the names of cassandra.yaml).
    #[arg(long, value_name = "FILE", env = "ILION_CONFIG")]
    pub config: Option<PathBuf>,
    /// Any setting by its name in the file; may be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
}

/// Which node.
#[derive(Args)]
pub struct AdminArguments {
    /// The node's admin_address.
    #[arg(long, value_name = "IP", env = "ILION_ADMIN_ADDRESS", default_value = "127.0.0.1", value_parser = parse_address)]
    pub admin_address: IpAddr,
    /// The node's admin_port.
    #[arg(long, value_name = "PORT", env = "ILION_ADMIN_PORT", default_value_t = 9043)]
    pub admin_port: u16,
    /// The node's admin_token_file.
    #[arg(long, value_name = "FILE", env = "ILION_ADMIN_TOKEN_FILE")]
    pub admin_token_file: Option<PathBuf>,
    /// Prints JSON.
    #[arg(long)]
    pub json: bool,
}

/// Which cache of which node.
#[derive(Args)]
pub struct CacheArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// Only this one: rows, counters, keys or chunks.
    pub cache: Option<String>,
}

/// How large a cache is to be.
#[derive(Args)]
pub struct CacheCapacityArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// rows, counters, keys or chunks.
    pub cache: String,
    /// MiB; 0 is no cache.
    pub mebibytes: u64,
}

/// How many keys of a cache are to be saved.
#[derive(Args)]
pub struct CacheKeysArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// rows, counters or keys.
    pub cache: String,
    /// So many; -1 is all.
    #[arg(allow_hyphen_values = true, value_parser = clap::value_parser!(i64).range(-1..))]
    pub keys: i64,
}

/// What to tell of statements.
#[derive(Args)]
pub struct StatementsArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// So many of them.
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    pub top: usize,
    /// Forgets what they have cost.
    #[arg(value_enum)]
    pub action: Option<StatementsAction>,
}

/// What to do with what is known of statements.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum StatementsAction {
    Reset,
}

/// Which partitions to count.
#[derive(Args)]
pub struct TopPartitionsArguments {
    #[command(flatten)]
    pub tables: TableArguments,
    /// For so long.
    #[arg(long, value_name = "MILLIS", default_value_t = 10_000)]
    pub duration: u64,
    /// So many of each kind.
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub top: usize,
}

/// How many requests to trace.
#[derive(Args)]
pub struct TraceProbabilityArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// From 0 (none) to 1 (all); without it, what it is now is told.
    pub probability: Option<f64>,
}

/// Which tables of which node.
#[derive(Args)]
pub struct TableArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// Only this keyspace.
    pub keyspace: Option<String>,
    /// Only this table of it.
    pub table: Option<String>,
}

/// What to compact.
#[derive(Args)]
pub struct CompactArguments {
    #[command(flatten)]
    pub tables: TableArguments,
    /// Only SSTables with tokens above this.
    #[arg(long, value_name = "TOKEN", allow_hyphen_values = true)]
    pub start_token: Option<String>,
    /// Only SSTables with tokens up to this.
    #[arg(long, value_name = "TOKEN", allow_hyphen_values = true)]
    pub end_token: Option<String>,
    /// Several SSTables where the strategy would make one.
    #[arg(long)]
    pub split_output: bool,
    /// Only these: names or paths of Data.db.
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["start_token", "end_token", "split_output"])]
    pub user_defined: Vec<String>,
}

/// What to do with an index.
#[derive(Subcommand)]
pub enum IndexCommand {
    /// Makes it anew from its table; it is not asked meanwhile. Returns when it is built.
    Rebuild(IndexArguments),
    /// Compares it with its table, row by row and entry by entry, and tells what is wrong.
    Verify(VerifyIndexArguments),
}

/// Which index.
#[derive(Args)]
pub struct IndexArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub index: String,
}

/// Which index to compare, and what to do then.
#[derive(Args)]
pub struct VerifyIndexArguments {
    #[command(flatten)]
    pub index: IndexArguments,
    /// Puts right what is wrong.
    #[arg(long)]
    pub repair: bool,
}

/// Which compactions to stop.
#[derive(Args)]
pub struct StopArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// Only this one, of those that `ilion compactions` lists.
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
}

/// Whether tables are compacted without being asked.
#[derive(Args)]
pub struct AutocompactionArguments {
    /// on or off.
    #[arg(value_enum)]
    pub switch: Switch,
    #[command(flatten)]
    pub tables: TableArguments,
}

/// On or off.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Switch {
    On,
    Off,
}

/// How fast compactions may read.
#[derive(Args)]
pub struct ThroughputArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// MiB a second; 0 is no limit.
    pub mebibytes_per_sec: u64,
}

impl ServeArguments {
    /// The settings that flags have, by name.
    pub fn flags(&self) -> Vec<(&'static str, &'static str, String)> {
        let mut flags = Vec::new();
        if let Some(data) = &self.data {
            flags.push(("--data", "directory", data.display().to_string()));
        }
        if let Some(port) = self.port {
            flags.push(("--port", "native_transport_port", port.to_string()));
        }
        if let Some(address) = self.address {
            flags.push(("--address", "rpc_address", address.to_string()));
        }
        if let Some(port) = self.admin_port {
            flags.push(("--admin-port", "admin_port", port.to_string()));
        }
        flags
    }
}
