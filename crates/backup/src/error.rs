//! Why a backup or a restore ended.

/// The result of what this crate does.
pub type Result<T> = std::result::Result<T, Error>;

/// Why it ended. The text says who must act.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller asked for something that cannot be.
    #[error("{0}")]
    Refused(String),
    /// Bytes at the destination are missing or are not what was written. Another backup may be whole.
    #[error("{object} at the destination {problem}")]
    Damaged {
        /// The object.
        object: String,
        /// What is wrong with it, as the end of the sentence.
        problem: String,
    },
    /// The destination failed. To try again may help.
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
