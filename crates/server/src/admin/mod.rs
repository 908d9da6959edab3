//! The door for operators: HTTP on the loopback address.
//!
//! | request | answer |
//! | --- | --- |
//! | `GET /metrics` | counters, for Prometheus |
//! | `GET /admin/status` | JSON: [`StatusReport`] |
//! | `GET /admin/info` | JSON: [`InfoReport`] |
//! | `POST /admin/flush`, `/admin/compact` | `?keyspace=k&table=t`, both optional: which tables; answered when done |
//! | `POST /admin/drain` | everything to disk; answered when done |
//!
//! Errors are `{"error": ".."}` with status 400 (asked wrongly) or 500 (failed). Only this machine reaches it, and a
//! browser's page does not: requests with an `Origin` are refused, and so are those for another `Host`.

mod client;
mod door;
mod of_engine;
mod report;

pub use client::{AdminClient, ClientError};
pub use door::{AdminDoor, DoorError};
pub use of_engine::EngineAdmin;
pub use report::{InfoReport, StatusReport, TableReport};

/// What an operator can ask for.
pub trait Admin: Send + Sync {
    /// How it goes.
    fn status(&self) -> StatusReport;
    /// Who and what it is.
    fn info(&self) -> InfoReport;
    /// Writes memtables to disk.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn flush(&self, tables: &TableChoice) -> Result<u64, AdminError>;
    /// Merges the SSTables of tables into one each.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn compact(&self, tables: &TableChoice) -> Result<u64, AdminError>;
    /// Brings everything to disk, so that the next start has nothing to replay.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn drain(&self) -> Result<(), AdminError>;
    /// Counters in the text format of Prometheus.
    fn metrics(&self) -> String;
}

/// Which tables are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
pub struct TableChoice {
    /// Only of this keyspace.
    pub keyspace: Option<String>,
    /// Only this one; needs the keyspace.
    pub table: Option<String>,
}

/// Why it was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdminError {
    /// The request makes no sense; ask for something else.
    #[error("{0}")]
    Refused(String),
    /// It failed; the log has more.
    #[error("{0}")]
    Failed(String),
}
