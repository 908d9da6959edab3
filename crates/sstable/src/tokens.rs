//! Tokens.db, the token map: for each partition its token, cut to the bits that distinguish it, and its position in Data.db.
//!
//! Lookups in memory return whether and where the SSTable may have a partition, how many partitions are between two tokens, and which
//! token comes next. Only the pages that a lookup needs are loaded. `docs/format/tokens.md` describes the file:
//!
//! ```text
//! file      := block *  zeros  directory  separators  page_crc:u32 *  tail         integers are little-endian
//! block     := base_position:u64  base_code:u64  shift:u8  code_low_bits:u8  position_low_bits:u8  0:u8  code_words:u16
//!              position_words:u16  wide_count:u16  prefix_len:u16  prefix  codes:sequence  positions:sequence  wide *
//! wide      := number:u16  index_position:u64          a partition of the block that has a row index, and where
//! directory := head:u64 *  block_at:u64 *  [separator_end:u64 *]                   one of each for every block
//! tail      := first_key:bytes16  last_key:bytes16  version:u8  order:u8  partition_count:u64  data_length:u64
//!              stored_length:u64  fingerprint:u32  body_length:u64  directory_at:u64  tail_crc:u32  tail_len:u32  magic
//! ```
//!
//! | module | what |
//! | --- | --- |
//! | `order` | tokens as codes of eight bytes |
//! | `elias_fano` | ascending numbers in little space |
//! | `block` | 1024 partitions |
//! | `tail` | the first and last key, and facts about the file |
//! | `map` | lookups |
//! | `sorted` | the order of the partitions of many SSTables, made from their maps |
//! | `sorted_budget` | the memory that such views may take |
//! | `writer` | writes the file, partition by partition |
//!
//! Invariant: a lookup never misses a partition; it may also return a few others with equal codes.

mod block;
mod elias_fano;
mod map;
mod order;
mod sorted;
mod sorted_budget;
mod tail;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use map::{Candidates, Mapped, TokenMap};
pub use sorted::{Candidate, NoView, SOURCES_MAX, SortedView, Spot};
pub use sorted_budget::SortedBudget;
pub(crate) use tail::fingerprint_of;
pub(crate) use writer::{TokenMapWriter, Whole};

use ilion_pages::u64_at;

/// Number of partitions of a block; the last one may have fewer.
const BLOCK_PARTITIONS: usize = 1024;

#[inline]
fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let chunk = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_le_bytes(*chunk))
}
