//! [`Error`]: why a backup or a restore failed.

/// The result of the functions of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation on backups failed: making, listing, checking, deleting, restoring or archiving them.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request cannot be fulfilled.
    #[error("{0}")]
    Refused(String),
    /// Bytes at the destination are missing or damaged. Another backup may be undamaged.
    #[error("{object} at the destination {problem}")]
    Damaged {
        /// The object.
        object: String,
        /// What is wrong with it, as the end of the sentence.
        problem: String,
    },
    /// The destination failed. Trying again may help.
    #[error("cannot {action} {object}: {reason}")]
    Place {
        /// What was attempted.
        action: &'static str,
        /// The object, with its destination.
        object: String,
        /// What the store answered.
        reason: String,
    },
    /// The operating system refused.
    #[error(transparent)]
    Io(#[from] ilion_env::Error),
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] ilion_engine::Error),
    /// The commit log is damaged or has gaps.
    #[error(transparent)]
    Log(#[from] ilion_commitlog::Error),
    /// The SSTables of a directory cannot be listed.
    #[error(transparent)]
    SSTable(#[from] ilion_sstable::Error),
}

impl Error {
    pub(crate) fn damaged(object: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Damaged {
            object: object.into(),
            problem: problem.into(),
        }
    }
}
