//! A graph in a file (`docs/format/vector.md`):
//!
//! ```text
//! file   := body  page_crc:u32 *  tail                                     integers and numbers are little-endian
//! body   := node *  upper *  ordinal:u32 *  [extra_end:u32 *  extra:u32 *]
//! node   := degree:u32  weight:f32  component:f32 *  link:u32 *            links up to the greatest degree, zeros after
//! upper  := node:u32  below:u32  degree:u32  link:u32 *                    level 1, 2, ...; links are places in the level
//! tail   := version:u8  similarity:u8  optimize_for:u8  level_count:u8  maximum_node_connections:u16
//!           construction_beam_width:u16  dimension:u32  node_count:u32  link_places:u32  upper_link_places:u32  reach:f32
//!           entry:u32  extra_count:u32  upper_count:u32 *  label_len:u16  label  body_length:u64  tail_crc:u32  tail_len:u32  "ILVECTOR"
//! ```
//!
//! | module | contents |
//! | --- | --- |
//! | `tail` | the tail of the file, and the layout that follows from it |
//! | `pages` | the body; each page is checked when it is first read |
//! | `write` | writes a graph in memory to a file |
//! | `read` | [`FileGraph`] |

mod pages;
mod read;
mod tail;
mod write;

use std::io;

pub use read::FileGraph;
pub use write::write;

/// The bytes of a file that does not change any more.
pub trait Source: Send + Sync {
    /// Number of bytes.
    fn size_bytes(&self) -> u64;

    /// Fills the buffer with the bytes from `offset`.
    ///
    /// # Errors
    /// The bytes cannot be read, or end before the buffer is full.
    fn read_exact_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// The bytes from `start` to `end`; `None` unless all their pages are kept.
    fn kept(&self, _start: usize, _end: usize) -> Option<&[u8]> {
        None
    }

    /// Keeps a checked page of the body, if there is memory for it. The last page may be short.
    fn keep(&self, _page: usize, _bytes: &[u8]) {}
}

impl Source for Vec<u8> {
    fn size_bytes(&self) -> u64 {
        self.len() as u64
    }

    fn read_exact_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = self.get(start..).and_then(|rest| rest.get(..into.len()));
        into.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}
