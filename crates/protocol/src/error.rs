//! What can be wrong with bytes from a peer, or with a message that we are asked to encode.

use std::borrow::Cow;

use crate::version::Version;

/// A message that cannot be decoded or encoded. A server answers it with ERROR 0x000A and the text of this error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The body breaks the format; the peer's encoder is at fault.
    #[error("malformed message body: at byte {offset}: expected {expected}")]
    Malformed {
        /// Where in the body.
        offset: usize,
        /// What should have been there.
        expected: &'static str,
    },
    /// The body is well formed and says what the protocol forbids.
    #[error("{0}")]
    Refused(Cow<'static, str>),
    /// Something to encode exceeds what the format can express; send less.
    #[error("{what} has {size}, the protocol allows {max}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size.
        size: usize,
        /// What the format can express.
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

/// What can still be done with a connection after a [`FrameError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Answer and decode on: the bad envelope was skipped.
    Continue,
    /// Answer, then close: where the next envelope starts is not known.
    AnswerAndClose,
    /// Close without an answer: nothing in the stream can be trusted.
    Close,
}

/// Under which error code bytes are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// 0x000A: the peer's encoder is at fault.
    Protocol,
    /// 0x2200: the request is larger than the operator allows.
    Invalid,
}

/// Bytes that are no acceptable envelope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FrameError {
    /// The version to answer in.
    pub version: Version,
    /// The stream to answer on.
    pub stream: i16,
    /// What to say.
    pub message: Cow<'static, str>,
    /// The error code to say it under.
    pub blame: Blame,
    /// What to do with the connection.
    pub recovery: Recovery,
    /// Set for versions 1 and 2: they are answered in themselves, with a header of eight bytes.
    pub legacy_version: Option<u8>,
}
