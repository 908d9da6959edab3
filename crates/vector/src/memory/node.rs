//! A node of a graph in memory.

use std::sync::Arc;

use parking_lot::RwLock;
use smallvec::SmallVec;

use crate::{Near, Options, Probe};

/// Maximum number of levels above the lowest.
pub(crate) const LEVEL_MAX: u8 = 15;

/// Maximum length of a list of links before it is pruned. It exceeds the limit, since pruning measures many pairs.
pub(super) const fn overgrown(most: usize) -> usize {
    most + most / 2
}

pub(crate) struct Node {
    pub(crate) vector: Arc<[f32]>,
    pub(crate) weight: f32,
    /// Ordinals of rows with this vector; empty if they were removed.
    pub(crate) ordinals: RwLock<SmallVec<[u32; 2]>>,
    /// Links by level, the lowest first. Held to copy, replace or prune them, never while other distances are measured.
    pub(crate) links: Box<[RwLock<Vec<u32>>]>,
}

impl Node {
    pub(super) fn new(ordinal: u32, vector: &[f32], weight: f32, node: u32, options: &Options) -> Self {
        let levels = 0..=level_of(node, options);
        Self {
            vector: vector.into(),
            weight,
            ordinals: RwLock::new(SmallVec::from_slice(&[ordinal])),
            links: levels.map(|_| RwLock::default()).collect(),
        }
    }

    /// A copy of the vector with other ordinals and without links.
    pub(super) fn with(&self, ordinals: &[u32]) -> Self {
        Self {
            vector: self.vector.clone(),
            weight: self.weight,
            ordinals: RwLock::new(SmallVec::from_slice(ordinals)),
            links: self.links.iter().map(|_| RwLock::default()).collect(),
        }
    }

    /// The highest level that the node is in.
    pub(super) fn level(&self) -> u8 {
        u8::try_from(self.links.len() - 1).unwrap_or(LEVEL_MAX)
    }

    #[inline]
    pub(super) fn measured(&self, id: u32, probe: &Probe) -> Near {
        Near {
            distance: probe.distance(&self.vector, self.weight),
            id,
        }
    }

    /// Bytes of memory of a node of this level with all its links.
    pub(super) fn size_bytes(options: &Options, dimension: usize, level: u8) -> usize {
        let links: usize = (0..=level).map(|level| overgrown(options.links_max(level))).sum();
        let lists = usize::from(level + 1) * size_of::<RwLock<Vec<u32>>>();
        let in_tables = 2 * size_of::<u32>();
        let counts = 2 * size_of::<usize>();
        size_of::<Self>() + lists + in_tables + counts + (dimension + links) * size_of::<u32>()
    }
}

/// The highest level of a node: one in `maximum_node_connections` of the nodes of a level is also in the next one. Computed from the
/// node's number, so that the same vectors make the same graph.
pub(super) fn level_of(node: u32, options: &Options) -> u8 {
    let connections = f64::from(options.maximum_node_connections.max(2));
    // A number above 0, and at most 1.
    let drawn = ((mixed(u64::from(node)) >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    let level = -drawn.ln() / connections.ln();
    level.min(f64::from(LEVEL_MAX)) as u8
}

/// The last step of SplitMix64, which mixes the bits of a number.
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_has_one_in_sixteen_of_the_one_below() {
        let options = Options::default();
        let levels: Vec<u8> = (0..100_000).map(|node| level_of(node, &options)).collect();
        let at_least = |level: u8| levels.iter().filter(|known| **known >= level).count();
        assert!((5500..7000).contains(&at_least(1)), "{}", at_least(1));
        assert!((300..500).contains(&at_least(2)), "{}", at_least(2));
    }
}
