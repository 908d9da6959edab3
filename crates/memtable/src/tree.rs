//! [`Tree`]: a map from partition keys to partitions, for shards of many millions of them. Keys are never removed.
//!
//! A search in a large memtable mostly waits for memory. A `BTreeMap` has whole keys and values in its nodes, so that each of them is
//! several cache lines to read, and its nodes are small, so that there are many levels. Here the places of a node's keys ([`PlacedKey`])
//! are stored side by side: a search in a node reads a few cache lines, and the upper levels are small enough for the caches. Whole keys
//! are compared only if their places are equal.
//!
//! A binary search would wait for one cache line after another, since each of its steps depends on the one before. Here a search counts
//! the lower places of a node: its comparisons do not depend on each other, so the processor reads their cache lines at the same time.
//!
//! ```text
//! tree    := middle *                by their least keys
//! middle  := leaf *                  by their least keys, at most 256
//! leaf    := place * slot * entry *  places and slots by key, at most 16; entries in the order of their arrival
//! ```
//!
//! An insert moves places and slots, but no entries. Invariant: leaves and middles are not empty; keys ascend within and across leaves.
//! A key below all others goes to the first leaf, so the least key that a parent has for its first child may be too high; searches do not
//! use it.

use std::ops::Bound;

use smallvec::SmallVec;

use crate::placed_key::PlacedKey;

const LEAF_ENTRIES: usize = 16;
const MIDDLE_LEAVES: usize = 256;

/// See the module.
pub(crate) struct Tree<V> {
    middles: Children<Children<Leaf<V>>>,
}

/// Child nodes in key order, with the least key of each.
struct Children<C> {
    keys: Vec<PlacedKey>,
    /// Each with the place of its key beside it, so that a search which has found the place has also read the pointer to the node.
    nodes: Vec<(u64, Box<C>)>,
}

struct Leaf<V> {
    /// The places behind those of the entries are [`u64::MAX`], which is not below any place.
    places: [u64; LEAF_ENTRIES],
    /// For each place, the index of its entry in `entries`.
    slots: [u8; LEAF_ENTRIES],
    entries: SmallVec<[(PlacedKey, V); LEAF_ENTRIES]>,
}

/// The position of an entry in the tree; `entry` counts in key order.
#[derive(Clone, Copy)]
struct At {
    middle: usize,
    leaf: usize,
    entry: usize,
}

/// Number of places that are not above `place`. Requires: the places ascend.
#[inline]
fn not_above<C>(nodes: &[(u64, C)], place: u64) -> usize {
    const GROUP: usize = 16;
    let is_before = |(known, _): &&(u64, C)| *known <= place;
    let (mut start, mut len) = (0, nodes.len());
    // Only at the top of a large tree, which is in a cache.
    while len > MIDDLE_LEAVES {
        let half = len / 2;
        if is_before(&&nodes[start + half]) {
            start += half;
        }
        len -= half;
    }
    let window = &nodes[start..start + len];
    let groups = window.iter().step_by(GROUP).filter(is_before).count();
    let group = groups.saturating_sub(1) * GROUP;
    let group_end = (group + GROUP).min(len);
    let in_group = window[group..group_end].iter().filter(is_before).count();
    start + group + in_group
}

impl<C> Children<C> {
    fn new() -> Self {
        Self {
            keys: Vec::new(),
            nodes: Vec::new(),
        }
    }

    /// Index of the only child node that may have the key. Requires: there are child nodes.
    #[inline]
    fn find(&self, key: &PlacedKey) -> usize {
        let place = key.place();
        let later = &self.nodes[1..];
        let mut end = not_above(later, place);
        if end > 0 && later[end - 1].0 == place {
            let start = later[..end].partition_point(|(known, _)| *known < place);
            end = start + self.keys[1..][start..end].partition_point(|known| known <= key);
        }
        end
    }

    fn insert(&mut self, at: usize, least: PlacedKey, node: C) {
        self.nodes.insert(at, (least.place(), Box::new(node)));
        self.keys.insert(at, least);
    }

    fn split_off(&mut self, at: usize) -> Self {
        Self {
            keys: self.keys.split_off(at),
            nodes: self.nodes.split_off(at),
        }
    }
}

impl<V> Leaf<V> {
    fn new() -> Self {
        Self {
            places: [u64::MAX; LEAF_ENTRIES],
            slots: [0; LEAF_ENTRIES],
            entries: SmallVec::new(),
        }
    }

    fn len(&self) -> usize {
        self.entries.len()
    }

    /// The entry at a place in the order of the keys.
    #[inline]
    fn entry(&self, at: usize) -> Option<&(PlacedKey, V)> {
        (at < self.len()).then(|| &self.entries[usize::from(self.slots[at])])
    }

