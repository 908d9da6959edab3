//! Starts a server, sends it one query, and stops it.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use ilion_env::Env;
use serde::Serialize;

use crate::bench::process::{Transferred, Usage};
use crate::bench::read::check_values;
use crate::bench::small_rows::SmallRows;
use ilion_client::{Connection, LoginArgs, Target};

/// Time between two attempts to connect.
const ATTEMPT_EVERY: Duration = Duration::from_micros(500);
/// The measurement fails if the server does not answer within this time.
const PATIENCE_NANOS: u64 = 600_000_000_000;

/// The row that the measurement selects.
pub struct AskedRow<'a> {
    /// All rows.
    pub rows: &'a SmallRows,
    /// Its number.
    pub row: u64,
}

/// The measurement of one start.
#[derive(Clone, Debug, Serialize)]
pub struct Start {
    /// Seconds from exec to the first answered query.
    pub secs: f64,
    /// CPU time of the server until then.
    pub cpu_secs: f64,
    /// Memory of the server at that moment.
    pub memory_bytes: u64,
    /// Bytes read by system calls until then, from the page cache or the disk.
    pub read_bytes: u64,
    /// Bytes read from the disk until then.
    pub disk_bytes: u64,
    /// Bytes of its files in the page cache before the start; `None` if the page cache was not dropped, or if the number is unknown.
    pub cached_bytes_before: Option<u64>,
}

/// A server to start.
pub struct Server<'a> {
    /// Shell command; `None` is this program's `serve`.
    pub command: Option<&'a str>,
    /// Its data directory.
    pub directory: &'a Path,
    /// Settings of `serve`.
    pub settings: &'a [String],
}

impl Server<'_> {
    /// Starts the server, queries it until it answers, and stops it.
    pub fn measure(
        &self,
        env: &Arc<dyn Env>,
        asked: &AskedRow<'_>,
        cached_bytes_before: Option<u64>,
    ) -> anyhow::Result<Start> {
        let port = free_port()?;
        let mut command = self.command_line(port)?;
        let begin = env.monotonic_nanos();
        let mut running = Running(command.spawn().context("starting the server")?);
        let mut connection = running.connect(env.as_ref(), port, begin)?;
        ask(&mut connection, asked)?;
        let secs = (env.monotonic_nanos() - begin) as f64 / 1e9;
        let pid = running.0.id();
        let usage = Usage::of(env.as_ref(), pid)?;
        let read = Transferred::of(env.as_ref(), pid)?;
        drop(connection);
        running.stop()?;
        Ok(Start {
            secs,
            cpu_secs: usage.cpu_secs,
            memory_bytes: usage.memory_bytes,
            read_bytes: read.by_calls,
            disk_bytes: read.from_disk,
            cached_bytes_before,
        })
    }

    fn command_line(&self, port: u16) -> anyhow::Result<Command> {
        let port = port.to_string();
        let mut line = match self.command {
            Some(text) => {
                let data = self.directory.display().to_string();
                let text = text.replace("{data}", &data).replace("{port}", &port);
                let mut line = Command::new("sh");
                line.arg("-c").arg(format!("exec {text}"));
                line
            }
            None => {
                let own = std::env::current_exe().context("looking for this program's file")?;
                let mut line = Command::new(own);
                line.args(["serve", "--admin-port", "0", "--port", &port, "--data"]);
                line.arg(self.directory);
                line.args(self.settings.iter().flat_map(|setting| ["--set", setting]));
                line
            }
        };
        line.stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Ok(line)
    }
}

fn ask(connection: &mut Connection, asked: &AskedRow<'_>) -> anyhow::Result<()> {
    let mut key = String::from("0x");
    for byte in asked.rows.dataset.key(asked.row) {
        write!(key, "{byte:02x}")?;
    }
    let answer = connection.query(&format!("SELECT v FROM {} WHERE k = {key}", asked.rows.table))?;
    let rows: Vec<_> = answer.iter().flat_map(|rows| rows.rows()).collect();
    let [cells] = &rows[..] else {
        bail!("row {}: {} rows came back", asked.row, rows.len());
    };
    check_values(&asked.rows.dataset, asked.row, cells.iter().copied()).map_err(anyhow::Error::msg)
}

fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("looking for a free port")?;
    Ok(listener.local_addr()?.port())
}

/// The process of a server. Dropping it kills the process.
struct Running(Child);

impl Running {
    /// Waits until the server accepts a session.
    fn connect(&mut self, env: &dyn Env, port: u16, begin_nanos: u64) -> anyhow::Result<Connection> {
        let target = Target::new("127.0.0.1", port, &LoginArgs::default());
        loop {
            // The server may not listen yet.
            if let Ok(connection) = Connection::open(&target) {
                return Ok(connection);
            }
            if let Some(status) = self.0.try_wait()? {
                bail!("the server ended before it answered: {status}");
            }
            if env.monotonic_nanos() - begin_nanos > PATIENCE_NANOS {
                bail!(
                    "the server did not answer in {} s",
                    PATIENCE_NANOS / 1_000_000_000
                );
            }
            thread::sleep(ATTEMPT_EVERY);
        }
    }

    /// Sends SIGTERM and waits for the end of the process.
    fn stop(mut self) -> anyhow::Result<()> {
        let pid = self.0.id().to_string();
        Command::new("kill").args(["-TERM", &pid]).status()?;
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail if the process has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
