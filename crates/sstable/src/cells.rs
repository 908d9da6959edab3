//! Cells.db, the cell map: where the cells of large rows are in Data.db.
//!
//! A read that wants some columns of a large row finds the start of the row and the times of its cells here, and fetches of
//! Data.db only the chunks with wanted values. `docs/format/cells.md` tells the file:
//!
//! ```text
//! file      := body  page_crc:u32 *  tail                                                  integers are little-endian
//! body      := block *  zeros  directory
//! block     := (gap:uvint  length:uvint) *  entry *
//! entry     := head_length:uvint  head  part *
//! part      := tag:uvint ...                                                               tag: columns << 2 | kind
//! directory := base_position:u64 *  block_at:u64 *                                         one of each for every block
//! tail      := version:u8  entry_count:u64  data_length:u64  stored_length:u64  fingerprint:u32  body_length:u64
//!              directory_at:u64  tail_crc:u32  magic
//! ```
//!
//! | module | what |
//! | --- | --- |
//! | `parts` | what an entry has of the columns of a row |
//! | `map` | look-ups |
//! | `lookup` | look-ups of a reader, which ascend |
//! | `tail` | what the file says of itself |
//! | `writer` | entries in, file out |
//!
//! Invariant: what is read with the map is what is read without it. Not here: which rows have an entry (`writer`).

mod lookup;
mod map;
mod parts;
mod tail;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use lookup::CellLookup;
pub(crate) use map::{CellMap, Entry};
pub(crate) use parts::{Part, Parts, PartsWriter};
pub(crate) use writer::{CellMapWriter, Whole};

/// Entries of a block; the last one may have fewer.
const BLOCK_ENTRIES: u64 = 16;