    /// Finds a key: `Ok` with its index in key order, or `Err` with the index where it belongs.
    #[inline]
    fn find(&self, key: &PlacedKey) -> Result<usize, usize> {
        let place = key.place();
        let start = self.places.iter().filter(|known| **known < place).count();
        if self.places.get(start) != Some(&place) {
            return Err(start);
        }
        let equal = self.places[start..self.len()]
            .iter()
            .take_while(|known| **known == place)
            .count();
        let slots = &self.slots[start..start + equal];
        let found = slots.binary_search_by(|slot| self.entries[usize::from(*slot)].0.cmp(key));
        found.map(|at| start + at).map_err(|at| start + at)
    }

    /// Inserts an entry. Requires: the leaf is not full, and the key belongs at `at`.
    #[expect(clippy::cast_possible_truncation, reason = "a leaf has few entries")]
    fn insert(&mut self, at: usize, key: PlacedKey, value: V) {
        let len = self.len();
        self.places.copy_within(at..len, at + 1);
        self.slots.copy_within(at..len, at + 1);
        self.places[at] = key.place();
        self.slots[at] = len as u8;
        self.entries.push((key, value));
    }

    /// Moves the entries from `at` to the end to a new leaf.
    fn split_off(&mut self, at: usize) -> Self {
        let slots = self.slots;
        let len = self.len();
        let entries = std::mem::take(&mut self.entries);
        let mut taken: SmallVec<[Option<(PlacedKey, V)>; LEAF_ENTRIES]> =
            entries.into_iter().map(Some).collect();
        self.places = [u64::MAX; LEAF_ENTRIES];
        let mut upper = Self::new();
        for (index, slot) in slots[..len].iter().enumerate() {
            if let Some((key, value)) = taken[usize::from(*slot)].take() {
                let half = if index < at { &mut *self } else { &mut upper };
                half.insert(half.len(), key, value);
            }
        }
        upper
    }
}

