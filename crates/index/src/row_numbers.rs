//! `Index+Rows.db`: the rows of an SSTable by number, which all attached indexes of the SSTable share.
//!
//! A row has a number by its place in the SSTable, static rows among them, and an index holds numbers only. The file leads from
//! a number to the [`crate::Place`], and from a place to the first number at it or after it. `docs/format/sai.md` tells it:
//!
//! ```text
//! body      := block *  zeros  directory
//! block     := row *                                  32 rows, the last one has what is left
//! row       := [part of the key]  [part of the clustering]
//! part      := head:u8  [shared:uvint]  [rest_len:uvint]  rest
//! head      := 1: a new partition  | 2: its static row  | 4: as long as the one before  | shared << 3 (31: it follows)
//! directory := (head_code:u64  block_at:u64) *        one for each block
//! ```
//!
//! | module | what |
//! | --- | --- |
//! | `block` | rows as bytes and back |
//! | `order` | where a row stands to a place, without decoding it |
//! | `file` | [`RowNumbersFile`]: look-ups |
//! | `writer` | [`RowNumbersWriter`]: rows in, file out |

mod block;
mod file;
mod order;
#[cfg(test)]
pub(crate) mod tests;
mod writer;

pub use file::RowNumbersFile;
pub use writer::RowNumbersWriter;

use crate::paged::Magic;

/// The last character is the version.
const MAGIC: &Magic = b"ILROWNO1";
/// Rows of a block; the last one may have fewer.
const BLOCK_ROWS: u32 = 32;
/// What follows the base of an SSTable's components.
const NAME: &str = "Index+Rows.db";
