//! The fields of each error code beyond the message.
//!
//! ```text
//! unavailable       := consistency, required: i32, alive: i32
//! write timeout     := consistency, received: i32, block_for: i32, write_type: string, v5 and CAS: contentions: u16
//! read timeout      := consistency, received: i32, block_for: i32, data_present: u8
//! read failure      := consistency, received: i32, block_for: i32, failures, data_present: u8
//! write failure     := consistency, received: i32, block_for: i32, failures, write_type: string
//! CAS write unknown := consistency, received: i32, block_for: i32
//! function failure  := keyspace, function: string x 2, arguments: string list
//! already exists    := keyspace, table: string x 2         unprepared := id: short bytes
//! ```
//!
//! A code that is unknown to a version is replaced by the nearest known one.

use bytes::Bytes;

use crate::consistency::Consistency;
use crate::error::Error;
use crate::notation::{
    Input, put_consistency, put_i32, put_short_bytes, put_string, put_string_list, put_u16,
};
use crate::response::error_code::ErrorCode;
use crate::response::failure::{Failures, WriteType};
use crate::version::Version;

/// An error code with its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the fields are those of the grammar above, the codes are documented at `ErrorCode`"
)]
pub enum ErrorDetail {
    Server,
    Protocol,
    BadCredentials,
    Unavailable {
        consistency: Consistency,
        required: i32,
        alive: i32,
    },
    Overloaded,
    Bootstrapping,
    Truncate,
    WriteTimeout {
        consistency: Consistency,
        received: i32,
        block_for: i32,
        write_type: WriteType,
        /// Only for [`WriteType::Cas`] in v5.
        contentions: Option<u16>,
    },
    ReadTimeout {
        consistency: Consistency,
        received: i32,
        block_for: i32,
        data_present: bool,
    },
    ReadFailure {
        consistency: Consistency,
        received: i32,
        block_for: i32,
        failures: Failures,
        data_present: bool,
    },
    FunctionFailure {
        keyspace: String,
        function: String,
        arguments: Vec<String>,
    },
    WriteFailure {
        consistency: Consistency,
        received: i32,
        block_for: i32,
        failures: Failures,
        write_type: WriteType,
    },
    CdcWriteFailure,
    CasWriteUnknown {
        consistency: Consistency,
        received: i32,
        block_for: i32,
    },
    Syntax,
    Unauthorized,
    Invalid,
    Config,
    AlreadyExists {
        keyspace: String,
        /// Empty for a keyspace.
        table: String,
    },
    Unprepared {
        id: Bytes,
    },
}

