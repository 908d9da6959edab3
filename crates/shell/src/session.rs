//! [`Session`]: the place where statements are executed, and its answers.

use bytes::Bytes;
use ilion_protocol::{ColumnSpec, Consistency, ErrorResponse, Rows, Values};
use ilion_types::CqlType;
use uuid::Uuid;

/// The circumstances of an execution.
#[derive(Clone, Debug)]
pub struct How {
    /// Consistency of reads and writes.
    pub consistency: Consistency,
    /// Consistency of conditions.
    pub serial_consistency: Consistency,
    /// Rows in a page; `None` means that all rows are one page.
    pub page_size: Option<u32>,
    /// The state of the previous page.
    pub paging_state: Option<Bytes>,
    /// True if the execution is traced.
    pub is_traced: bool,
}

/// The answer to a statement.
#[derive(Debug)]
pub struct Answer {
    /// What the statement returns.
    pub body: Body,
    /// Warnings of the server, as sentences for people.
    pub warnings: Vec<String>,
    /// The id of the trace, if the execution was traced.
    pub trace: Option<Uuid>,
}

/// What a statement returns.
#[derive(Debug)]
pub enum Body {
    /// The statement has no result.
    Done,
    /// One page of rows.
    Rows(Rows),
    /// The keyspace of the session from now on.
    Keyspace(String),
    /// The statement has changed the schema, and has no other result.
    SchemaChanged,
}

/// Why a statement was not executed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The server refused the statement, or failed. Its author must change it, or try again.
    #[error("{0}")]
    Refused(Box<ErrorResponse>),
    /// There is no connection any more. The next statement tries to connect again.
    #[error("{0}")]
    Lost(String),
    /// A session of this kind cannot do this.
    #[error("{0}")]
    Impossible(&'static str),
}

/// Where a session executes its statements.
#[derive(Clone, Debug)]
pub enum SessionTarget {
    /// On a server.
    Server {
        /// Its host and port.
        address: String,
        /// Version of the native protocol.
        protocol: u8,
    },
    /// In this process.
    Directory(String),
}

/// A row to write.
#[derive(Clone, Debug)]
pub struct WriteRow {
    /// The values of the markers.
    pub values: Values,
    /// The row as it was read.
    pub source: Vec<u8>,
    /// The line where it was read.
    pub line: u64,
    /// Its number in the feed.
    pub number: u64,
}

/// How the rows of a feed are sent.
#[derive(Clone, Debug)]
pub struct Packing {
    /// Requests that are under way at once.
    pub requests_max: usize,
    /// Most rows in a request; at least 1.
    pub rows_max: usize,
    /// Rows with the same values here write the same cells. Each column: the place among the values of a row, and the type.
    pub key: Vec<(usize, CqlType)>,
}

/// Rows to write, one after another, and what became of them.
pub trait RowFeed {
    /// The next row; `None` at the end.
    fn next(&mut self) -> Option<WriteRow>;

    /// Reports the outcome of a row.
    fn done(&mut self, row: WriteRow, outcome: Result<(), Failure>);

    /// Reports that the outcome of a row is unknown, because the connection broke.
    fn lost(&mut self, row: WriteRow);
}

/// A place where statements are executed.
pub trait Session {
    /// Executes a statement up to its first page, or up to the next one after a paging state.
    ///
    /// # Errors
    /// See [`Failure`].
    fn execute(&mut self, cql: &str, how: &How) -> Result<Answer, Failure>;

    /// Prepares an INSERT for [`Self::write_rows`]; returns its markers.
    ///
    /// # Errors
    /// See [`Failure`].
    fn prepare(&mut self, cql: &str) -> Result<Vec<ColumnSpec>, Failure>;

    /// Executes the INSERT that was prepared last, for each row of a feed. Every row that was taken from the feed is given back with its
    /// outcome.
    ///
    /// # Errors
    /// The connection broke, or nothing was prepared. The rest of the feed is not taken.
    fn write_rows(&mut self, how: &How, packing: &Packing, rows: &mut dyn RowFeed) -> Result<(), Failure>;

    /// Continues as another role.
    ///
    /// # Errors
    /// The password is wrong, or sessions of this kind have no logins. Then the session is unchanged.
    fn log_in(&mut self, role: &str, password: &str) -> Result<(), Failure>;

    /// Where the statements are executed.
    fn target(&self) -> SessionTarget;
}

impl Default for How {
    fn default() -> Self {
        Self {
            consistency: Consistency::One,
            serial_consistency: Consistency::Serial,
            page_size: None,
            paging_state: None,
            is_traced: false,
        }
    }
}
