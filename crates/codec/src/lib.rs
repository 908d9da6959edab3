//! Bytes and their arithmetic, knowing nothing of what they mean.
//!
//! | module | what |
//! | --- | --- |
//! | `reader` | bounds-checked cursor over a slice; every failure carries offset and expectation |
//! | `rope` | bytes of which large parts are not copied |
//! | `writer` | growing buffer, the mirror of `reader` |
//! | `slab` | a buffer whose memory is there already, for what is appended to most |
//! | `vint` | Cassandra's variable-length integers |
//! | `murmur3` | the hash behind tokens and Bloom filters, with Cassandra's quirk |
//! | `murmur2` | the hash behind the cardinality estimate of Statistics.db |
//! | `checksum` | CRC-32, CRC-24, MD5 |
//! | `compress` | chunk compression in Cassandra's stored forms |
//!
//! When you add an encoding, put both directions side by side and test them against each other.

mod checksum;
pub mod compress;
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
pub use vint::{unsigned_vint_len, zigzag_decode, zigzag_encode};
pub use writer::Writer;
