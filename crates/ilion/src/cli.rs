//! The command line.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

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
    /// Merges the SSTables of each table into one; returns when that is done.
    Compact(TableArguments),
    /// Forgets what caches hold: rows, counters, keys or chunks, or all of them.
    InvalidateCaches(CacheArguments),
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
    #[arg(long, value_enum)]
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

/// How to run a node. Flags beat ILION_* variables, which beat the file; docs/settings.md lists all settings.
#[derive(Args, Default)]
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
    /// Port of metrics and administration on 127.0.0.1; 0 takes a free one [default: 9043].
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
    /// The node's admin_port.
    #[arg(long, value_name = "PORT", env = "ILION_ADMIN_PORT", default_value_t = 9043)]
    pub admin_port: u16,
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
