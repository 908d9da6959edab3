//! Tries on disk, in Partitions.db and Rows.db.
//!
//! ```text
//! node  := type and bits:u8  transitions and distances  [payload]         type: high four bits, bits: low four
//! 0     payload only                                          1, 3  one child, no payload: the bits are of the distance
//! 2, 4  byte, distance of 8, 16 bits                          5..9  sparse: count, bytes, distances of 8, 12, 16, 24, 40 bits
//! 10..15  dense: first byte, span - 1, distances of 12, 16, 24, 32, 40, 64 bits; 0 is no child
//! ```
//!
//! A child comes before its parent, `distance` bytes earlier. No node crosses a page of 4096 bytes. A node of a type other than
//! 1 and 3 has a payload if its bits are not 0. The file determines the content of payloads.
//!
//! Invariant: every decoded node has a payload or a child. Since children come before their parents, every walk down ends, and
//! ends at a payload.

mod node;
mod nodes;
mod walk;

pub(crate) use node::{Node, Payload, distance_bits_of, node_len};
pub(crate) use nodes::Nodes;
pub(crate) use walk::{Ascending, Descending};

/// Page size in bytes. Each node, with its payload, is in one page of the file.
pub(crate) const PAGE_BYTES: u64 = 4096;
