//! A server that is started, asked and stopped.

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

use crate::bench::connection::Connection;
use crate::bench::process::{ReadBytes, Usage};
use crate::bench::read::check_values;
use crate::bench::small_rows::SmallRows;

/// Between two attempts to connect.
const ATTEMPT_EVERY: Duration = Duration::from_micros(500);
/// A server that does not answer after so long never will.
const PATIENCE_NANOS: u64 = 600_000_000_000;

/// A row to ask for.
pub struct Asked<'a> {
    /// All rows.
    pub rows: &'a SmallRows,
    /// Which.
    pub row: u64,
}

/// One start.
#[derive(Clone, Debug, Serialize)]
pub struct Start {
    /// From exec to the first answered query.
    pub secs: f64,
    /// CPU of the server until then.
    pub cpu_secs: f64,
    /// Memory of the server then.
    pub memory_bytes: u64,
    /// What it had read by system calls, from the page cache or the disk.
    pub read_bytes: u64,
    /// What it had read from the disk.
    pub disk_bytes: u64,
    /// What the page cache had of its files before the start, if it was dropped and the system tells.
    pub cached_bytes_before: Option<u64>,
}

/// What to start.
pub struct Server<'a> {
    /// For the shell; nothing is this program's `serve`.
    pub command: Option<&'a str>,
    /// Where its data is.
    pub directory: &'a Path,
    /// Settings of `serve`.
    pub settings: &'a [String],
}

impl Server<'_> {
    /// Starts it, asks it until it answers, and stops it.
    pub fn measure(
        &self,
        env: &Arc<dyn Env>,
        asked: &Asked<'_>,
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
        let read = ReadBytes::of(env.as_ref(), pid)?;
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

fn ask(connection: &mut Connection, asked: &Asked<'_>) -> anyhow::Result<()> {
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

/// A server's process; killed when something went wrong.
struct Running(Child);

impl Running {
    /// Waits until it takes a session.
    fn connect(&mut self, env: &dyn Env, port: u16, begin_nanos: u64) -> anyhow::Result<Connection> {
        let address = format!("127.0.0.1:{port}");
        loop {
            // Nobody may be listening yet.
            if let Ok(connection) = Connection::open(&address) {
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

    /// Asks it to stop, and waits until it has.
    fn stop(mut self) -> anyhow::Result<()> {
        let pid = self.0.id().to_string();
        Command::new("kill").args(["-TERM", &pid]).status()?;
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail where it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
