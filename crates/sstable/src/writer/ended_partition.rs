//! The input of indexes for a partition.

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
    /// Size before its first unfiltered.
    pub(super) head_length: u64,
    /// Its whole size.
    pub(super) length: u64,
    /// Its first and last unfiltered.
    pub(super) span: &'a ClusteringSpan,
}
