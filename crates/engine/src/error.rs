//! [`Error`]s of the engine.

use std::path::PathBuf;

use ilion_rows::ReadError;

/// The result of a call to the engine.
pub type Result<T> = std::result::Result<T, Error>;

/// Errors of the engine. The variants differ in who must act.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system returned an error.
    #[error(transparent)]
    Io(#[from] ilion_env::Error),
    /// The commit log refused the call, or stopped for good.
    #[error(transparent)]
    Log(#[from] ilion_commitlog::Error),
    /// An SSTable is damaged, or could not be written.
    #[error(transparent)]
    SSTable(#[from] ilion_sstable::Error),
    /// A memtable or SSTable could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The schema does not allow the request, or its rows contradict each other.
    #[error(transparent)]
    Schema(#[from] ilion_schema::Error),
    /// Memtables are full and cannot be flushed for now. The flush is tried again automatically: retry later.
    #[error(
        "writes are refused for now, since memtables are full and cannot be flushed: {0}; the flush is tried again by itself"
    )]
    Stalled(String),
    /// The space for captured changes is used up: a consumer must process and remove segments.
    #[error("{0}")]
    CaptureFull(String),
    /// Writes are refused for good: remove the cause and restart.
    #[error("writes are refused since an earlier failure: {0}")]
    Stopped(String),
    /// The table could not be opened at the start (`set_aside`): restore its files and restart, or drop it.
    #[error("{table} is set aside: {reason}")]
    SetAside {
        /// The table, with its keyspace.
        table: String,
        /// Why it could not be opened, and what to do.
        reason: String,
    },
    /// Another process has the data directory.
    #[error("{} is in use by another process", .0.display())]
    InUse(PathBuf),
    /// The request is not possible.
    #[error("{0}")]
    Refused(String),
}

impl Error {
    /// Whether a resource is used up for now (space on the disk, file descriptors, memory): a later try may succeed.
    pub fn is_shortage(&self) -> bool {
        match self {
            Self::Io(error)
            | Self::SSTable(ilion_sstable::Error::Io(error))
            | Self::Log(ilion_commitlog::Error::Io(error)) => error.is_shortage(),
            Self::Read(ReadError::Io { action, path, source }) => {
                let source = source.raw_os_error().map(std::io::Error::from_raw_os_error);
                source.is_some_and(|source| ilion_env::Error::new(action, path, source).is_shortage())
            }
            Self::Stalled(_) => true,
            _ => false,
        }
    }

    /// Whether the disk is full for now. A failed sync never counts, whatever its reason.
    pub(crate) fn is_no_space(&self) -> bool {
        let is_full = match self {
            Self::Io(error)
            | Self::SSTable(ilion_sstable::Error::Io(error))
            | Self::Log(ilion_commitlog::Error::Io(error)) => error.is_no_space(),
            Self::Read(ReadError::Io { source, .. }) => matches!(
                source.kind(),
                std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded
            ),
            _ => false,
        };
        is_full && self.is_shortage()
    }

    /// Whether files are damaged or incomplete: a later try cannot succeed.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::SSTable(ilion_sstable::Error::Io(error)) | Self::Io(error) => {
                error.is_not_found() || error.is_unexpected_end()
            }
            Self::SSTable(_) | Self::Refused(_) => true,
            _ => false,
        }
    }
}
