//! Why a statement failed.
//!
//! One variant per error code of the native protocol, so that the server's mapping is a table. Only [`Error::Overtaken`] shares the code
//! of another variant: nodes of a cluster use it among themselves. Messages are for the client and mean the same as Cassandra's.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Consistency;

/// Why a statement failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Error {
    /// 0x0000: a bug. Report it.
    ServerError(String),
    /// 0x000A: the message broke the protocol.
    Protocol(String),
    /// 0x0100: wrong user or password.
    BadCredentials(String),
    /// 0x1000: too few replicas are alive for the consistency.
    Unavailable {
        /// The requested level.
        consistency: Consistency,
        /// Replicas that the level needs.
        required: i32,
        /// Replicas that are alive.
        alive: i32,
    },
    /// 0x1001: the server has too much work now. Retry later.
    Overloaded(String),
    /// A schema change that the coordinator did not know came before a command in the log, so no replica has written anything. Only between
    /// nodes: [`crate::QueryProcessor`] plans the statement again. If that does not help, its client gets [`Self::Overloaded`].
    Overtaken,
    /// 0x1002: the server is still starting. Retry later or on another node.
    IsBootstrapping(String),
    /// 0x1003: TRUNCATE did not succeed.
    Truncate(String),
    /// 0x1100: the write was not acknowledged in time.
    WriteTimeout {
        /// The requested level.
        consistency: Consistency,
        write_type: WriteType,
        /// Replicas that acknowledged the write.
        received: i32,
        /// Replicas that the level needs.
        block_for: i32,
        /// The message for the client.
        message: String,
    },
    /// 0x1200: the read took too long.
    ReadTimeout {
        /// The requested level.
        consistency: Consistency,
        /// Replicas that answered.
        received: i32,
        /// Replicas that must answer.
        block_for: i32,
        /// The message for the client.
        message: String,
    },
    /// 0x1300: the read failed on its replica.
    ReadFailure {
        /// The requested level.
        consistency: Consistency,
        /// The cause, as a code of the protocol.
        reason: FailureReason,
        /// The message for the client.
        message: String,
    },
    /// 0x1400: a function failed.
    FunctionFailure {
        /// Its keyspace.
        keyspace: String,
        /// Its name.
        function: String,
        /// Types of its arguments.
        argument_types: Vec<String>,
        /// The message of the function.
        message: String,
    },
    /// 0x1500: the write failed on its replica.
    WriteFailure {
        /// The requested level.
        consistency: Consistency,
        write_type: WriteType,
        /// The cause, as a code of the protocol.
        reason: FailureReason,
        /// The message for the client.
        message: String,
    },
    /// 0x1600: change data capture has no space left.
    CdcWriteFailure(String),
    /// 0x1700: a conditional write may or may not have been applied.
    CasWriteUnknown {
        /// The requested level.
        consistency: Consistency,
        /// Replicas that acknowledged the write.
        received: i32,
        /// Replicas that the level needs.
        block_for: i32,
        /// The message for the client.
        message: String,
    },
    /// 0x2000: the text is not CQL.
    Syntax(String),
    /// 0x2100: the user may not do this.
    Unauthorized(String),
    /// 0x2200: the statement is not possible with this schema, these values, or this server.
    Invalid(String),
    /// 0x2300: the value of an option is not possible.
    Config(String),
    /// 0x2400: the keyspace or table already exists.
    AlreadyExists {
        /// The keyspace.
        keyspace: String,
        /// The table; empty for a keyspace.
        table: String,
    },
    /// 0x2500: no statement is prepared under this id. Prepare it again.
    Unprepared {
        /// The id.
        id: Vec<u8>,
    },
}

/// The kind of a failed write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WriteType {
    /// One partition.
    Simple,
    /// A logged batch.
    Batch,
    /// An unlogged batch.
    UnloggedBatch,
    /// A counter.
    Counter,
    /// A conditional write.
    Cas,
    /// The record of a logged batch, written before its parts.
    BatchLog,
}

impl WriteType {
    /// Its name in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simple => "SIMPLE",
            Self::Batch => "BATCH",
            Self::UnloggedBatch => "UNLOGGED_BATCH",
            Self::Counter => "COUNTER",
            Self::Cas => "CAS",
            Self::BatchLog => "BATCH_LOG",
        }
    }
}

