//! [`AdminError`].

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdminError {
    /// The request cannot be fulfilled; the caller must change it.
    #[error("{0}")]
    Refused(String),
    /// The node failed; its log has more.
    #[error("{0}")]
    Failed(String),
}
