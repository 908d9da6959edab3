//! [`StoreError`]: why the storage refused, and the error that the client gets.

use ilion_rows::ReadError;

use crate::{Consistency, Error, FailureReason, WriteType};

/// Why the store refused.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A source could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The node refuses writes, after a failure that stops writes or because the disk is full. The operator must act.
    #[error("{0}")]
    WriteRefused(String),
    /// The log did not acknowledge a write in time; it may still be applied. The client may try again. Only in clusters.
    #[error("Operation timed out - received only {received} responses.")]
    WriteTimeout {
        /// Acknowledgements that arrived in time.
        received: u32,
        /// Acknowledgements that the write needs.
        block_for: u32,
    },
    /// Too few replicas or brokers are alive; nothing was written. The client may try again. Only in clusters.
    #[error("Cannot achieve consistency level: {required} replicas are required, {alive} are alive")]
    Unavailable {
        /// How many of them must be alive.
        required: u32,
        /// How many of them are alive.
        alive: u32,
    },
    /// Another node was first: schema or roles have changed since they were read. Nothing was written. Only in clusters.
    #[error("schema or roles have changed meanwhile")]
    Overtaken,
    /// The space for captured changes is used up: consumers of changes must act.
    #[error("{0}")]
    CaptureFull(String),
    /// The request is not possible for this table.
    #[error("{0}")]
    Invalid(String),
    /// The schema's rules do not allow the change.
    #[error(transparent)]
    Schema(#[from] ilion_schema::Error),
    /// Neither the client nor the request is wrong: a table was set aside, or there is a bug. The message says who must act.
    #[error("{0}")]
    Internal(String),
}

impl StoreError {
    /// The error for the client of a read.
    pub(crate) fn of_read(self, consistency: Consistency) -> Error {
        match self {
            // One replica answers a read, at every level.
            Self::Read(ReadError::Aborted(message)) => Error::ReadTimeout {
                consistency,
                received: 0,
                block_for: 1,
                message: message.to_owned(),
            },
            Self::Read(ReadError::Unavailable { required, alive }) => {
                unavailable(consistency, required, alive)
            }
            Self::Read(error) => Error::ReadFailure {
                consistency,
                reason: match error {
                    ReadError::TooManyTombstones { .. } => FailureReason::ReadTooManyTombstones,
                    _ => FailureReason::Unknown,
                },
                message: error.to_string(),
            },
            other => other.of_statement(),
        }
    }

    /// The error for the client of a write.
    pub(crate) fn of_write(self, consistency: Consistency, write_type: WriteType) -> Error {
        match self {
            Self::Read(error) => Self::Read(error).of_read(consistency),
            Self::CaptureFull(message) => Error::CdcWriteFailure(message),
            Self::WriteRefused(message) => Error::WriteFailure {
                consistency,
                write_type,
                reason: FailureReason::Unknown,
                message,
            },
            Self::Unavailable { required, alive } => unavailable(consistency, required, alive),
            Self::WriteTimeout { received, block_for } => {
                let message = self.to_string();
                let (received, block_for) = (number(received), number(block_for));
                match write_type {
                    // Compat: the outcome is unknown. Versions of the protocol before v5 get WRITE_TIMEOUT with CAS.
                    WriteType::Cas => Error::CasWriteUnknown {
                        consistency,
                        received,
                        block_for,
                        message,
                    },
                    write_type => Error::WriteTimeout {
                        consistency,
                        write_type,
                        received,
                        block_for,
                        message,
                    },
                }
            }
            other => other.of_statement(),
        }
    }

    /// The error for the client of any other statement.
    pub(crate) fn of_statement(self) -> Error {
        match self {
            Self::Schema(error) => error.into(),
            Self::Overtaken => Error::Overtaken,
            Self::Invalid(message) => Error::Invalid(message),
            Self::Read(error) => Error::ServerError(error.to_string()),
            // Statements without a consistency level, such as schema changes, are written to the log at QUORUM.
            Self::Unavailable { .. } | Self::WriteTimeout { .. } => {
                self.of_write(Consistency::QUORUM, WriteType::Simple)
            }
            Self::CaptureFull(message) => Error::CdcWriteFailure(message),
            Self::WriteRefused(message) | Self::Internal(message) => Error::ServerError(message),
        }
    }
}

fn unavailable(consistency: Consistency, required: u32, alive: u32) -> Error {
    Error::Unavailable {
        consistency,
        required: number(required),
        alive: number(alive),
    }
}

fn number(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
