//! Operation codes.

use std::fmt;

/// What an envelope carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Opcode {
    /// Response: something failed.
    Error = 0x00,
    /// Request: opens the session.
    Startup = 0x01,
    /// Response: go ahead.
    Ready = 0x02,
    /// Response: prove who you are.
    Authenticate = 0x03,
    /// Request: what do you support?
    Options = 0x05,
    /// Response to OPTIONS.
    Supported = 0x06,
    /// Request: CQL text.
    Query = 0x07,
    /// Response: the outcome of a statement.
    Result = 0x08,
    /// Request: prepare CQL text.
    Prepare = 0x09,
    /// Request: run a prepared statement.
    Execute = 0x0a,
    /// Request: subscribe to events.
    Register = 0x0b,
    /// Response, unasked: an event.
    Event = 0x0c,
    /// Request: several statements.
    Batch = 0x0d,
    /// Response: next step of authentication.
    AuthChallenge = 0x0e,
    /// Request: a token for the authenticator.
    AuthResponse = 0x0f,
    /// Response: authenticated.
    AuthSuccess = 0x10,
}

impl Opcode {
    /// All of them, by number.
    pub const ALL: [Self; 16] = [
        Self::Error,
        Self::Startup,
        Self::Ready,
        Self::Authenticate,
        Self::Options,
        Self::Supported,
        Self::Query,
        Self::Result,
        Self::Prepare,
        Self::Execute,
        Self::Register,
        Self::Event,
        Self::Batch,
        Self::AuthChallenge,
        Self::AuthResponse,
        Self::AuthSuccess,
    ];

    /// The opcode with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|opcode| opcode.number() == number)
    }

    /// The number on the wire.
    #[inline]
    pub fn number(self) -> u8 {
        self as u8
    }

    /// True for what clients send.
    pub fn is_request(self) -> bool {
        matches!(
            self,
            Self::Startup
                | Self::Options
                | Self::Query
                | Self::Prepare
                | Self::Execute
                | Self::Register
                | Self::Batch
                | Self::AuthResponse
        )
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "ERROR",
            Self::Startup => "STARTUP",
            Self::Ready => "READY",
            Self::Authenticate => "AUTHENTICATE",
            Self::Options => "OPTIONS",
            Self::Supported => "SUPPORTED",
            Self::Query => "QUERY",
            Self::Result => "RESULT",
            Self::Prepare => "PREPARE",
            Self::Execute => "EXECUTE",
            Self::Register => "REGISTER",
            Self::Event => "EVENT",
            Self::Batch => "BATCH",
            Self::AuthChallenge => "AUTH_CHALLENGE",
            Self::AuthResponse => "AUTH_RESPONSE",
            Self::AuthSuccess => "AUTH_SUCCESS",
        })
    }
}
