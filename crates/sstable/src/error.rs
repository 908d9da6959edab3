//! Errors of SSTables: damage, I/O errors, and unsupported features.

use std::io;
use std::path::{Path, PathBuf};

use ilion_env::patience::Ended;
use ilion_rows::ReadError;

/// The result of an operation on SSTables.
pub type Result<T> = std::result::Result<T, Error>;

/// The result of a small step of decoding. The error is boxed, so that the success value stays in registers.
pub(crate) type Step<T> = std::result::Result<T, Box<Error>>;

/// Why an operation on an SSTable failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The bytes break the format. Retrying does not help; scrub or restore.
    #[error("corrupt file {}: at byte {offset}: expected {expected}", file.display())]
    Corrupt {
        /// The damaged file.
        file: PathBuf,
        /// Offset in the file; for a compressed file, in its uncompressed data.
        offset: u64,
        /// What the format requires at this offset.
        expected: String,
    },
    /// The operating system returned an error.
    #[error(transparent)]
    Io(#[from] ilion_env::Error),
    /// The file or the call needs a feature that Ilion does not have, or a file is missing; the text names it.
    #[error("{0}")]
    Refused(String),
    /// The deadline of the read has passed.
    #[error("{0}")]
    Ended(&'static str),
}

impl Error {
    /// Damage at `offset` of `file`.
    #[cold]
    pub fn corrupt(file: &Path, offset: u64, expected: impl Into<String>) -> Self {
        Self::Corrupt {
            file: file.to_path_buf(),
            offset,
            expected: expected.into(),
        }
    }

    /// Damage found by a reader of bytes that start at offset `base` of `file`.
    #[cold]
    pub fn in_file(file: &Path, base: u64, error: &ilion_codec::Error) -> Self {
        Self::corrupt(file, base.saturating_add(error.offset as u64), error.expected)
    }

    /// True if the bytes are damaged.
    pub(crate) fn is_corrupt(&self) -> bool {
        matches!(self, Self::Corrupt { .. })
    }
}

impl From<Box<Self>> for Error {
    #[cold]
    fn from(error: Box<Self>) -> Self {
        *error
    }
}

impl From<Ended> for Error {
    #[cold]
    fn from(ended: Ended) -> Self {
        Self::Ended(ended.0)
    }
}

impl From<Ended> for Box<Error> {
    #[cold]
    fn from(ended: Ended) -> Self {
        Self::new(ended.into())
    }
}

impl From<ilion_pages::Error> for Error {
    fn from(error: ilion_pages::Error) -> Self {
        match error {
            ilion_pages::Error::Corrupt {
                file,
                offset,
                expected,
            } => Self::corrupt(&file, offset, expected),
            ilion_pages::Error::Env(error) => Self::Io(error),
        }
    }
}

impl From<Box<Error>> for ReadError {
    #[cold]
    fn from(error: Box<Error>) -> Self {
        (*error).into()
    }
}

impl From<Error> for ReadError {
    fn from(error: Error) -> Self {
        match error {
            Error::Corrupt {
                file,
                offset,
                expected,
            } => Self::Corrupt {
                file,
                offset,
                expected,
            },
            Error::Io(error) => Self::Io {
                action: error.action,
                path: error.path,
                source: error.source,
            },
            Error::Ended(reason) => Self::Aborted(reason),
            Error::Refused(reason) => Self::Io {
                action: "read",
                path: PathBuf::from("SSTable"),
                source: io::Error::new(io::ErrorKind::Unsupported, reason),
            },
        }
    }
}
