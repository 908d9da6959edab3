//! A decoded and checked node.

use std::cmp::Ordering;

use bytes::Bytes;

const SINGLE_4: u8 = 1;
const SINGLE_8: u8 = 2;
const SINGLE_12: u8 = 3;
const SINGLE_16: u8 = 4;
const SPARSE_8: u8 = 5;
const SPARSE_40: u8 = 9;
const DENSE_12: u8 = 10;

/// How the transitions of a node are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Leaf,
    /// One byte, at this offset.
    Single {
        byte_at: u8,
    },
    /// Bytes from offset 2 on, ascending.
    Sparse,
    /// All bytes from `first` on.
    Dense {
        first: u8,
    },
}

/// A node. Its transitions are numbered slots; in a dense node, a slot may have no child.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) position: u64,
    /// The bytes from the node to the end of its page.
    bytes: Bytes,
    shape: Shape,
    pub(crate) slots: usize,
    distance_bits: u8,
    /// Offset of the distances.
    distances_at: usize,
    /// The bits of the payload; zero if there is none.
    payload_bits: u8,
    payload_at: usize,
}

/// The payload of a key.
#[derive(Clone, Debug)]
pub(crate) struct Payload {
    /// Four bits, not 0.
    pub(crate) bits: u8,
    /// The bytes to the end of the page.
    pub(crate) bytes: Bytes,
    pub(crate) position: u64,
}

impl Payload {
    /// A signed integer of `len` bytes, at most 8, at an offset.
    pub(crate) fn sized_int(&self, at: usize, len: usize) -> Option<i64> {
        let bytes = self.bytes.get(at..at.checked_add(len)?)?;
        let first = *bytes.first()?;
        let sign: i64 = if first & 0x80 == 0 { 0 } else { -1 };
        Some(
            bytes
                .iter()
                .fold(sign, |value, byte| value << 8 | i64::from(*byte)),
        )
    }
}

impl Node {
    /// Decodes the node at the start of `bytes`, which end with its page; `None` if they are not a node.
    pub(crate) fn read(position: u64, bytes: Bytes) -> Option<Self> {
        let first = *bytes.first()?;
        let (kind, bits) = (first >> 4, first & 0x0F);
        let (shape, slots) = shape_of(kind, &bytes)?;
        let has_pointer_bits = matches!(kind, SINGLE_4 | SINGLE_12);
        let distance_bits = distance_bits_of(kind);
        let distances_at = distances_at(kind, slots);
        let payload_at = node_len(kind, slots);
        let node = Self {
            position,
            shape,
            slots,
            distance_bits,
            distances_at,
            payload_bits: if has_pointer_bits { 0 } else { bits },
            payload_at,
            bytes,
        };
        (payload_at <= node.bytes.len() && node.leads_somewhere()).then_some(node)
    }

    fn leads_somewhere(&self) -> bool {
        self.has_payload() || (0..self.slots).any(|slot| self.distance(slot) > 0)
    }

    pub(crate) fn has_payload(&self) -> bool {
        self.payload_bits != 0
    }

    pub(crate) fn payload(&self) -> Option<Payload> {
        self.has_payload().then(|| Payload {
            bits: self.payload_bits,
            bytes: self.bytes.slice(self.payload_at..),
            position: self.position + self.payload_at as u64,
        })
    }

    /// True if some slots may have no child.
    pub(super) fn may_lack_children(&self) -> bool {
        matches!(self.shape, Shape::Dense { .. })
    }

    /// Finds a byte: `Ok` with its slot, or `Err` with the first slot above it.
    pub(crate) fn find(&self, byte: u8) -> Result<usize, usize> {
        let found = match self.shape {
            Shape::Leaf => Err(0),
            Shape::Single { byte_at } => match byte.cmp(&self.bytes[usize::from(byte_at)]) {
                Ordering::Less => Err(0),
                Ordering::Equal => Ok(0),
                Ordering::Greater => Err(1),
            },
            Shape::Sparse => self.bytes[2..2 + self.slots].binary_search(&byte),
            Shape::Dense { first } => match byte.checked_sub(first).map(usize::from) {
                None => Err(0),
                Some(slot) if slot >= self.slots => Err(self.slots),
                Some(slot) => Ok(slot),
            },
        };
        found.and_then(|slot| {
            if self.distance(slot) > 0 {
                Ok(slot)
            } else {
                Err(slot)
            }
        })
    }

    /// The distance from the child of a slot to the node; 0 if there is no child.
    pub(crate) fn distance(&self, slot: usize) -> u64 {
        let bytes = &self.bytes;
        match self.distance_bits {
            4 => u64::from(bytes[0] & 0x0F),
            12 if self.shape == (Shape::Single { byte_at: 2 }) => {
                u64::from(bytes[0] & 0x0F) << 8 | u64::from(bytes[1])
            }
            12 => {
                let at = self.distances_at + slot * 3 / 2;
                let both = u64::from(bytes[at]) << 8 | u64::from(bytes[at + 1]);
                if slot.is_multiple_of(2) {
                    both >> 4
                } else {
                    both & 0x0FFF
                }
            }
            bits => {
                let len = usize::from(bits / 8);
                let at = self.distances_at + slot * len;
                let read = |value, byte: &u8| value << 8 | u64::from(*byte);
                bytes[at..at + len].iter().fold(0, read)
            }
        }
    }
}

