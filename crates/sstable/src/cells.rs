//! Cells.db, the cell map: the positions of cells of large rows in Data.db.
//!
//! A read of some columns of a large row takes the start of the row and the times of its cells from here. From Data.db it
//! fetches only the chunks with selected values. `docs/format/cells.md` describes the file:
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
//! | `parts` | the parts of an entry, which describe the columns of a row |
//! | `map` | lookups |
//! | `lookup` | ascending lookups of one reader |
//! | `tail` | the tail of the file |
//! | `writer` | writes the file |
//!
//! Invariant: a read returns the same with the map and without it. Not here: which rows have an entry (`writer`).

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

/// Entries per block; the last block may have fewer.
const BLOCK_ENTRIES: u64 = 16;
