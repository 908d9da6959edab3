//! A set of nodes that uses little memory if it is sparse.

const PAGE_WORDS: usize = 64;
const PAGE_NODES: usize = PAGE_WORDS * 64;

/// A bit per node, in pages that are allocated with their first node.
#[derive(Default)]
pub(crate) struct NodeSet {
    pages: Vec<Option<Box<[u64; PAGE_WORDS]>>>,
}

impl NodeSet {
    /// Adds a node; returns false if it was already in the set.
    #[inline]
    pub(crate) fn insert(&mut self, node: u32) -> bool {
        let (page, word, bit) = place(node);
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        let words = self.pages[page].get_or_insert_with(|| Box::new([0; PAGE_WORDS]));
        let is_new = words[word] & bit == 0;
        words[word] |= bit;
        is_new
    }

    #[inline]
    pub(crate) fn contains(&self, node: u32) -> bool {
        let (page, word, bit) = place(node);
        matches!(self.pages.get(page), Some(Some(words)) if words[word] & bit != 0)
    }
}

impl FromIterator<u32> for NodeSet {
    fn from_iter<I: IntoIterator<Item = u32>>(nodes: I) -> Self {
        let mut set = Self::default();
        for node in nodes {
            set.insert(node);
        }
        set
    }
}

#[inline]
fn place(node: u32) -> (usize, usize, u64) {
    let node = node as usize;
    (node / PAGE_NODES, node % PAGE_NODES / 64, 1 << (node % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_new_once() {
        let mut set = NodeSet::default();
        for node in [0, 63, 64, 4095, 4096, 10_000_000] {
            assert!(!set.contains(node));
            assert!(set.insert(node));
            assert!(!set.insert(node));
            assert!(set.contains(node));
            assert!(!set.contains(node + 1));
        }
    }
}
