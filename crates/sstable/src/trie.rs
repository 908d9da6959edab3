//! Tries on disk: what Partitions.db and Rows.db are made of.
//!
//! ```text
//! node  := type and bits:u8  transitions and distances  [payload]         type: high four bits, bits: low four
//! 0     payload only                                          1, 3  one child, no payload: the bits are of the distance
//! 2, 4  byte, distance of 8, 16 bits                          5..9  sparse: count, bytes, distances of 8, 12, 16, 24, 40 bits
//! 10..15  dense: first byte, span - 1, distances of 12, 16, 24, 32, 40, 64 bits; 0 is no child
//! ```
//!
//! A child stands before its parent, `distance` bytes. No node crosses a page of 4096 bytes. There is a payload if the bits
//! of a node that is neither 1 nor 3 are not 0; what it is, is the file's business.
//!
//! Invariant: every node that is given has a payload or a child. Since children stand before their parents, every walk
//! down ends, and ends at a payload.

mod node;
mod nodes;
mod walk;

pub(crate) use node::{Node, Payload, distance_bits_of, node_len};
pub(crate) use nodes::Nodes;
pub(crate) use walk::{Ascending, Descending};

/// Nodes and their payloads lie in one page of the file.
pub(crate) const PAGE_BYTES: u64 = 4096;