/// Why a replica failed (`RequestFailureReason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u16)]
pub enum FailureReason {
    /// Any other cause.
    Unknown = 0,
    /// `tombstone_failure_threshold`.
    ReadTooManyTombstones = 1,
    /// A timeout.
    Timeout = 2,
    /// An index that the query needs is still being built.
    IndexNotAvailable = 6,
}

impl Error {
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }

    /// A name without a keyspace, from a client without one. Compat: `RequestValidations` and `ClientState` of Cassandra 5.0.
    pub(crate) fn no_keyspace() -> Self {
        Self::invalid(
            "No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename",
        )
    }

    /// The text for the client.
    pub fn message(&self) -> String {
        self.to_string()
    }

    /// The error code of the native protocol.
    pub fn code(&self) -> u32 {
        match self {
            Self::ServerError(_) => 0x0000,
            Self::Protocol(_) => 0x000A,
            Self::BadCredentials(_) => 0x0100,
            Self::Unavailable { .. } => 0x1000,
            Self::Overloaded(_) | Self::Overtaken => 0x1001,
            Self::IsBootstrapping(_) => 0x1002,
            Self::Truncate(_) => 0x1003,
            Self::WriteTimeout { .. } => 0x1100,
            Self::ReadTimeout { .. } => 0x1200,
            Self::ReadFailure { .. } => 0x1300,
            Self::FunctionFailure { .. } => 0x1400,
            Self::WriteFailure { .. } => 0x1500,
            Self::CdcWriteFailure(_) => 0x1600,
            Self::CasWriteUnknown { .. } => 0x1700,
            Self::Syntax(_) => 0x2000,
            Self::Unauthorized(_) => 0x2100,
            Self::Invalid(_) => 0x2200,
            Self::Config(_) => 0x2300,
            Self::AlreadyExists { .. } => 0x2400,
            Self::Unprepared { .. } => 0x2500,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ServerError(message)
            | Self::Protocol(message)
            | Self::BadCredentials(message)
            | Self::Overloaded(message)
            | Self::IsBootstrapping(message)
            | Self::Truncate(message)
            | Self::CdcWriteFailure(message)
            | Self::Syntax(message)
            | Self::Unauthorized(message)
            | Self::Invalid(message)
            | Self::Config(message)
            | Self::WriteTimeout { message, .. }
            | Self::ReadTimeout { message, .. }
            | Self::ReadFailure { message, .. }
            | Self::FunctionFailure { message, .. }
            | Self::WriteFailure { message, .. }
            | Self::CasWriteUnknown { message, .. } => f.write_str(message),
            Self::Overtaken => {
                f.write_str("The schema has changed meanwhile; nothing was written, try again")
            }
            Self::Unavailable { consistency, .. } => {
                write!(f, "Cannot achieve consistency level {consistency}")
            }
            Self::AlreadyExists { keyspace, table } if table.is_empty() => {
                write!(f, "Cannot add existing keyspace \"{keyspace}\"")
            }
            Self::AlreadyExists { keyspace, table } => {
                write!(
                    f,
                    "Cannot add already existing table \"{table}\" to keyspace \"{keyspace}\""
                )
            }
            Self::Unprepared { id } => {
                f.write_str("Prepared query with ID ")?;
                id.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str(
                    " not found (either the query was not prepared on this host (maybe the host has been restarted?) \
                     or you have prepared too many queries and it has been evicted from the internal cache)",
                )
            }
        }
    }
}

impl std::error::Error for Error {}

impl From<ilion_types::Error> for Error {
    fn from(error: ilion_types::Error) -> Self {
        Self::invalid(error.to_string())
    }
}

impl From<ilion_schema::Error> for Error {
    fn from(error: ilion_schema::Error) -> Self {
        use ilion_schema::Error as Schema;
        match error {
            Schema::AlreadyExists { keyspace, table } => Self::AlreadyExists { keyspace, table },
            Schema::Syntax(message) => Self::Syntax(message),
            Schema::Invalid(message) => Self::Invalid(message),
            Schema::Config(message) => Self::Config(message),
            Schema::Unauthorized(message) => Self::Unauthorized(message),
            corrupt @ Schema::Corrupt { .. } => Self::ServerError(corrupt.to_string()),
        }
    }
}

impl From<ilion_cql::Error> for Error {
    fn from(error: ilion_cql::Error) -> Self {
        match error.kind {
            ilion_cql::ErrorKind::Invalid => Self::Invalid(error.to_string()),
            ilion_cql::ErrorKind::Syntax | ilion_cql::ErrorKind::Rule => Self::Syntax(error.to_string()),
        }
    }
}
