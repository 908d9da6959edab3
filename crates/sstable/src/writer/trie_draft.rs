//! A node of a trie that is not in the file yet, and its encoding; the layout is in `trie`.
//!
//! Compat: types are chosen as in Cassandra (`TrieNode.typeFor`): the narrowest distances that fit; sparse if that is shorter
//! than dense.

use ilion_codec::Append;

use crate::trie::{distance_bits_of, node_len};

/// Widths of distances in bits. The tables below have the node type for each width; which table is used depends on the number of children.
const WIDTHS: [u8; 8] = [4, 8, 12, 16, 24, 32, 40, 64];
const SINGLE: [u8; 8] = [1, 2, 3, 4, 12, 13, 14, 15];
const SPARSE: [u8; 8] = [5, 5, 6, 7, 8, 9, 9, 15];
const DENSE: [u8; 8] = [10, 10, 10, 11, 12, 13, 14, 15];
const DENSE_FIRST: u8 = 10;
/// Maximum length of a payload: hash and position, or offset and deletion.
const PAYLOAD_LEN_MAX: usize = 20;

/// An encoded payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PayloadBytes {
    /// The payload bits of the node; zero if there is no payload.
    bits: u8,
    len: u8,
    bytes: [u8; PAYLOAD_LEN_MAX],
}

impl PayloadBytes {
    /// An empty payload with these bits. Requires: `bits` is 1 to 15.
    pub(super) fn new(bits: u8) -> Self {
        assert!((1..16).contains(&bits), "the bits mark a payload");
        Self {
            bits,
            ..Self::default()
        }
    }

    /// Appends bytes.
    pub(super) fn with(mut self, bytes: &[u8]) -> Self {
        let start = usize::from(self.len);
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        #[expect(clippy::cast_possible_truncation, reason = "at most PAYLOAD_LEN_MAX")]
        let len = (start + bytes.len()) as u8;
        Self { len, ..self }
    }

    /// Appends an integer of [`sized_int_len`] bytes.
    pub(super) fn with_sized_int(self, value: i64) -> Self {
        let len = usize::from(sized_int_len(value));
        self.with(&value.to_be_bytes()[8 - len..])
    }

    fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// The fewest bytes that can store a signed value: 1 to 8.
pub(super) fn sized_int_len(value: i64) -> u8 {
    let magnitude = if value < 0 { !value } else { value };
    #[expect(clippy::cast_possible_truncation, reason = "at most 8")]
    let len = ((64 - magnitude.leading_zeros()) / 8 + 1) as u8;
    len
}

/// A node that is not in the file yet, or whose parent is not in the file yet.
#[derive(Debug)]
pub(super) struct NodeDraft {
    /// The byte of the transition that leads to the node.
    pub(super) transition: u8,
    pub(super) payload: PayloadBytes,
    pub(super) children: Vec<NodeDraft>,
    /// Position of the node, if it is in the file.
    pub(super) position: Option<u64>,
    /// Size of the part of the node's branch that is not in the file yet. An underestimate if `has_far_below`, since distances depend
    /// on the position of the branch.
    pub(super) branch_len: usize,
    /// Size of the node alone. An underestimate if `has_far_children`.
    pub(super) len: usize,
    /// True if a child is already in the file. Also true until the node is complete.
    pub(super) has_far_children: bool,
    /// True if a node below its children is in the file.
    pub(super) has_far_below: bool,
}

impl NodeDraft {
    pub(super) fn new(transition: u8) -> Self {
        Self {
            transition,
            payload: PayloadBytes::default(),
            children: Vec::new(),
            position: None,
            branch_len: 0,
            len: 0,
            has_far_children: true,
            has_far_below: false,
        }
    }

    pub(super) fn total_len(&self) -> usize {
        self.branch_len + self.len
    }