impl ErrorDetail {
    /// The code in the newest version.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Server => ErrorCode::Server,
            Self::Protocol => ErrorCode::Protocol,
            Self::BadCredentials => ErrorCode::BadCredentials,
            Self::Unavailable { .. } => ErrorCode::Unavailable,
            Self::Overloaded => ErrorCode::Overloaded,
            Self::Bootstrapping => ErrorCode::Bootstrapping,
            Self::Truncate => ErrorCode::Truncate,
            Self::WriteTimeout { .. } => ErrorCode::WriteTimeout,
            Self::ReadTimeout { .. } => ErrorCode::ReadTimeout,
            Self::ReadFailure { .. } => ErrorCode::ReadFailure,
            Self::FunctionFailure { .. } => ErrorCode::FunctionFailure,
            Self::WriteFailure { .. } => ErrorCode::WriteFailure,
            Self::CdcWriteFailure => ErrorCode::CdcWriteFailure,
            Self::CasWriteUnknown { .. } => ErrorCode::CasWriteUnknown,
            Self::Syntax => ErrorCode::Syntax,
            Self::Unauthorized => ErrorCode::Unauthorized,
            Self::Invalid => ErrorCode::Invalid,
            Self::Config => ErrorCode::Config,
            Self::AlreadyExists { .. } => ErrorCode::AlreadyExists,
            Self::Unprepared { .. } => ErrorCode::Unprepared,
        }
    }

    /// The code that a client of this version gets. Compat: Cassandra 5.0, `ErrorMessage`.
    pub(super) fn code_in(&self, version: Version) -> ErrorCode {
        match (self.code(), version) {
            (ErrorCode::ReadFailure, Version::V3) => ErrorCode::ReadTimeout,
            (ErrorCode::WriteFailure, Version::V3) => ErrorCode::WriteTimeout,
            (ErrorCode::FunctionFailure | ErrorCode::CdcWriteFailure, Version::V3) => ErrorCode::Invalid,
            (ErrorCode::CasWriteUnknown, Version::V3 | Version::V4) => ErrorCode::WriteTimeout,
            (code, _) => code,
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>, version: Version) {
        match self {
            Self::Unavailable {
                consistency,
                required,
                alive,
            } => put_replicas(out, *consistency, *required, *alive),
            Self::WriteTimeout {
                consistency,
                received,
                block_for,
                write_type,
                contentions,
            } => {
                put_replicas(out, *consistency, *received, *block_for);
                put_string(out, write_type.name());
                if *write_type == WriteType::Cas && version >= Version::V5 {
                    put_u16(out, contentions.unwrap_or(0));
                }
            }
            Self::ReadTimeout {
                consistency,
                received,
                block_for,
                data_present,
            } => {
                put_replicas(out, *consistency, *received, *block_for);
                out.push(u8::from(*data_present));
            }
            Self::ReadFailure {
                consistency,
                received,
                block_for,
                failures,
                data_present,
            } => {
                put_replicas(out, *consistency, *received, *block_for);
                if version >= Version::V4 {
                    failures.encode(out, version);
                }
                out.push(u8::from(*data_present));
            }
            Self::WriteFailure {
                consistency,
                received,
                block_for,
                failures,
                write_type,
            } => {
                put_replicas(out, *consistency, *received, *block_for);
                if version >= Version::V4 {
                    failures.encode(out, version);
                }
                put_string(out, write_type.name());
            }
            Self::FunctionFailure {
                keyspace,
                function,
                arguments,
            } => {
                if version >= Version::V4 {
                    put_string(out, keyspace);
                    put_string(out, function);
                    put_string_list(out, arguments);
                }
            }
            Self::CasWriteUnknown {
                consistency,
                received,
                block_for,
            } => {
                put_replicas(out, *consistency, *received, *block_for);
                if version < Version::V5 {
                    put_string(out, WriteType::Cas.name());
                }
            }
            Self::AlreadyExists { keyspace, table } => {
                put_string(out, keyspace);
                put_string(out, table);
            }
            Self::Unprepared { id } => put_short_bytes(out, id),
            Self::Server
            | Self::Protocol
            | Self::BadCredentials
            | Self::Overloaded
            | Self::Bootstrapping
            | Self::Truncate
            | Self::CdcWriteFailure
            | Self::Syntax
            | Self::Unauthorized
            | Self::Invalid
            | Self::Config => {}
        }
    }

    pub(super) fn decode(input: &mut Input<'_>, version: Version, code: ErrorCode) -> Result<Self, Error> {
        Ok(match code {
            ErrorCode::Server => Self::Server,
            ErrorCode::Protocol => Self::Protocol,
            ErrorCode::BadCredentials => Self::BadCredentials,
            ErrorCode::Unavailable => {
                let (consistency, required, alive) = take_replicas(input)?;
                Self::Unavailable {
                    consistency,
                    required,
                    alive,
                }
            }
            ErrorCode::Overloaded => Self::Overloaded,
            ErrorCode::Bootstrapping => Self::Bootstrapping,
            ErrorCode::Truncate => Self::Truncate,
            ErrorCode::WriteTimeout => {
                let (consistency, received, block_for) = take_replicas(input)?;
                let write_type = WriteType::decode(input)?;
                let contentions = if write_type == WriteType::Cas && version >= Version::V5 {
                    Some(input.u16()?)
                } else {
                    None
                };
                Self::WriteTimeout {
                    consistency,
                    received,
                    block_for,
                    write_type,
                    contentions,
                }
            }
            ErrorCode::ReadTimeout => {
                let (consistency, received, block_for) = take_replicas(input)?;
                Self::ReadTimeout {
                    consistency,
                    received,
                    block_for,
                    data_present: input.u8()? != 0,
                }
            }
            ErrorCode::ReadFailure => {
                let (consistency, received, block_for) = take_replicas(input)?;
                Self::ReadFailure {
                    consistency,
                    received,
                    block_for,
                    failures: Failures::decode(input, version)?,
                    data_present: input.u8()? != 0,
                }
            }
            ErrorCode::FunctionFailure => Self::FunctionFailure {
                keyspace: input.string()?,
                function: input.string()?,
                arguments: input.string_list()?,
            },
            ErrorCode::WriteFailure => {
                let (consistency, received, block_for) = take_replicas(input)?;
                Self::WriteFailure {
                    consistency,
                    received,
                    block_for,
                    failures: Failures::decode(input, version)?,
                    write_type: WriteType::decode(input)?,
                }
            }
            ErrorCode::CdcWriteFailure => Self::CdcWriteFailure,
            ErrorCode::CasWriteUnknown => {
                let (consistency, received, block_for) = take_replicas(input)?;
                Self::CasWriteUnknown {
                    consistency,
                    received,
                    block_for,
                }
            }
            ErrorCode::Syntax => Self::Syntax,
            ErrorCode::Unauthorized => Self::Unauthorized,
            ErrorCode::Invalid => Self::Invalid,
            ErrorCode::Config => Self::Config,
            ErrorCode::AlreadyExists => Self::AlreadyExists {
                keyspace: input.string()?,
                table: input.string()?,
            },
            ErrorCode::Unprepared => Self::Unprepared {
                id: input.short_bytes()?,
            },
        })
    }
}

/// Writes a consistency level and two numbers of replicas: the first fields of many errors.
fn put_replicas(out: &mut Vec<u8>, consistency: Consistency, first: i32, second: i32) {
    put_consistency(out, consistency);
    put_i32(out, first);
    put_i32(out, second);
}

fn take_replicas(input: &mut Input<'_>) -> Result<(Consistency, i32, i32), Error> {
    Ok((input.consistency()?, input.i32()?, input.i32()?))
}
