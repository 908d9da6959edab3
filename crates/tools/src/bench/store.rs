//! What is measured: a CQL server over the socket, or a database in this process.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, bail};
use ilion_env::Env;
use ilion_types::Partitioner;
use serde::Serialize;

use crate::bench::connection::Connection;
use crate::bench::files::TableFiles;
use crate::bench::job::Cells;
use crate::bench::process::{ReadBytes, Usage};
use crate::bench::settings::parse_identifier;

/// What the benchmarks need of the program that they are part of.
pub trait Host {
    /// Opens a database in this process, as these settings say (`NAME=VALUE`).
    fn open(&self, directory: &Path, settings: &[String]) -> anyhow::Result<Box<dyn Embedded>>;

    /// The administration of a node of this machine.
    fn admin(&self, port: u16) -> Box<dyn Admin>;
}

/// A database in this process.
pub trait Embedded: Admin {
    /// Executes a statement; returns its rows.
    fn execute(&self, cql: &str) -> anyhow::Result<Vec<Vec<Option<Vec<u8>>>>>;

    /// Prepares a statement.
    fn prepare(&self, cql: &str) -> anyhow::Result<Box<dyn Prepared>>;
}

/// Judges all rows of an answer; gives their number, or what is wrong with them.
pub type Judge<'a> = &'a mut dyn FnMut(&[Cells<'_>]) -> Result<u64, String>;

/// A statement that is prepared in this process.
pub trait Prepared: Send + Sync {
    /// Executes it with serialized values; `judge` is given all its rows.
    fn execute(&self, values: &[&[u8]], judge: Judge<'_>) -> anyhow::Result<Result<u64, String>>;
}

/// What can be asked of a store beside CQL.
pub trait Admin: Send + Sync {
    /// Writes a table's memtables to disk.
    fn flush(&self, keyspace: &str, table: &str) -> anyhow::Result<()>;

    /// Merges all SSTables of a table into one.
    fn compact(&self, keyspace: &str, table: &str) -> anyhow::Result<()>;

    /// SSTables of a table.
    fn sstables(&self, keyspace: &str, table: &str) -> anyhow::Result<u64>;

    /// Bytes read from files since the start, as the store itself counts them.
    fn read_bytes(&self) -> anyhow::Result<u64>;
}

/// Where to run.
#[derive(Clone, Debug, clap::Args)]
pub struct StoreArgs {
    /// The server's address.
    #[arg(long, default_value = "127.0.0.1")]
    pub host: String,
    /// The server's CQL port.
    #[arg(long, default_value_t = 9042)]
    pub port: u16,
    /// Runs in this process instead, without a server, on the data in --data.
    #[arg(long, requires = "data")]
    pub embedded: bool,
    /// The directory of a server of this machine: its files are counted, and their page cache dropped if asked for.
    /// Embedded: the directory to open, created if absent.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Embedded: a setting, as `ilion serve --set` takes it; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", requires = "embedded")]
    pub set: Vec<String>,
    /// The server is an Ilion of this machine with this admin_port.
    #[arg(long, value_name = "PORT", conflicts_with = "embedded")]
    pub admin_port: Option<u16>,
    /// The server's process, on this machine: what it reads becomes part of the result.
    #[arg(long, conflicts_with = "embedded")]
    pub pid: Option<u32>,
    /// Brings the memtables of another server to disk: a command for the shell, such as "nodetool flush".
    #[arg(long, value_name = "COMMAND", conflicts_with = "embedded")]
    pub flush_command: Option<String>,
    /// Has another server do a major compaction: a command for the shell, such as "nodetool compact".
    #[arg(long, value_name = "COMMAND", conflicts_with = "embedded")]
    pub compact_command: Option<String>,
    /// Keyspace of the tables; created with replication factor 1 if it is not there.
    #[arg(long, default_value = "ilion_bench", value_parser = parse_identifier)]
    pub keyspace: String,
}

/// What is measured.
pub struct Store {
    /// Files and clock.
    pub env: Arc<dyn Env>,
    args: StoreArgs,
    embedded: Option<Arc<dyn Embedded>>,
    admin: Option<Box<dyn Admin>>,
}

/// Bytes read so far, by who counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Reads {
    /// From files, as the store counts them.
    pub by_store: Option<u64>,
    /// By system calls of its process, files and sockets.
    pub by_calls: Option<u64>,
    /// By its process from the disk.
    pub from_disk: Option<u64>,
}

impl Store {
    /// Opens the database or sees whether the server answers; makes the keyspace.
    ///
    /// # Errors
    /// It cannot be reached or opened.
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
        store.execute(&format!(
            "CREATE KEYSPACE IF NOT EXISTS {} WITH replication = \
             {{'class': 'SimpleStrategy', 'replication_factor': 1}}",
            args.keyspace
        ))?;
        Ok(store)
    }

    /// The database, if it is in this process.
    pub fn embedded(&self) -> Option<&Arc<dyn Embedded>> {
        self.embedded.as_ref()
    }

    /// Host and port.
    pub fn address(&self) -> String {
        format!("{}:{}", self.args.host, self.args.port)
    }

    /// The table with its keyspace.
    pub fn qualified(&self, table: &str) -> String {
        format!("{}.{table}", self.args.keyspace)
    }

    /// Executes a statement; returns its rows.
    ///
    /// # Errors
    /// It was refused, or the connection broke.
    pub fn execute(&self, cql: &str) -> anyhow::Result<Vec<Vec<Option<Vec<u8>>>>> {
        if let Some(embedded) = &self.embedded {
            return embedded.execute(cql).with_context(|| format!("running {cql}"));
        }
        let rows = Connection::open(&self.address())?.query(cql)?;
        let owned = |cells: Vec<Option<&[u8]>>| cells.iter().map(|cell| cell.map(<[u8]>::to_vec)).collect();
        Ok(rows
            .map(|rows| rows.rows().map(owned).collect())
            .unwrap_or_default())
    }

    /// A text column of `system.local`.
    ///
    /// # Errors
    /// As [`Self::execute`], or it is not there.
    pub fn local(&self, column: &str) -> anyhow::Result<String> {
        let rows = self.execute(&format!("SELECT {column} FROM system.local"))?;
        let cell = rows.into_iter().flatten().next().flatten();
        let bytes = cell.with_context(|| format!("system.local has no {column}"))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// How the store makes tokens of keys.
    ///
    /// # Errors
    /// As [`Self::local`], or nobody knows it.
    pub fn partitioner(&self) -> anyhow::Result<Partitioner> {
        Ok(Partitioner::from_class(&self.local("partitioner")?)?)
    }

    /// Writes a table's memtables to disk.
    ///
    /// # Errors
    /// It failed, or nobody said how.
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
    /// It failed, or nobody said how.
    pub fn compact(&self, table: &str) -> anyhow::Result<()> {
        match (self.admin(), &self.args.compact_command) {
            (Some(admin), _) => admin.compact(&self.args.keyspace, table),
            (None, Some(command)) => shell(command),
            (None, None) => bail!("say how to compact: --compact-command, or --admin-port of an Ilion"),
        }
    }

    /// Whether [`Self::compact`] knows how.
    pub fn can_compact(&self) -> bool {
        self.admin().is_some() || self.args.compact_command.is_some()
    }

    /// SSTables of a table, as the store or its directory tells them.
    ///
    /// # Errors
    /// Whoever was asked did not answer.
    pub fn sstables(&self, table: &str) -> anyhow::Result<Option<u64>> {
        if let Some(admin) = self.admin() {
            return admin.sstables(&self.args.keyspace, table).map(Some);
        }
        let files = self.files(table).map(|files| files.sstables(self.env.as_ref()));
        files.transpose()
    }

    /// The table's files, if it was said where they are.
    pub fn files(&self, table: &str) -> Option<TableFiles> {
        let data = self.args.data.as_ref()?;
        Some(TableFiles::new(data, &self.args.keyspace, table))
    }

    /// Bytes read so far.
    ///
    /// # Errors
    /// Whoever was asked did not answer.
    pub fn reads(&self) -> anyhow::Result<Reads> {
        let own = self.embedded.is_some().then(std::process::id);
        let process = self.args.pid.or(own);
        let process = process.map(|pid| ReadBytes::of(self.env.as_ref(), pid));
        let process = process.transpose()?;
        Ok(Reads {
            by_store: self.admin().map(Admin::read_bytes).transpose()?,
            by_calls: process.map(|read| read.by_calls),
            from_disk: process.map(|read| read.from_disk),
        })
    }

    /// CPU that the server's process has used, if it is known which it is.
    ///
    /// # Errors
    /// There is no such process.
    pub fn cpu_secs(&self) -> anyhow::Result<Option<f64>> {
        let own = self.embedded.is_some().then(std::process::id);
        let usage = self.args.pid.or(own).map(|pid| Usage::of(self.env.as_ref(), pid));
        Ok(usage.transpose()?.map(|usage| usage.cpu_secs))
    }

    fn admin(&self) -> Option<&dyn Admin> {
        match &self.embedded {
            Some(embedded) => Some(embedded.as_ref() as &dyn Admin),
            None => self.admin.as_deref(),
        }
    }
}

/// Runs a command of the user's.
fn shell(command: &str) -> anyhow::Result<()> {
    let status = Command::new("sh").arg("-c").arg(command).status();
    let status = status.with_context(|| format!("running {command}"))?;
    match status.success() {
        true => Ok(()),
        false => bail!("{command}: {status}"),
    }
}
