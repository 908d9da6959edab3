//! What indexes get of a partition.

use ilion_rows::DeletionTime;
use ilion_types::Token;

use super::clustering_span::ClusteringSpan;

/// The partition that just ended.
#[derive(Debug)]
pub(super) struct EndedPartition<'a> {
    pub(super) token: &'a Token,
    pub(super) key: &'a [u8],
    pub(super) deletion: &'a DeletionTime,
    /// Start in Data.db.
    pub(super) position: u64,
    /// Bytes before its first unfiltered.
    pub(super) head_length: u64,
    /// All its bytes.
    pub(super) length: u64,
    /// Its first and its last unfiltered.
    pub(super) span: &'a ClusteringSpan,
}
