//! The error of all file operations: the action, the path, and the error of the operating system.

use std::io;
use std::path::{Path, PathBuf};

/// The result of an operation on files.
pub type Result<T> = std::result::Result<T, Error>;

/// The action of a failed sync of a file; see [`Error::is_shortage`].
pub(crate) const SYNC: &str = "sync";
/// The action of a failed sync of a directory.
pub(crate) const SYNC_DIRECTORY: &str = "sync directory";

/// The operating system (or a fault rule) returned an error.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct Error {
    /// What was attempted, as a verb: `open`, `read`, `sync`.
    pub action: &'static str,
    /// The file or directory.
    pub path: PathBuf,
    /// The error of the operating system.
    pub source: io::Error,
}

impl Error {
    /// Adds action and path to an I/O error.
    pub fn new(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self {
            action,
            path: path.to_path_buf(),
            source,
        }
    }

    /// True if the file or directory does not exist.
    pub fn is_not_found(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }

    /// True if the file or directory exists although it should not.
    pub fn is_already_exists(&self) -> bool {
        self.source.kind() == io::ErrorKind::AlreadyExists
    }

    /// True if the disk (or the quota) is full.
    pub fn is_no_space(&self) -> bool {
        matches!(
            self.source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        )
    }

    /// True if a resource is used up for now: disk space, file descriptors, memory. The caller may try again later. A failed
    /// sync never counts: the kernel may have dropped what it could not write, so a second sync proves nothing.
    pub fn is_shortage(&self) -> bool {
        use rustix::io::Errno;
        const NUMBERS: [Errno; 5] = [
            Errno::NOSPC,
            Errno::DQUOT,
            Errno::MFILE,
            Errno::NFILE,
            Errno::NOMEM,
        ];
        let is_sync = [SYNC, SYNC_DIRECTORY].contains(&self.action);
        let number = self.source.raw_os_error();
        let is_used_up = NUMBERS.iter().any(|errno| number == Some(errno.raw_os_error()))
            || self.is_no_space()
            || self.source.kind() == io::ErrorKind::OutOfMemory;
        is_used_up && !is_sync
    }

    /// True if the file ended before the requested bytes.
    pub fn is_unexpected_end(&self) -> bool {
        self.source.kind() == io::ErrorKind::UnexpectedEof
    }

    /// True if a rename or link would cross file systems.
    pub fn is_other_file_system(&self) -> bool {
        self.source.kind() == io::ErrorKind::CrossesDevices
    }

    /// True if another process (or another handle of this one) holds the lock.
    pub fn is_locked(&self) -> bool {
        self.source.kind() == io::ErrorKind::WouldBlock
    }
}

impl Clone for Error {
    /// Keeps kind, number and message, so that many waiters can get the same error.
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

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn what_is_used_up_may_come_back_but_a_failed_sync_is_final() {
        let error = |action, errno: Errno| Error::new(action, Path::new("f"), errno.into());
        for errno in [
            Errno::NOSPC,
            Errno::DQUOT,
            Errno::MFILE,
            Errno::NFILE,
            Errno::NOMEM,
        ] {
            assert!(error("create", errno).is_shortage(), "{errno}");
            assert!(error("create", errno).clone().is_shortage(), "{errno}");
            assert!(!error(SYNC, errno).is_shortage() && !error(SYNC_DIRECTORY, errno).is_shortage());
        }
        assert!(!error("write", Errno::IO).is_shortage() && !error("open", Errno::NOENT).is_shortage());
    }
}