fn shape_of(kind: u8, bytes: &[u8]) -> Option<(Shape, usize)> {
    Some(match kind {
        0 => (Shape::Leaf, 0),
        SINGLE_4 | SINGLE_8 | SINGLE_16 => (Shape::Single { byte_at: 1 }, 1),
        SINGLE_12 => (Shape::Single { byte_at: 2 }, 1),
        SPARSE_8..=SPARSE_40 => (Shape::Sparse, usize::from(*bytes.get(1)?)),
        _ => {
            let shape = Shape::Dense {
                first: *bytes.get(1)?,
            };
            (shape, usize::from(*bytes.get(2)?) + 1)
        }
    })
}

/// Length of a node without its payload.
pub(crate) fn node_len(kind: u8, slots: usize) -> usize {
    match kind {
        SINGLE_4 => 2,
        SINGLE_12 => 3,
        _ => distances_at(kind, slots) + (slots * usize::from(distance_bits_of(kind))).div_ceil(8),
    }
}

pub(crate) fn distance_bits_of(kind: u8) -> u8 {
    match kind {
        SINGLE_4 => 4,
        SINGLE_8 | SPARSE_8 => 8,
        SINGLE_12 | 6 | DENSE_12 => 12,
        SINGLE_16 | 7 | 11 => 16,
        8 | 12 => 24,
        13 => 32,
        SPARSE_40 | 14 => 40,
        15 => 64,
        _ => 0,
    }
}

fn distances_at(kind: u8, slots: usize) -> usize {
    match kind {
        0 => 1,
        SINGLE_4..=SINGLE_16 => 2,
        SPARSE_8..=SPARSE_40 => 2 + slots,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(bytes: &[u8]) -> Option<Node> {
        Node::read(1000, Bytes::copy_from_slice(bytes))
    }

    fn children(node: &Node) -> Vec<(u8, u64)> {
        let found = (0..=255).filter_map(|byte| Some((byte, node.find(byte).ok()?)));
        found.map(|(byte, slot)| (byte, node.distance(slot))).collect()
    }

    #[test]
    fn nodes_of_every_type_give_their_children_and_their_payload() {
        let hex = |text: &str| -> Vec<u8> {
            let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b' ').collect();
            let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
            digits.chunks(2).map(byte).collect()
        };
        // Type, bytes after the first one, children.
        let one: &[(u8, u64)] = &[(0x61, 0x07)];
        let two: &[(u8, u64)] = &[(0x61, 0x12), (0x63, 0x34)];
        let cases = [
            (0, "", &[][..]),
            (2, "61 07", one),
            (4, "61 0007", one),
            (5, "02 6163 12 34", two),
            (6, "02 6163 012 034", two),
            (6, "01 61 0070", one),
            (7, "02 6163 0012 0034", two),
            (8, "02 6163 000012 000034", two),
            (9, "02 6163 0000000012 0000000034", two),
            (10, "61 02 012 000 0340", two),
            (11, "61 02 0012 0000 0034", two),
            (12, "61 02 000012 000000 000034", two),
            (13, "61 02 00000012 00000000 00000034", two),
            (14, "61 02 0000000012 0000000000 0000000034", two),
            (
                15,
                "61 02 0000000000000012 0000000000000000 0000000000000034",
                two,
            ),
        ];
        for (kind, rest, expected) in cases {
            let mut bytes = vec![kind << 4 | 1];
            bytes.extend(hex(rest));
            bytes.push(0xFE);
            let read = node(&bytes).unwrap();
            assert_eq!(children(&read), expected, "type {kind}");
            let payload = read.payload().unwrap();
            assert_eq!(
                (payload.bits, payload.sized_int(0, 1)),
                (1, Some(-2)),
                "type {kind}"
            );
            bytes.truncate(bytes.len() - 2);
            assert!(kind == 0 || node(&bytes).is_none(), "type {kind}, cut");
        }
        for bytes in [&[0x17, 0x61][..], &[0x30, 0x07, 0x61]] {
            let read = node(bytes).unwrap();
            assert_eq!(children(&read), one);
            assert!(read.payload().is_none());
        }
    }

    #[test]
    fn what_leads_nowhere_is_no_node() {
        assert!(node(&[]).is_none());
        assert!(node(&[0x00]).is_none());
        assert!(node(&[0x50, 0x00]).is_none());
        assert!(node(&[0xA0, 0x61, 0x00, 0x00, 0x00]).is_none());
    }

    #[test]
    fn sized_integers_are_signed() {
        let payload = |bytes: &'static [u8]| Payload {
            bits: 1,
            bytes: Bytes::from_static(bytes),
            position: 0,
        };
        assert_eq!(payload(&[0x7F]).sized_int(0, 1), Some(127));
        assert_eq!(payload(&[1, 0xFF, 0x00]).sized_int(1, 2), Some(-256));
        assert_eq!(payload(&[0xFF; 8]).sized_int(0, 8), Some(-1));
        assert_eq!(payload(&[1]).sized_int(0, 2), None);
        assert_eq!(payload(&[1]).sized_int(0, 0), None);
        assert_eq!(payload(&[1]).sized_int(2, 1), None);
    }
}
