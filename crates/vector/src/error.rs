//! What can go wrong.

use std::io;

/// Why a vector was not taken, or a graph could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller's vector or option is not possible. Told to the client as it is.
    #[error("{0}")]
    Refused(String),
    /// The bytes are not what the format says. Reading again does not help: the index has to be built anew.
    #[error("the vector graph is damaged at byte {offset}: expected {expected}")]
    Corrupt {
        /// Where in the file.
        offset: u64,
        /// What should have been there.
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
