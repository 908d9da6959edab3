//! `Index+Rows.db`: the rows of an SSTable by number, which all attached indexes of the SSTable share.
//!
//! A row's number is its rank in the SSTable, counting static rows; indexes store only numbers. The file maps a number to its
//! [`crate::Place`], and a place to the number of the first row at that place or after it. `docs/format/sai.md` describes it:
//!
//! ```text
//! body      := block *  zeros  directory
//! block     := row *                                  32 rows; the last block may have fewer
//! row       := [part of the key]  [part of the clustering]
//! part      := head:u8  [shared:uvint]  [rest_len:uvint]  rest
//! head      := 1: a new partition  | 2: its static row  | 4: as long as the one before  | shared << 3 (31: it follows)
//! directory := (head_code:u64  block_at:u64) *        one for each block
//! ```
//!
//! | module | contents |
//! | --- | --- |
//! | `block` | encodes and decodes blocks of rows |
//! | `order` | compares an encoded row with a place |
//! | `file` | [`RowNumbersFile`]: reads the file |
//! | `writer` | [`RowNumbersWriter`]: writes the file |

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
/// Rows per block; the last block may have fewer.
const BLOCK_ROWS: u32 = 32;
/// The name of the file, which follows the base of an SSTable's component paths.
const NAME: &str = "Index+Rows.db";
