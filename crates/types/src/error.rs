//! Why a value or the name of a type is invalid.

use std::borrow::Cow;

/// Errors of this crate. The messages mean the same as Cassandra's, so that they can be sent to the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes are not a value of the type: an invalid request, or a corrupt file.
    #[error("{0}")]
    InvalidBytes(Cow<'static, str>),
    /// A text, literal or JSON value does not convert to the type: the statement must change.
    #[error("{0}")]
    InvalidLiteral(Cow<'static, str>),
    /// A type, class or partitioner is unknown or malformed.
    #[error("{0}")]
    InvalidType(String),
}

impl Error {
    pub(crate) fn bytes(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::InvalidBytes(reason.into())
    }

    pub(crate) fn literal(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::InvalidLiteral(reason.into())
    }
}
