//! Operation codes.

use std::fmt;

/// The type of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Opcode {
    /// Response: the request failed.
    Error = 0x00,
    /// Request: opens the session.
    Startup = 0x01,
    /// Response: the session is open.
    Ready = 0x02,
    /// Response: the client must authenticate.
    Authenticate = 0x03,
    /// Request: asks for the supported options.
    Options = 0x05,
    /// Response to OPTIONS.
    Supported = 0x06,
    /// Request: executes CQL text.
    Query = 0x07,
    /// Response: the result of a statement.
    Result = 0x08,
    /// Request: prepares CQL text.
    Prepare = 0x09,
    /// Request: executes a prepared statement.
    Execute = 0x0a,
    /// Request: registers for events.
    Register = 0x0b,
    /// Sent by the server without a request: an event.
    Event = 0x0c,
    /// Request: executes several statements.
    Batch = 0x0d,
    /// Response: the next step of authentication.
    AuthChallenge = 0x0e,
    /// Request: a token for the authenticator.
    AuthResponse = 0x0f,
    /// Response: the client is authenticated.
    AuthSuccess = 0x10,
    /// Between nodes: a message of the node that has connected. Not part of CQL: `internode` decodes its body.
    NodeRequest = 0x70,
    /// Between nodes: a message of the node that was connected to.
    NodeAnswer = 0x71,
}

impl Opcode {
    /// All opcodes, by number.
    pub const ALL: [Self; 18] = [
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
        Self::NodeRequest,
        Self::NodeAnswer,
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

    /// True for messages between nodes. Clients neither send nor receive them.
    pub(crate) fn is_between_nodes(self) -> bool {
        matches!(self, Self::NodeRequest | Self::NodeAnswer)
    }

    /// True for messages from the side that has opened the connection.
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
                | Self::NodeRequest
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
            Self::NodeRequest => "NODE_REQUEST",
            Self::NodeAnswer => "NODE_ANSWER",
        })
    }
}
