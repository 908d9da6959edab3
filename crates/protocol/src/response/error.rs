//! ERROR: `code: i32, message: string`, then what the code has to say.
//!
//! ```text
//! unavailable       := consistency, required: i32, alive: i32
//! write timeout     := consistency, received: i32, block_for: i32, write_type: string, v5 and CAS: contentions: u16
//! read timeout      := consistency, received: i32, block_for: i32, data_present: u8
//! read failure      := consistency, received: i32, block_for: i32, failures, data_present: u8
//! write failure     := consistency, received: i32, block_for: i32, failures, write_type: string
//! failures          := v4: count: i32; v5: n: i32, n x (node: inetaddr, reason: u16)
//! CAS write unknown := consistency, received: i32, block_for: i32
//! function failure  := keyspace, function: string x 2, arguments: string list
//! already exists    := keyspace, table: string x 2         unprepared := id: short bytes
//! ```
//!
//! Codes that a version does not know are replaced by the nearest that it does.

use std::net::IpAddr;

use bytes::Bytes;

use crate::consistency::Consistency;
use crate::error::Error;
use crate::notation::{
    Input, put_consistency, put_i32, put_inet_address, put_short_bytes, put_size, put_string,
    put_string_list, put_u16,
};
use crate::response::prepared::decode_count;
use crate::version::Version;

/// The number of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum ErrorCode {
    /// The server failed; a bug.
    Server = 0x0000,
    /// The client broke the protocol.
    Protocol = 0x000a,
    /// Wrong user or password.
    BadCredentials = 0x0100,
    /// Not enough replicas are alive.
    Unavailable = 0x1000,
    /// Too much work at the moment.
    Overloaded = 0x1001,
    /// The node is not ready.
    Bootstrapping = 0x1002,
    /// TRUNCATE failed.
    Truncate = 0x1003,
    /// Not enough replicas confirmed a write in time.
    WriteTimeout = 0x1100,
    /// Not enough replicas answered a read in time.
    ReadTimeout = 0x1200,
    /// Replicas failed a read.
    ReadFailure = 0x1300,
    /// A user function failed.
    FunctionFailure = 0x1400,
    /// Replicas failed a write.
    WriteFailure = 0x1500,
    /// The change log is full.
    CdcWriteFailure = 0x1600,
    /// Nobody knows whether a conditional write happened.
    CasWriteUnknown = 0x1700,
    /// The text is not CQL.
    Syntax = 0x2000,
    /// The user may not.
    Unauthorized = 0x2100,
    /// The statement makes no sense here.
    Invalid = 0x2200,
    /// The statement conflicts with the configuration.
    Config = 0x2300,
    /// The keyspace or table is there already.
    AlreadyExists = 0x2400,
    /// The statement is not prepared on this node.
    Unprepared = 0x2500,
}

impl ErrorCode {
    /// All of them, by number.
    pub const ALL: [Self; 20] = [
        Self::Server,
        Self::Protocol,
        Self::BadCredentials,
        Self::Unavailable,
        Self::Overloaded,
        Self::Bootstrapping,
        Self::Truncate,
        Self::WriteTimeout,
        Self::ReadTimeout,
        Self::ReadFailure,
        Self::FunctionFailure,
        Self::WriteFailure,
        Self::CdcWriteFailure,
        Self::CasWriteUnknown,
        Self::Syntax,
        Self::Unauthorized,
        Self::Invalid,
        Self::Config,
        Self::AlreadyExists,
        Self::Unprepared,
    ];

    /// The code with this number.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.number() == number)
    }

    /// The number on the wire.
    pub fn number(self) -> i32 {
        self as i32
    }
}

/// ERROR: what went wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (code {:#06x})", self.detail.code().number())]
pub struct ErrorResponse {
    /// For people.
    pub message: String,
    /// For programs.
    pub detail: ErrorDetail,
}

/// What a code has to say beyond its message.
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

/// What kind of write it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteType {
    /// One partition.
    Simple,
    /// A logged batch.
    Batch,
    /// An unlogged batch.
    UnloggedBatch,
    /// A counter.
    Counter,
    /// The log of a logged batch.
    BatchLog,
    /// A conditional write.
    Cas,
    /// A view of the table.
    View,
    /// The change log.
    Cdc,
}

/// Which replicas failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failures {
    /// How many (v4).
    Count(i32),
    /// Which, and why (v5); v4 gets their number.
    Reasons(Vec<(IpAddr, FailureReason)>),
}

/// Why a replica failed: the number on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailureReason(pub u16);

