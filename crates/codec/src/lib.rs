//! Encoding and decoding of bytes, checksums, hashes and compression, independent of what the bytes mean.
//!
//! | module | what |
//! | --- | --- |
//! | `reader` | a bounds-checked cursor over a slice; every error has an offset and an expectation |
//! | `rope` | bytes whose large parts are shared, not copied |
//! | `writer` | a growing buffer, the counterpart of `reader` |
//! | `slab` | a buffer with memory allocated in advance, for frequent appends |
//! | `vint` | Cassandra's variable-length integers |
//! | `murmur3` | the hash of tokens and Bloom filters, as Cassandra computes it |
//! | `murmur2` | the hash of the cardinality estimate of Statistics.db |
//! | `checksum` | CRC-32, CRC-24, MD5 |
//! | `compress` | chunk compression in Cassandra's stored forms |
//!
//! When you add an encoding, put both directions side by side, and test them against each other.

mod checksum;
mod compress;
mod murmur2;
pub mod murmur3;
mod reader;
mod rope;
mod slab;
mod vint;
mod writer;

pub use checksum::{crc24, crc32, crc32_extend, md5};
pub use compress::{CompressError, Compressor};
pub use murmur2::murmur2_hash64;
pub use reader::{Error, Reader};
pub use rope::{Piece, Rope, SHARED_MIN};
pub use slab::{Append, Filling, Gap, Room, Slab};
pub use vint::unsigned_vint_len;
pub use writer::Writer;
