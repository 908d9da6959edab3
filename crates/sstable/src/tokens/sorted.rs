//! The sorted view: the order of the partitions of many SSTables, computed once instead of by each read.
//!
//! A range read over many SSTables spends most of its time on finding out which of them has the next partition. The view stores this: for
//! each partition of each SSTable, in order, one byte (the selector) that names the SSTable. The partition's number in that SSTable follows
//! from counting. The idea is REMIX's (Zhong and others, FAST '21), on top of the token maps, which have the order of each SSTable.
//!
//! ```text
//! selectors   3  0  7  7* 1  0  ...     the number of an SSTable; * : of the same group as the one before
//! anchor      every 1024 or 2048 selectors: the least code, and how many partitions of each SSTable come before
//! sub-anchor  every 8 selectors: the difference between its code and that of the anchor, cut to the upper 16 bits
//! ```
//!
//! Token maps have tokens cut to the bits that distinguish partitions of one SSTable. Partitions of several SSTables that these bits do not
//! distinguish, or that have the same key, form a *group*, in any order. All tokens of a group are below those of the next group. So a
//! reader merges only inside groups; most groups have one partition.
//!
//! Invariant: each partition of each SSTable is in the view once, and the partitions of one SSTable are in their order.
//!
//! Not here: when a view is made and dropped, and reads that use it (crate `engine`).

mod build;
mod run;
mod seek;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::map::TokenMap;
use super::sorted_budget::Share;

pub use build::NoView;
pub use seek::{Candidate, Spot};

/// Maximum number of SSTables of a view.
pub const SOURCES_MAX: usize = 127;
/// Bit of a selector: its partition is of the same group as the one before.
const SAME_GROUP: u8 = 0x80;
/// Number of selectors from one sub-anchor to the next.
const SUB_STEP: usize = 8;

/// The order of the partitions of some SSTables, its sources. Sources are numbered in the order in which the SSTables were given.
pub struct SortedView {
    maps: Box<[Arc<TokenMap>]>,
    selectors: Box<[u8]>,
    anchors: Box<[Anchor]>,
    /// Codes at the sub-anchors, relative to their anchor.
    subs: Box<[u16]>,
    /// For each anchor and source, the number of partitions of the source before the anchor.
    ranks: Box<[u32]>,
    /// The prefixes of the anchors, one after the other; consecutive anchors may share one. All keys of an anchor's stretch begin
    /// with its prefix.
    prefixes: Box<[u8]>,
    _memory: Share,
}

/// The start of a stretch of selectors.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    /// Index of the first selector.
    start: u64,
    /// A lower bound of the codes, behind the prefix, of all partitions from here on.
    base: u64,
    /// Start of the prefix in `prefixes`.
    prefix_at: u32,
    prefix_len: u16,
    /// Number of low bits that sub-anchors leave out of the difference between a code and `base`.
    shift: u8,
    /// Index of the first sub-anchor in `subs`.
    sub_at: u32,
}

impl SortedView {
    /// Number of partitions of all sources.
    pub fn partition_count(&self) -> u64 {
        self.selectors.len() as u64
    }

    /// Memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.selectors.len()
            + size_of_val(&*self.anchors)
            + size_of_val(&*self.subs)
            + size_of_val(&*self.ranks)
            + self.prefixes.len()
    }

    pub(crate) fn map(&self, source: usize) -> &Arc<TokenMap> {
        &self.maps[source]
    }

    /// Index of the selector behind an anchor's stretch.
    fn end_of(&self, anchor: usize) -> usize {
        match self.anchors.get(anchor + 1) {
            Some(next) => index(next.start),
            None => self.selectors.len(),
        }
    }

    fn prefix(&self, anchor: &Anchor) -> &[u8] {
        let start = anchor.prefix_at as usize;
        &self.prefixes[start..start + usize::from(anchor.prefix_len)]
    }
}

/// Converts a number of elements in memory to an index.
fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The order of a key relative to the keys that begin with a prefix. Missing bytes count as zeros, as in codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Relative {
    Below,
    /// The key begins with the prefix: the eight bytes behind it.
    Code(u64),
    Above,
}

impl Relative {
    #[inline]
    fn of(prefix: &[u8], key: &[u8]) -> Self {
        if let Some(rest) = key.strip_prefix(prefix) {
            return Self::Code(super::order::code_of_bytes(rest));
        }
        let bytes = key.iter().copied().chain(std::iter::repeat(0));
        match prefix
            .iter()
            .copied()
            .zip(bytes)
            .find(|(ours, theirs)| ours != theirs)
        {
            // The key is shorter, and the rest of the prefix is zeros.
            None => Self::Code(0),
            Some((ours, theirs)) if theirs < ours => Self::Below,
            Some(_) => Self::Above,
        }
    }
}

impl std::fmt::Debug for SortedView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SortedView")
            .field("sources", &self.maps.len())
            .field("partitions", &self.selectors.len())
            .finish_non_exhaustive()
    }
}
