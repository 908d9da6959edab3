//! Data.db as a sequence of uncompressed bytes.
//!
//! ```text
//! compressed   := (stored crc:u32)*         crc is the CRC-32 of stored
//! stored       := compressed bytes          if shorter than max_compressed_length
//!               | raw bytes [zero padding]  else
//! uncompressed := the bytes themselves      checked by CRC.db where there is one
//! ```
//!
//! [`ChunkReader`] reads uncompressed bytes at a position, through a shared [`ChunkCache`]. [`DataStream`] reads forwards from a
//! position, either chunk by chunk through the cache, or with read-ahead past it. [`ChunkWriter`] writes Data.db with its chunk map
//! and digest. Bytes are checked against a CRC before they are returned, except those of uncompressed files without one
//! (`Layout::Unchecked` in `reader`).

mod buffers;
mod cache;
mod compression;
mod reader;
mod spare;
mod stream;
mod writer;

#[cfg(test)]
mod tests;

pub use cache::ChunkCache;
pub use compression::Compression;
pub use reader::ChunkReader;
pub(crate) use stream::spend_bytes;
pub use stream::{DataStream, READ_AHEAD_BYTES};
pub use writer::{ChunkWriter, DataFile};
