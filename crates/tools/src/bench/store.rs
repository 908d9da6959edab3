//! The target of an experiment: a CQL server over the socket, or a database in this process.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use ilion_env::Env;
use ilion_types::Partitioner;
use serde::Serialize;

use crate::bench::files::TableFiles;
use crate::bench::job::Cells;
use crate::bench::process::{Transferred, Usage};
use crate::bench::settings::{create_keyspace, parse_identifier};
use crate::bench::work::PROTOCOL;
use ilion_client::{Connection, LoginArgs, Target};

/// Longest build of the index of an empty table, in seconds.
const BUILD_SECS_MAX: u64 = 60;

/// The interface to the program that contains the benchmarks.
pub trait Host {
    /// Opens a database in this process with these settings (`NAME=VALUE`).
    fn open(&self, directory: &Path, settings: &[String]) -> anyhow::Result<Box<dyn Embedded>>;

    /// The administration of a node on this machine.
    fn admin(&self, port: u16) -> Box<dyn Admin>;
}

/// A database in this process.
pub trait Embedded: Admin {
    /// Executes a statement; returns its rows.
    fn execute(&self, cql: &str) -> anyhow::Result<Vec<Vec<Option<Vec<u8>>>>>;

    /// Prepares a statement.
    fn prepare(&self, cql: &str) -> anyhow::Result<Box<dyn Prepared>>;
}