impl<V> Tree<V> {
    pub(crate) fn new() -> Self {
        Self {
            middles: Children::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.middles.nodes.is_empty()
    }

    /// Finds a key: `Ok` with its position, or `Err` with the position where it belongs. Requires: the tree is not empty.
    #[inline]
    fn find(&self, key: &PlacedKey) -> Result<At, At> {
        let middle = self.middles.find(key);
        let leaves = &self.middles.nodes[middle].1;
        let leaf = leaves.find(key);
        let at = |entry| At { middle, leaf, entry };
        leaves.nodes[leaf].1.find(key).map(at).map_err(at)
    }

    /// The value of a key.
    #[inline]
    pub(crate) fn get(&self, key: &PlacedKey) -> Option<&V> {
        if self.is_empty() {
            return None;
        }
        let at = self.find(key).ok()?;
        let (_, value) = self.middles.nodes[at.middle].1.nodes[at.leaf].1.entry(at.entry)?;
        Some(value)
    }

    /// The value of a key. If the key is missing, inserts the result of `new`, and also returns true.
    pub(crate) fn get_or_insert(&mut self, key: PlacedKey, new: impl FnOnce() -> V) -> (&mut V, bool) {
        if self.is_empty() {
            let mut leaves = Children::new();
            leaves.insert(0, key.clone(), Leaf::new());
            self.middles.insert(0, key.clone(), leaves);
        }
        let (at, is_new) = match self.find(&key) {
            Ok(at) => (at, false),
            Err(at) => (self.insert(at, key, new()), true),
        };
        let leaf = &mut self.middles.nodes[at.middle].1.nodes[at.leaf].1;
        let slot = usize::from(leaf.slots[at.entry]);
        (&mut leaf.entries[slot].1, is_new)
    }

    /// Inserts a key at the position where it belongs. Returns its final position, which may differ if the leaf was split.
    fn insert(&mut self, mut at: At, key: PlacedKey, value: V) -> At {
        let (_, middle) = &mut self.middles.nodes[at.middle];
        let (_, leaf) = &mut middle.nodes[at.leaf];
        if leaf.len() < LEAF_ENTRIES {
            leaf.insert(at.entry, key, value);
            return at;
        }
        // Writes in ascending order leave leaves full, other writes leave them half full.
        let is_last = at.entry == LEAF_ENTRIES;
        let split_at = match is_last {
            true => LEAF_ENTRIES,
            false => LEAF_ENTRIES / 2,
        };
        let mut upper = leaf.split_off(split_at);
        let is_upper = is_last || at.entry > split_at;
        match is_upper {
            true => {
                at.entry -= split_at;
                upper.insert(at.entry, key, value);
            }
            false => leaf.insert(at.entry, key, value),
        }
        if let Some((least, _)) = upper.entry(0) {
            let least = least.clone();
            middle.insert(at.leaf + 1, least, upper);
            at.leaf += usize::from(is_upper);
        }
        if middle.nodes.len() > MIDDLE_LEAVES {
            let half = MIDDLE_LEAVES / 2;
            let upper = middle.split_off(half);
            let least = upper.keys[0].clone();
            self.middles.insert(at.middle + 1, least, upper);
            if at.leaf >= half {
                at.middle += 1;
                at.leaf -= half;
            }
        }
        at
    }

    /// The entries from a bound on, in order.
    #[inline]
    pub(crate) fn range_from(&self, start: Bound<&PlacedKey>) -> impl Iterator<Item = (&PlacedKey, &V)> {
        let first = At {
            middle: 0,
            leaf: 0,
            entry: 0,
        };
        let mut at = match start {
            Bound::Included(key) | Bound::Excluded(key) if !self.is_empty() => match self.find(key) {
                Ok(at) if matches!(start, Bound::Excluded(_)) => At {
                    entry: at.entry + 1,
                    ..at
                },
                Ok(at) | Err(at) => at,
            },
            _ => first,
        };
        std::iter::from_fn(move || {
            loop {
                let (_, leaves) = self.middles.nodes.get(at.middle)?;
                let Some((_, leaf)) = leaves.nodes.get(at.leaf) else {
                    at = At {
                        middle: at.middle + 1,
                        ..first
                    };
                    continue;
                };
                let Some((key, value)) = leaf.entry(at.entry) else {
                    at = At {
                        leaf: at.leaf + 1,
                        entry: 0,
                        ..at
                    };
                    continue;
                };
                at.entry += 1;
                return Some((key, value));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ilion_types::Token;
    use proptest::prelude::*;

    use super::*;

    /// A key of one of four shapes. Keys of shape 1 or 2 often have equal first eight bytes, so only their whole keys tell them apart.
    fn key(number: u64, shape: u8) -> PlacedKey {
        let text = match shape % 4 {
            0 => format!("{number}"),
            1 => format!("{number:016}"),
            2 => format!("user{number:012}"),
            _ => return PlacedKey::of(&Token::Murmur3((number as i64).wrapping_mul(0x9E37_79B9)), b"k"),
        };
        PlacedKey::of(&Token::Bytes(text.as_bytes().into()), text.as_bytes())
    }

    fn check(numbers: impl Iterator<Item = u64>, shape: u8, looked_up: &[u64]) {
        let (mut tree, mut model) = (Tree::new(), BTreeMap::new());
        for number in numbers {
            let (value, is_new) = tree.get_or_insert(key(number, shape), || 0);
            assert_eq!(is_new, !model.contains_key(&key(number, shape)));
            *value += 1;
            *model.entry(key(number, shape)).or_insert(0) += 1;
        }
        let all = tree.range_from(Bound::Unbounded);
        assert!(all.eq(model.iter()));
        for number in looked_up {
            let key = key(*number, shape);
            assert_eq!(tree.get(&key), model.get(&key));
            for start in [Bound::Included(&key), Bound::Excluded(&key)] {
                let expected = model.range((start, Bound::Unbounded)).take(40);
                assert!(tree.range_from(start).take(40).eq(expected));
            }
        }
    }

    #[test]
    fn many_keys_in_any_order_are_found() {
        const COUNT: u64 = 40_000;
        for shape in 0..4 {
            for step in [1, COUNT - 1, 17_389] {
                let numbers = (0..COUNT).map(|index| index * step % COUNT * 2);
                check(
                    numbers,
                    shape,
                    &[0, 1, 2, 777, 39_999, 40_000, 79_998, 79_999, 80_000],
                );
            }
        }
    }

    #[test]
    fn the_highest_place_is_a_place_as_any_other() {
        let high = |number: u8| {
            let bytes = [&[0xFF; 8][..], &[number]].concat();
            PlacedKey::of(&Token::Bytes(bytes.as_slice().into()), &bytes)
        };
        let mut tree = Tree::new();
        for number in (0..200).rev() {
            assert_eq!(high(number).place(), u64::MAX);
            assert!(tree.get(&high(number)).is_none());
            tree.get_or_insert(high(number), || number);
        }
        let values = tree.range_from(Bound::Unbounded).map(|(_, value)| *value);
        assert!(values.eq(0..200));
        assert_eq!(tree.get(&high(77)), Some(&77));
    }

    proptest! {
        #[test]
        fn it_is_a_map_in_the_order_of_its_keys(
            numbers in prop::collection::vec(0_u64..3000, 0..1500),
            looked_up in prop::collection::vec(0_u64..3100, 20),
            shape in 0_u8..4,
        ) {
            check(numbers.into_iter(), shape, &looked_up);
        }
    }
}
