//! Errors of vectors and graphs.

use std::io;

/// Why a vector was refused, or a graph could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller's vector or option is invalid. The message is for the client.
    #[error("{0}")]
    Refused(String),
    /// The bytes break the format. Retrying does not help: build the index again.
    #[error("the vector graph is damaged at byte {offset}: expected {expected}")]
    Corrupt {
        /// Offset in the file.
        offset: u64,
        /// What the format has at this offset.
        expected: &'static str,
    },
    /// The file could not be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Error {
    #[cold]
    pub(crate) fn corrupt(offset: u64, expected: &'static str) -> Self {
        Self::Corrupt { offset, expected }
    }
}