/// Checks all rows of an answer. Returns their number, or what is wrong.
pub type Judge<'a> = &'a mut dyn FnMut(&[Cells<'_>]) -> Result<u64, String>;

/// A prepared statement of a database in this process.
pub trait Prepared: Send + Sync {
    /// Executes the statement with serialized values; calls `judge` with all rows.
    fn execute(&self, values: &[&[u8]], judge: Judge<'_>) -> anyhow::Result<Result<u64, String>>;
}

/// Operations of a store besides CQL.
pub trait Admin: Send + Sync {
    /// Writes a table's memtables to disk.
    fn flush(&self, keyspace: &str, table: &str) -> anyhow::Result<()>;

    /// Merges all SSTables of a table into one.
    fn compact(&self, keyspace: &str, table: &str) -> anyhow::Result<()>;

    /// Number of SSTables of a table.
    fn sstables(&self, keyspace: &str, table: &str) -> anyhow::Result<u64>;

    /// Bytes read from files since the start, as counted by the store.
    fn read_bytes(&self) -> anyhow::Result<u64>;
}

/// Arguments that select the store.
#[derive(Clone, Debug, clap::Args)]
pub struct StoreArgs {
    /// The server's address.
    #[arg(long, default_value = "127.0.0.1")]
    pub host: String,
    /// The server's CQL port.
    #[arg(long, default_value_t = 9042)]
    pub port: u16,
    #[command(flatten)]
    pub login: LoginArgs,
    /// Runs in this process, without a server, on the data in --data.
    #[arg(long, requires = "data")]
    pub embedded: bool,
    /// The directory of a server on this machine, for counting its files and dropping their page cache.
    /// Embedded: the directory to open, created if absent.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Embedded: a setting, as for `ilion serve --set`; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", requires = "embedded")]
    pub set: Vec<String>,
    /// The server is an Ilion on this machine with this admin_port.
    #[arg(long, value_name = "PORT", conflicts_with = "embedded")]
    pub admin_port: Option<u16>,
    /// Id of the server's process on this machine: adds its reads to the result.
    #[arg(long, conflicts_with = "embedded")]
    pub pid: Option<u32>,
    /// Shell command that flushes another server, such as "nodetool flush".
    #[arg(long, value_name = "COMMAND", conflicts_with = "embedded")]
    pub flush_command: Option<String>,
    /// Shell command that runs a major compaction of another server, such as "nodetool compact".
    #[arg(long, value_name = "COMMAND", conflicts_with = "embedded")]
    pub compact_command: Option<String>,
    /// Keyspace of the tables; created with replication factor 1 if it does not exist.
    #[arg(long, default_value = "ilion_bench", value_parser = parse_identifier)]
    pub keyspace: String,
}

/// The target of an experiment.
pub struct Store {
    /// Files and clock.
    pub env: Arc<dyn Env>,
    args: StoreArgs,
    embedded: Option<Arc<dyn Embedded>>,
    admin: Option<Box<dyn Admin>>,
}

/// Bytes read so far, by who counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ReadTotals {
    /// Counted by the store: reads of files.
    pub by_store: Option<u64>,
    /// Counted by the system: read calls of the process, for files and sockets.
    pub by_calls: Option<u64>,
    /// Counted by the system: reads of the process from the disk.
    pub from_disk: Option<u64>,
}

impl Store {
    /// Opens the database, or checks that the server answers; creates the keyspace.
    ///
    /// # Errors
    /// The store cannot be reached or opened.
    pub fn open(env: &Arc<dyn Env>, args: &StoreArgs, host: &dyn Host) -> anyhow::Result<Self> {
        let embedded = match (&args.data, args.embedded) {
            (Some(directory), true) => Some(Arc::from(host.open(directory, &args.set)?)),
            _ => None,
        };
        let store = Self {
            env: Arc::clone(env),
            args: args.clone(),
            embedded,
            admin: args.admin_port.map(|port| host.admin(port)),
        };
        store.execute(&create_keyspace(&args.keyspace))?;
        Ok(store)
    }

    /// The database, if the store is in this process.
    pub fn embedded(&self) -> Option<&Arc<dyn Embedded>> {
        self.embedded.as_ref()
    }

    /// The server, and the role that logs in.
    pub fn target(&self) -> Target {
        Target::new(&self.args.host, self.args.port, &self.args.login).with_newest(PROTOCOL)
    }

    /// The name of a table, with its keyspace.
    pub fn qualified(&self, table: &str) -> String {
        format!("{}.{table}", self.args.keyspace)
    }

    /// Executes a statement; returns its rows.
    ///
    /// # Errors
    /// The statement was refused, or the connection broke.
    pub fn execute(&self, cql: &str) -> anyhow::Result<Vec<Vec<Option<Vec<u8>>>>> {
        if let Some(embedded) = &self.embedded {
            return embedded.execute(cql).with_context(|| format!("running {cql}"));
        }
        let rows = Connection::open(&self.target())?.query(cql)?;
        let owned = |cells: Vec<Option<&[u8]>>| cells.iter().map(|cell| cell.map(<[u8]>::to_vec)).collect();
        Ok(rows
            .map(|rows| rows.rows().map(owned).collect())
            .unwrap_or_default())
    }

    /// A text column of `system.local`.
    ///
    /// # Errors
    /// As [`Self::execute`], or the column does not exist.
    pub fn local(&self, column: &str) -> anyhow::Result<String> {
        let rows = self.execute(&format!("SELECT {column} FROM system.local"))?;
        let cell = rows.into_iter().flatten().next().flatten();
        let bytes = cell.with_context(|| format!("system.local has no {column}"))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The partitioner of the store.
    ///
    /// # Errors
    /// As [`Self::local`], or the partitioner is unknown.
    pub fn partitioner(&self) -> anyhow::Result<Partitioner> {
        Ok(Partitioner::from_class(&self.local("partitioner")?)?)
    }

    /// Waits until the index on a column with numbers can be queried.
    ///
    /// # Errors
    /// It cannot be queried for a long time.
    pub fn await_index(&self, table: &str, column: &str) -> anyhow::Result<()> {
        let begin = self.env.monotonic_nanos();
        loop {
            match self.execute(&format!("SELECT {column} FROM {table} WHERE {column} = 0")) {
                Ok(_) => return Ok(()),
                Err(error) if self.env.monotonic_nanos() - begin > BUILD_SECS_MAX * 1_000_000_000 => {
                    bail!("the index on {table} ({column}) is not built: {error}")
                }
                Err(_) => thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    /// Writes a table's memtables to disk.
    ///
    /// # Errors
    /// The flush failed, or no argument says how to flush.
    pub fn flush(&self, table: &str) -> anyhow::Result<()> {
        match (self.admin(), &self.args.flush_command) {
            (Some(admin), _) => admin.flush(&self.args.keyspace, table),
            (None, Some(command)) => shell(command),
            (None, None) => bail!("say how to flush: --flush-command, or --admin-port of an Ilion"),
        }
    }

    /// Merges all SSTables of a table into one.
    ///
    /// # Errors
    /// The compaction failed, or no argument says how to compact.
    pub fn compact(&self, table: &str) -> anyhow::Result<()> {
        match (self.admin(), &self.args.compact_command) {
            (Some(admin), _) => admin.compact(&self.args.keyspace, table),
            (None, Some(command)) => shell(command),
            (None, None) => bail!("say how to compact: --compact-command, or --admin-port of an Ilion"),
        }
    }

    /// True if [`Self::compact`] is possible.
    pub fn can_compact(&self) -> bool {
        self.admin().is_some() || self.args.compact_command.is_some()
    }

    /// Number of SSTables of a table, from the store or its directory.
    ///
    /// # Errors
    /// The store does not answer, or the directory cannot be read.
    pub fn sstables(&self, table: &str) -> anyhow::Result<Option<u64>> {
        if let Some(admin) = self.admin() {
            return admin.sstables(&self.args.keyspace, table).map(Some);
        }
        let files = self.files(table).map(|files| files.sstables(self.env.as_ref()));
        files.transpose()
    }

    /// The files of the table; `None` without `--data`.
    pub fn files(&self, table: &str) -> Option<TableFiles> {
        let data = self.args.data.as_ref()?;
        Some(TableFiles::new(data, &self.args.keyspace, table))
    }

    /// Bytes that the store has read so far.
    ///
    /// # Errors
    /// The store does not answer, or there is no such process.
    pub fn reads(&self) -> anyhow::Result<ReadTotals> {
        let process = self.transferred()?;
        Ok(ReadTotals {
            by_store: self.admin().map(Admin::read_bytes).transpose()?,
            by_calls: process.map(|read| read.by_calls),
            from_disk: process.map(|read| read.from_disk),
        })
    }

    /// CPU time of the store's process; `None` if the process is unknown.
    ///
    /// # Errors
    /// There is no such process.
    pub fn cpu_secs(&self) -> anyhow::Result<Option<f64>> {
        Ok(self.usage()?.map(|usage| usage.cpu_secs))
    }

    /// CPU and memory of the store's process; `None` if the process is unknown.
    ///
    /// # Errors
    /// There is no such process.
    pub fn usage(&self) -> anyhow::Result<Option<Usage>> {
        let usage = self.process().map(|pid| Usage::of(self.env.as_ref(), pid));
        usage.transpose()
    }

    /// Bytes that the store's process has read and written; `None` if the process is unknown.
    ///
    /// # Errors
    /// There is no such process.
    pub fn transferred(&self) -> anyhow::Result<Option<Transferred>> {
        let transferred = self.process().map(|pid| Transferred::of(self.env.as_ref(), pid));
        transferred.transpose()
    }

    fn process(&self) -> Option<u32> {
        self.args.pid.or(self.embedded.is_some().then(std::process::id))
    }

    fn admin(&self) -> Option<&dyn Admin> {
        match &self.embedded {
            Some(embedded) => Some(embedded.as_ref() as &dyn Admin),
            None => self.admin.as_deref(),
        }
    }
}

/// Runs a shell command.
fn shell(command: &str) -> anyhow::Result<()> {
    let status = Command::new("sh").arg("-c").arg(command).status();
    let status = status.with_context(|| format!("running {command}"))?;
    match status.success() {
        true => Ok(()),
        false => bail!("{command}: {status}"),
    }
}
