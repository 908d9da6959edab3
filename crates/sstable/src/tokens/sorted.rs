//! The sorted view: the order of the partitions of many SSTables, found once and not again by each read.
//!
//! A range read over many SSTables spends most of its time on finding out which of them has the next partition. The view has the answer: for
//! each partition of each SSTable, in order, one byte that says which SSTable it is of. Where that SSTable has it follows from counting. The
//! idea is REMIX's (Zhong and others, FAST '21), on top of the token maps, which have the order of each SSTable.
//!
//! ```text
//! selectors   3  0  7  7* 1  0  ...     an SSTable each; * : of the same group as the one before
//! anchor      every 1024 or 2048 selectors: the least code, and how many partitions of each SSTable come before
//! sub-anchor  every 8 selectors: about the code, in 16 bits
//! ```
//!
//! Token maps have tokens cut to the bits that tell partitions of one SSTable apart. Partitions of several SSTables that cannot be told apart
//! by them, or that have the same key, form a *group*, in any order. All tokens of a group are below those of the next one. So the reader
//! merges inside groups and nowhere else; most groups have one partition.
//!
//! Invariant: each partition of each SSTable stands once in the view, and those of one SSTable stand in their order.
//!
//! Not here: when a view is made and dropped, and what is read with it (crate `engine`).

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

/// SSTables that a view can have.
pub const SOURCES_MAX: usize = 127;
/// Set in a selector whose partition is of the same group as the one before.
const SAME_GROUP: u8 = 0x80;
/// Selectors between two sub-anchors.
const SUB_STEP: usize = 8;

/// The order of the partitions of some SSTables. The sources are numbered as they were given.
pub struct SortedView {
    maps: Box<[Arc<TokenMap>]>,
    selectors: Box<[u8]>,
    anchors: Box<[Anchor]>,
    /// Codes at the sub-anchors, relative to their anchor.
    subs: Box<[u16]>,
    /// For each anchor and source, the number of partitions of the source before the anchor.
    ranks: Box<[u32]>,
    /// The common prefix of the codes of each anchor.
    prefixes: Box<[u8]>,
    _memory: Share,
}

/// Where a stretch of selectors begins.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    /// The first selector.
    start: u64,
    /// Not above the code of any partition from here on, behind the prefix.
    base: u64,
    /// In `prefixes`.
    prefix_at: u32,
    prefix_len: u16,
    /// Of codes above `base`, the bits that sub-anchors leave out.
    shift: u8,
    /// In `subs`.
    sub_at: u32,
}

impl SortedView {
    /// Partitions of all sources.
    pub fn partition_count(&self) -> u64 {
        self.selectors.len() as u64
    }

    /// Memory that it takes.
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

    /// The end of an anchor's stretch.
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

/// The numbers count elements in memory.
fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The order of a key or code and the keys that begin with a prefix. Missing bytes are zeros, as in codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Relative {
    Below,
    /// The eight bytes behind the prefix.
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
