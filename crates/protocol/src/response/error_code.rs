//! Error codes.

/// The code of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum ErrorCode {
    /// The server failed.
    Server = 0x0000,
    /// The client broke the protocol.
    Protocol = 0x000a,
    /// Wrong user or password.
    BadCredentials = 0x0100,
    /// Not enough replicas are alive.
    Unavailable = 0x1000,
    /// The server is overloaded.
    Overloaded = 0x1001,
    /// The node is not ready.
    Bootstrapping = 0x1002,
    /// TRUNCATE failed.
    Truncate = 0x1003,
    /// Not enough replicas confirmed a write in time.
    WriteTimeout = 0x1100,
    /// Not enough replicas answered a read in time.
    ReadTimeout = 0x1200,
    /// A read failed on replicas.
    ReadFailure = 0x1300,
    /// A user function failed.
    FunctionFailure = 0x1400,
    /// A write failed on replicas.
    WriteFailure = 0x1500,
    /// The CDC log is full.
    CdcWriteFailure = 0x1600,
    /// The outcome of a conditional write is unknown.
    CasWriteUnknown = 0x1700,
    /// The text is not CQL.
    Syntax = 0x2000,
    /// The user has no permission.
    Unauthorized = 0x2100,
    /// The statement is invalid.
    Invalid = 0x2200,
    /// The statement conflicts with the configuration.
    Config = 0x2300,
    /// The keyspace or table already exists.
    AlreadyExists = 0x2400,
    /// The statement is not prepared on this node.
    Unprepared = 0x2500,
}

impl ErrorCode {
    /// All codes, by number.
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
