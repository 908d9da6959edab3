//! The facts about a partition that indexes need.

use ilion_rows::DeletionTime;
use ilion_types::Token;

use super::clustering_span::ClusteringSpan;

/// The partition that has just ended.
#[derive(Debug)]
pub(super) struct EndedPartition<'a> {
    pub(super) token: &'a Token,
    pub(super) key: &'a [u8],
    pub(super) deletion: &'a DeletionTime,
    /// Position in Data.db.
    pub(super) position: u64,
    /// Number of bytes before the first unfiltered.
    pub(super) head_length: u64,
    /// Size of the whole partition in bytes.
    pub(super) length: u64,
    /// The first and the last unfiltered.
    pub(super) span: &'a ClusteringSpan,
}
