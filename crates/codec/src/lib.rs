//! Bytes and their arithmetic, knowing nothing of what they mean.
//!
//! | module | what |
//! | --- | --- |
//! | `reader` | bounds-checked cursor over a slice; every failure carries offset and expectation |
//! | `writer` | growing buffer, the mirror of `reader` |
//! | `vint` | Cassandra's variable-length integers |
//!
//! When you add an encoding, put both directions side by side and test them against each other.

mod reader;
mod vint;
mod writer;

pub use reader::{Error, Reader};
pub use vint::{unsigned_vint_len, zigzag_decode, zigzag_encode};
pub use writer::Writer;
