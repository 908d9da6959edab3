//! The error of every door: what we were doing, to which path, and what the operating system said.

use std::io;
use std::path::{Path, PathBuf};

/// The result of an operation on files.
pub type Result<T> = std::result::Result<T, Error>;

/// The operating system (or a fault rule) refused.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct Error {
    /// What we were doing, as a verb: `open`, `read`, `sync`.
    pub action: &'static str,
    /// To which file or directory.
    pub path: PathBuf,
    /// What the operating system said.
    pub source: io::Error,
}

impl Error {
    /// Names the action and the path of an I/O error.
    pub fn new(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self {
            action,
            path: path.to_path_buf(),
            source,
        }
    }

    /// Whether the file or directory does not exist.
    pub fn is_not_found(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }

    /// Whether the file or directory exists although it should not.
    pub fn is_already_exists(&self) -> bool {
        self.source.kind() == io::ErrorKind::AlreadyExists
    }

    /// Whether the disk (or the quota) is full.
    pub fn is_no_space(&self) -> bool {
        matches!(
            self.source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        )
    }

    /// Whether the file ended before the bytes asked for.
    pub fn is_unexpected_end(&self) -> bool {
        self.source.kind() == io::ErrorKind::UnexpectedEof
    }

    /// Whether a rename or link would have to leave its file system.
    pub fn is_other_file_system(&self) -> bool {
        self.source.kind() == io::ErrorKind::CrossesDevices
    }

    /// Whether another process (or another handle of this one) holds the lock.
    pub fn is_locked(&self) -> bool {
        self.source.kind() == io::ErrorKind::WouldBlock
    }
}

impl Clone for Error {
    /// Keeps kind, number and message, so that one failure can be told to many waiters.
    fn clone(&self) -> Self {
        let source = match self.source.raw_os_error() {
            Some(number) => io::Error::from_raw_os_error(number),
            None => io::Error::new(self.source.kind(), self.source.to_string()),
        };
        Self {
            action: self.action,
            path: self.path.clone(),
            source,
        }
    }
}
