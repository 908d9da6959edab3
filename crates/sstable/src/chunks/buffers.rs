//! Memory of windows, reused once a window has no slices left: new memory costs a page fault and a cleared page every 4 KiB.

use std::sync::Arc;

use bytes::Bytes;

/// Number of windows that a scan needs at once: the current window, the one before, which has the partition's key, and a spare one.
const KEPT_MAX: usize = 3;

/// Larger windows are not reused: they belong to rows with large values, and are freed with the row.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// The latest windows of a stream, of which slices may still exist.
#[derive(Debug, Default)]
pub(super) struct Buffers(Vec<Arc<Vec<u8>>>);

struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Buffers {
    /// An empty buffer: a reused one, or a new one.
    pub(super) fn take(&mut self) -> Vec<u8> {
        let free = self.0.iter().position(|buffer| Arc::strong_count(buffer) == 1);
        let buffer = free.and_then(|index| Arc::try_unwrap(self.0.swap_remove(index)).ok());
        let mut buffer = buffer.unwrap_or_default();
        buffer.clear();
        buffer
    }

    /// Turns the buffer into `Bytes` that can be sliced; its memory is reused when the last slice is dropped.
    pub(super) fn share(&mut self, buffer: Vec<u8>) -> Bytes {
        if buffer.capacity() > KEPT_BYTES_MAX {
            return Bytes::from(buffer);
        }
        let buffer = Arc::new(buffer);
        if self.0.len() == KEPT_MAX {
            self.0.remove(0);
        }
        self.0.push(buffer.clone());
        Bytes::from_owner(Shared(buffer))
    }
}

#[cfg(test)]
mod tests {
    use super::Buffers;

    #[test]
    fn memory_is_used_again_when_no_slice_is_left() {
        let mut buffers = Buffers::default();
        let first = buffers.share(vec![1; 1000]);
        let slice = first.slice(10..20);
        drop(first);
        assert_eq!(buffers.take().capacity(), 0, "a slice is left");
        let second = buffers.share(vec![2; 500]);
        drop(slice);
        let again = buffers.take();
        assert!(again.is_empty() && again.capacity() == 1000);
        assert_eq!(second[..], [2; 500]);
    }
}