impl FailureReason {
    /// No reason known.
    pub const UNKNOWN: Self = Self(0);
    /// The query met too many tombstones.
    pub const TOO_MANY_TOMBSTONES: Self = Self(1);
    /// The replica gave up in time.
    pub const TIMEOUT: Self = Self(2);
    /// The replica has another schema.
    pub const INCOMPATIBLE_SCHEMA: Self = Self(3);
    /// The read was too large.
    pub const READ_SIZE: Self = Self(4);
    /// The replica is down.
    pub const NODE_DOWN: Self = Self(5);
    /// An index cannot be used yet.
    pub const INDEX_NOT_AVAILABLE: Self = Self(6);
    /// The query needs too many indexes.
    pub const TOO_MANY_INDEXES: Self = Self(7);
}

impl WriteType {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Simple,
        Self::Batch,
        Self::UnloggedBatch,
        Self::Counter,
        Self::BatchLog,
        Self::Cas,
        Self::View,
        Self::Cdc,
    ];

    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simple => "SIMPLE",
            Self::Batch => "BATCH",
            Self::UnloggedBatch => "UNLOGGED_BATCH",
            Self::Counter => "COUNTER",
            Self::BatchLog => "BATCH_LOG",
            Self::Cas => "CAS",
            Self::View => "VIEW",
            Self::Cdc => "CDC",
        }
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, Error> {
        let name = input.string()?;
        Self::ALL
            .into_iter()
            .find(|write_type| write_type.name() == name)
            .ok_or_else(|| Error::refused(format!("unknown write type: {name}")))
    }
}

impl Failures {
    fn count(&self) -> usize {
        match self {
            Self::Count(count) => usize::try_from(*count).unwrap_or(0),
            Self::Reasons(reasons) => reasons.len(),
        }
    }

    fn encode(&self, out: &mut Vec<u8>, version: Version) {
        match self {
            Self::Reasons(reasons) if version >= Version::V5 => {
                put_size(out, reasons.len());
                for &(node, reason) in reasons {
                    put_inet_address(out, node);
                    put_u16(out, reason.0);
                }
            }
            // A count has no nodes to list; v5 then gets an empty map.
            Self::Count(_) if version >= Version::V5 => put_i32(out, 0),
            other => put_size(out, other.count()),
        }
    }

    fn decode(input: &mut Input<'_>, version: Version) -> Result<Self, Error> {
        if version < Version::V5 {
            return Ok(Self::Count(input.i32()?));
        }
        let count = decode_count(input)?;
        let mut reasons = Vec::with_capacity(input.reader().capacity_for(count, 1 + 4 + 2));
        for _ in 0..count {
            reasons.push((input.inet_address()?, FailureReason(input.u16()?)));
        }
        Ok(Self::Reasons(reasons))
    }
}

impl ErrorDetail {
    /// Its code in the newest version.
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
    fn code_in(&self, version: Version) -> ErrorCode {
        match (self.code(), version) {
            (ErrorCode::ReadFailure, Version::V3) => ErrorCode::ReadTimeout,
            (ErrorCode::WriteFailure, Version::V3) => ErrorCode::WriteTimeout,
            (ErrorCode::FunctionFailure | ErrorCode::CdcWriteFailure, Version::V3) => ErrorCode::Invalid,
            (ErrorCode::CasWriteUnknown, Version::V3 | Version::V4) => ErrorCode::WriteTimeout,
            (code, _) => code,
        }
    }

    fn encode(&self, out: &mut Vec<u8>, version: Version) {
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

    fn decode(input: &mut Input<'_>, version: Version, code: ErrorCode) -> Result<Self, Error> {
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

/// Consistency and two numbers of replicas, which many errors begin with.
fn put_replicas(out: &mut Vec<u8>, consistency: Consistency, first: i32, second: i32) {
    put_consistency(out, consistency);
    put_i32(out, first);
    put_i32(out, second);
}

fn take_replicas(input: &mut Input<'_>) -> Result<(Consistency, i32, i32), Error> {
    Ok((input.consistency()?, input.i32()?, input.i32()?))
}

impl ErrorResponse {
    /// An error with its message.
    pub fn new(detail: ErrorDetail, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            detail,
        }
    }

    /// The client broke the protocol.
    pub fn protocol(message: impl Into<String>) -> Self {
        Self::new(ErrorDetail::Protocol, message)
    }

    /// The statement makes no sense here.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorDetail::Invalid, message)
    }

    /// The server failed.
    pub fn server(message: impl Into<String>) -> Self {
        Self::new(ErrorDetail::Server, message)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>, version: Version) {
        put_i32(out, self.detail.code_in(version).number());
        put_string(out, &self.message);
        self.detail.encode(out, version);
    }

    pub(super) fn decode(input: &mut Input<'_>, version: Version) -> Result<Self, Error> {
        let number = input.i32()?;
        let message = input.string()?;
        let code = ErrorCode::from_number(number)
            .ok_or_else(|| Error::refused(format!("unknown error code {number:#06x}: {message}")))?;
        let detail = ErrorDetail::decode(input, version, code)?;
        Ok(Self { message, detail })
    }
}

impl From<Error> for ErrorResponse {
    fn from(error: Error) -> Self {
        Self::protocol(error.to_string())
    }
}
