//! Errors in bytes from a peer, and in messages to encode.

use std::borrow::Cow;

use crate::version::Version;

/// A message that cannot be decoded or encoded. A server answers it with ERROR 0x000A and the text of this error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The body breaks the format: a bug in the peer's encoder.
    #[error("malformed message body: at byte {offset}: expected {expected}")]
    Malformed {
        /// Offset in the body.
        offset: usize,
        /// What was expected there.
        expected: &'static str,
    },
    /// The body is well-formed, but its content is not allowed. Contains the reason.
    #[error("{0}")]
    Refused(Cow<'static, str>),
    /// A part of a message exceeds the limits of the format; send less.
    #[error("{what} has {size}, the protocol allows {max}")]
    TooLarge {
        /// The part.
        what: &'static str,
        /// Its size.
        size: usize,
        /// Largest size that the format can express.
        max: usize,
    },
}

impl Error {
    /// A refusal with its reason.
    #[cold]
    pub(crate) fn refused(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Refused(reason.into())
    }
}

impl From<ilion_codec::Error> for Error {
    fn from(error: ilion_codec::Error) -> Self {
        Self::Malformed {
            offset: error.offset,
            expected: error.expected,
        }
    }
}

/// How a connection continues after a [`FrameError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Answer, and go on decoding: the bad envelope was skipped.
    Continue,
    /// Answer, then close: the start of the next envelope is unknown.
    AnswerAndClose,
    /// Close without an answer: the stream is corrupt.
    Close,
}

/// The error code of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// 0x000A: a bug in the peer's encoder.
    Protocol,
    /// 0x2200: the request is larger than the operator allows.
    Invalid,
}

/// An envelope that is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FrameError {
    /// The version to answer in.
    pub version: Version,
    /// The stream to answer on.
    pub stream: i16,
    /// Message of the answer.
    pub message: Cow<'static, str>,
    /// Error code of the answer.
    pub blame: Blame,
    /// How the connection continues.
    pub recovery: Recovery,
    /// Set if the request has version 1 or 2. Then the answer has the same version, with a header of eight bytes.
    pub legacy_version: Option<u8>,
}
