//! [`Arena`]: memory for short rows of one shard, side by side in chunks.
//!
//! A chunk is freed when the last row in it is freed. So millions of rows are freed in some ten thousand steps, and a row takes only
//! its own bytes. The bytes of a row that is replaced or deleted stay until their chunk is freed, and the memtable still counts them.
//! Therefore only the first version of a row is put here.

use bytes::{BufMut, Bytes, BytesMut};

/// The first chunk is small, since most tables are; later ones double up to this size. Larger chunks would be shared by more readers
/// at once, whose processors then wait for the chunk's reference counter.
const CHUNK_BYTES_MAX: usize = 16 << 10;
const CHUNK_BYTES_MIN: usize = 256;
/// Longer rows get separate memory: they would leave much of a chunk unused.
const ROW_BYTES_MAX: usize = 1 << 10;

/// See the module.
#[derive(Default)]
pub(crate) struct Arena {
    /// The free rest of the newest chunk.
    rest: BytesMut,
    chunk_bytes: usize,
}

impl Arena {
    /// Copies a row, whose first byte is given apart, into a chunk; `None` if the row is too long.
    #[inline]
    pub(crate) fn copy(&mut self, first: u8, row: &[u8]) -> Option<Bytes> {
        let length = 1 + row.len();
        if length > ROW_BYTES_MAX {
            return None;
        }
        if self.rest.capacity() < length {
            self.chunk_bytes = (self.chunk_bytes * 2).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
            self.rest = BytesMut::with_capacity(self.chunk_bytes.max(length));
        }
        self.rest.put_u8(first);
        self.rest.extend_from_slice(row);
        Some(self.rest.split().freeze())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_lie_side_by_side_and_outlive_the_arena() {
        let mut arena = Arena::default();
        let row = |number: u32| number.to_be_bytes().repeat(1 + number as usize % 40);
        let rows: Vec<Bytes> = (0..5000)
            .map(|number| arena.copy(9, &row(number)).unwrap())
            .collect();
        assert_eq!(arena.copy(9, &[0; ROW_BYTES_MAX]), None);
        drop(arena);
        for (number, stored) in (0..).zip(&rows) {
            assert_eq!(**stored, [&[9], &row(number)[..]].concat());
        }
        let is_beside = |pair: &&[Bytes]| pair[0].as_ptr_range().end == pair[1].as_ptr();
        let beside = rows.windows(2).filter(is_beside).count();
        assert!(beside > 4900, "{beside} rows lie behind the one before");
    }
}
