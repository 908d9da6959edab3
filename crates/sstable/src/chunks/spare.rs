//! Memory for the next chunk: that of the chunk that the cache evicted for the last one. New memory must be zeroed, and costs two
//! calls of the allocator per chunk.

use std::cell::Cell;

use bytes::{Bytes, BytesMut};

/// The memory of longer chunks is not kept, since each thread keeps one.
const KEPT_BYTES_MAX: usize = 64 << 10;

thread_local! {
    static SPARE: Cell<Option<Bytes>> = const { Cell::new(None) };
}

/// `length` bytes with undefined content.
pub(super) fn take(length: usize) -> BytesMut {
    let spare = SPARE.take().and_then(|chunk| chunk.try_into_mut().ok());
    match spare {
        Some(mut buffer) if fits(buffer.capacity(), length) => {
            buffer.resize(length, 0);
            buffer
        }
        _ => BytesMut::zeroed(length),
    }
}

/// True if a chunk of this length fits into the memory and does not waste much of it: the cache counts only the length of a chunk.
/// Chunks of flushed SSTables are shorter than others.
fn fits(capacity: usize, length: usize) -> bool {
    (length..=length + length / 8).contains(&capacity)
}

/// Keeps the memory of a chunk. The next chunk reuses it if there is no other reference by then.
pub(super) fn keep(chunk: Bytes) {
    if chunk.len() <= KEPT_BYTES_MAX {
        SPARE.set(Some(chunk));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_nobody_holds_is_used_again() {
        let chunk = Bytes::from(vec![7; 1000]);
        let memory = chunk.as_ptr();
        let slice = chunk.slice(10..20);
        keep(chunk);
        let other = take(1000);
        assert!(other.as_ptr() != memory && slice[..] == [7; 10]);
        let again = other.freeze();
        let memory = again.as_ptr();
        keep(again);
        let again = take(900);
        assert_eq!((again.as_ptr(), again.len()), (memory, 900));
        keep(again.freeze());
        assert_eq!(take(1200)[..].len(), 1200);
    }

    #[test]
    fn a_short_chunk_does_not_hold_the_memory_of_a_long_one() {
        keep(Bytes::from(vec![7; 16 << 10]));
        assert!(take(4 << 10).capacity() < 5 << 10);
    }
}
