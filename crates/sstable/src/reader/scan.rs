//! The choice between the chunk cache and large reads.

/// How a cursor reads Data.db.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// Chunk by chunk, through the cache.
    Point,
    /// Large reads, past the cache.
    Sequential,
}