    /// Marks the node as written at `position`; its children are no longer needed.
    pub(super) fn settle(&mut self, position: u64) {
        *self = Self {
            position: Some(position),
            has_far_children: false,
            ..Self::new(self.transition)
        };
    }

    /// Size of the node at `position`, including the payload.
    pub(super) fn len_at(&self, position: u64) -> usize {
        let kind = self.kind_at(position);
        node_len(kind, self.slots(kind)) + usize::from(self.payload.len)
    }

    /// Computes the sizes of a branch that starts at `position`; returns their sum.
    pub(super) fn measure(&mut self, position: u64) -> usize {
        if self.has_far_below {
            let mut sum = 0;
            for child in &mut self.children {
                sum += child.measure(position + sum as u64);
            }
            self.branch_len = sum;
        }
        if self.has_far_children || self.has_far_below {
            self.len = self.len_at(position + self.branch_len as u64);
        }
        self.total_len()
    }

    fn slots(&self, kind: u8) -> usize {
        match (self.children.first(), self.children.last()) {
            (Some(first), Some(last)) if kind >= DENSE_FIRST => {
                usize::from(last.transition - first.transition) + 1
            }
            _ => self.children.len(),
        }
    }

    fn kind_at(&self, position: u64) -> u8 {
        if self.children.is_empty() {
            return 0;
        }
        let bits = 64 - self.longest_distance(position).leading_zeros();
        let class = WIDTHS.iter().position(|width| bits <= u32::from(*width));
        let class = class.unwrap_or(WIDTHS.len() - 1);
        if self.children.len() == 1 {
            // These types store bits of the distance where others store payload bits, so they cannot have a payload.
            let has_no_payload_form = matches!(SINGLE[class], 1 | 3) && self.payload.bits != 0;
            return SINGLE[class + usize::from(has_no_payload_form)];
        }
        let (sparse, dense) = (SPARSE[class], DENSE[class]);
        if node_len(sparse, self.slots(sparse)) < node_len(dense, self.slots(dense)) {
            sparse
        } else {
            dense
        }
    }

    /// The distance to the farthest child. Children that are not in the file yet will be right before the node.
    fn longest_distance(&self, position: u64) -> u64 {
        let distance_to = |child: &Self| self.branch_len.saturating_sub(child.branch_len) as u64;
        if !self.has_far_children {
            return self.children.first().map_or(0, distance_to);
        }
        let placed = self.children.iter().filter_map(|child| child.position);
        let placed = placed.map(|child| position - child).max();
        let unplaced = self.children.iter().find(|child| child.position.is_none());
        placed.max(unplaced.map(distance_to)).unwrap_or(0)
    }

    /// Appends the node. Requires: it will be at `position`, and all its children are in the file.
    pub(super) fn encode(&self, position: u64, out: &mut impl Append) {
        let kind = self.kind_at(position);
        let distance = |child: &Self| position - child.position.unwrap_or(position);
        let first_byte = kind << 4;
        match (kind, self.children.first()) {
            (1, Some(child)) => {
                out.u8(first_byte | low_byte(distance(child)));
                out.u8(child.transition);
            }
            (3, Some(child)) => {
                out.u8(first_byte | low_byte(distance(child) >> 8));
                out.u8(low_byte(distance(child)));
                out.u8(child.transition);
            }
            (_, first) => {
                out.u8(first_byte | self.payload.bits);
                if let Some(first) = first {
                    self.encode_transitions(kind, first.transition, out);
                }
                encode_distances(kind, self.distances(kind, distance), out);
            }
        }
        out.bytes(self.payload.as_slice());
    }

