//! The entry of searches: a node of the highest level.

use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire};

/// Node and level in one word; 0 means that there is no entry.
pub(super) struct Entry(AtomicU64);

impl Entry {
    pub(super) fn none() -> Self {
        Self(AtomicU64::new(0))
    }

    pub(super) fn top(&self) -> Option<(u32, u8)> {
        of_word(self.0.load(Acquire))
    }

    /// Replaces the entry if this node's level is higher.
    pub(super) fn raise(&self, node: u32, level: u8) {
        let is_higher = |known: u64| of_word(known).is_none_or(|(_, top)| level > top);
        let word = (u64::from(level) << 40) | (u64::from(node) + 1);
        let _ = self
            .0
            .fetch_update(AcqRel, Acquire, |known| is_higher(known).then_some(word));
    }
}

fn of_word(word: u64) -> Option<(u32, u8)> {
    let node = (word & 0xFF_FFFF_FFFF).checked_sub(1)?;
    Some((node as u32, (word >> 40) as u8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_higher_node_replaces_the_entry() {
        let entry = Entry::none();
        assert_eq!(entry.top(), None);
        entry.raise(u32::MAX - 1, 0);
        entry.raise(7, 0);
        assert_eq!(entry.top(), Some((u32::MAX - 1, 0)));
        entry.raise(7, 2);
        assert_eq!(entry.top(), Some((7, 2)));
    }
}
