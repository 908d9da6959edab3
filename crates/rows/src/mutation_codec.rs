//! Mutations as bytes, for the commit log. Several may follow each other in one record (a batch).
//!
//! ```text
//! record    := mutation*
//! mutation  := size: u32 (of what follows), version: u8 (1), table: [u8; 16], head: u8, base: i64, key: bytes,
//!              clusterings: uvint, statics: names (if head 8), regulars: names,
//!              deletion (if head 4), static_row: row (if head 8),
//!              rows: uvint, row*, ranges: uvint (if head 16), range*
//! head      := 0..2 the partitioner (Murmur3, ByteOrdered, Random), +4 partition deletion, +8 static row, +16 ranges
//! names     := count: uvint, (is_complex: u8, name: bytes)*
//! bytes     := size: uvint, size * u8
//!
//! row       := flags: u8, value*clusterings (not in a static row), liveness (if 1), deletion (if 2),
//!              count: uvint (unless 4: then every name of its list, in that order), column*
//! column    := index: uvint (which name; unless 4), cell | complex
//! complex   := has_deletion: u8, deletion (if 1), count: uvint, (path: bytes, cell)*
//! value     := 0 (null) | size + 1: uvint, size * u8
//!
//! cell      := flags: u8, time (if 1), ttl: uvint (if 2), end: svint (if 4), value: bytes (if 8)
//! liveness  := flags: u8, time (if 1), ttl: uvint (if 2), end: svint (if 4)
//! deletion  := time, end: svint
//! time      := svint, wrapping difference to `base` (micros); without it: `base`
//! end       := difference (seconds) to `base` + ttl
//! range     := kind: u8, count: uvint, value*count, kind: u8, count: uvint, value*count, deletion
//! ```
//! vints as in `ilion_codec`; the rest is big-endian.
//!
//! Columns are stored by name, since ids are valid only inside one process. Each mutation lists the names that it uses once. A
//! reader skips columns that the table no longer has or that have another kind now, and cells that are older than a drop of their
//! column name. It also skips whole mutations of missing tables: that is why the size comes first.
//!
//! Invariant: the token is not stored; the reader computes it from key and partitioner. When bytes change, raise `VERSION`.

mod decode;
mod encode;
mod reader;
#[cfg(test)]
mod tests;

pub use encode::encode_mutation;
pub use reader::{Decoded, MutationReader, decode_mutation, peek_place};

const VERSION: u8 = 1;

/// Bits of `head`.
mod head {
    pub(super) const PARTITIONER: u8 = 3;
    pub(super) const DELETION: u8 = 4;
    pub(super) const STATIC_ROW: u8 = 8;
    pub(super) const RANGES: u8 = 16;
    pub(super) const KNOWN: u8 = 31;
}

/// Bits of a row's `flags`.
mod row {
    pub(super) const LIVENESS: u8 = 1;
    pub(super) const DELETION: u8 = 2;
    pub(super) const EVERY_COLUMN: u8 = 4;
    pub(super) const KNOWN: u8 = 7;
}

/// Bits of the `flags` of cells and livenesses.
mod cell {
    pub(super) const TIME: u8 = 1;
    pub(super) const TTL: u8 = 2;
    pub(super) const END: u8 = 4;
    pub(super) const VALUE: u8 = 8;
    pub(super) const KNOWN: u8 = 15;
}

/// The reference for times: the first timestamp of a mutation, which most of its cells share.
#[derive(Clone, Copy)]
struct Base {
    micros: i64,
}

impl Base {
    fn secs(self) -> i64 {
        self.micros.div_euclid(1_000_000)
    }
}