    fn encode_transitions(&self, kind: u8, first: u8, out: &mut impl Append) {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a sparse node has at most 255 children, a span is at most 256"
        )]
        if kind >= DENSE_FIRST {
            out.u8(first);
            out.u8((self.slots(kind) - 1) as u8);
        } else {
            if self.children.len() > 1 {
                out.u8(self.children.len() as u8);
            }
            for child in &self.children {
                out.u8(child.transition);
            }
        }
    }

    /// The distance of every slot; 0 for missing slots of a dense node.
    fn distances(&self, kind: u8, distance: impl Fn(&Self) -> u64) -> impl Iterator<Item = u64> {
        let first = self.children.first().map_or(0, |child| child.transition);
        let mut children = self.children.iter().peekable();
        (0..self.slots(kind)).map(move |slot| {
            let is_there =
                |child: &&Self| kind < DENSE_FIRST || usize::from(child.transition - first) == slot;
            children.next_if(is_there).map_or(0, &distance)
        })
    }
}

fn encode_distances(kind: u8, distances: impl Iterator<Item = u64>, out: &mut impl Append) {
    if distance_bits_of(kind) != 12 {
        let len = usize::from(distance_bits_of(kind) / 8);
        for distance in distances {
            out.bytes(&distance.to_be_bytes()[8 - len..]);
        }
        return;
    }
    let mut half = None;
    for distance in distances {
        match half.take() {
            None => {
                out.u8(low_byte(distance >> 4));
                half = Some(low_byte(distance << 4));
            }
            Some(half) => {
                out.u8(half | low_byte(distance >> 8));
                out.u8(low_byte(distance));
            }
        }
    }
    if let Some(half) = half {
        out.u8(half);
    }
}

fn low_byte(value: u64) -> u8 {
    value.to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use ilion_codec::Writer;

    use super::*;
    use crate::trie::Node;

    const POSITION: u64 = 1 << 50;

    /// A node with children at these distances.
    fn draft(children: &[(u8, u64)], payload: PayloadBytes) -> NodeDraft {
        let placed = |(transition, distance): &(u8, u64)| {
            let mut child = NodeDraft::new(*transition);
            child.settle(POSITION - distance);
            child
        };
        NodeDraft {
            children: children.iter().map(placed).collect(),
            payload,
            ..NodeDraft::new(0)
        }
    }

    #[test]
    fn nodes_of_every_shape_and_width_are_read_as_they_were_written() {
        let payload = PayloadBytes::new(2).with_sized_int(-300);
        let mut types = std::collections::BTreeSet::new();
        for shift in [0, 4, 8, 12, 16, 24, 32, 40] {
            for transitions in [
                &[9][..],
                &[7, 8],
                &[7, 200],
                &[0, 9, 10, 11, 12, 255],
                &[1, 2, 3, 4],
            ] {
                for payload in [PayloadBytes::default(), payload] {
                    let numbered = transitions.iter().zip(1u64..);
                    let children: Vec<_> = numbered.map(|(byte, number)| (*byte, number << shift)).collect();
                    let draft = draft(&children, payload);
                    let mut out = Writer::new();
                    draft.encode(POSITION, &mut out);
                    assert_eq!(out.len(), draft.len_at(POSITION), "{children:?}");
                    types.insert(out.as_slice()[0] >> 4);
                    let node = Node::read(POSITION, Bytes::from(out.into_vec())).unwrap();
                    for (byte, distance) in children {
                        assert_eq!(node.distance(node.find(byte).unwrap()), distance);
                    }
                    assert!(node.slots >= transitions.len());
                    assert!(node.find(6).is_err() && node.find(254).is_err());
                    let read = node.payload().map(|payload| payload.sized_int(0, 2));
                    assert_eq!(read, (payload.bits != 0).then_some(Some(-300)));
                }
            }
        }
        assert_eq!(
            types.into_iter().collect::<Vec<_>>(),
            (1..16).collect::<Vec<u8>>()
        );
    }

    #[test]
    fn sized_integers_take_as_few_bytes_as_their_sign_allows() {
        let lens = [0, -1, 127, 128, -128, -129, 32_767, 32_768, i64::MAX, i64::MIN].map(sized_int_len);
        assert_eq!(lens, [1, 1, 1, 2, 1, 2, 2, 3, 8, 8]);
    }
}
