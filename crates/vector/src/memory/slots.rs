//! A list that only grows. Its items never move, and are read without a lock.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

const FIRST_BITS: u32 = 8;
const BUCKETS: usize = (32 - FIRST_BITS) as usize;

type Bucket<T> = OnceLock<Box<[OnceLock<T>]>>;

/// Buckets of 256, 256, 512, 1024, ... items.
pub(super) struct Slots<T> {
    buckets: [Bucket<T>; BUCKETS + 1],
    len: AtomicU32,
}

impl<T> Slots<T> {
    pub(super) fn new() -> Self {
        Self {
            buckets: std::array::from_fn(|_| OnceLock::new()),
            len: AtomicU32::new(0),
        }
    }

    /// Number of items, including those that are just being added.
    pub(super) fn len(&self) -> u32 {
        self.len.load(Relaxed)
    }

    /// Adds the item that `make` returns for its number; `None` if there are no numbers left.
    pub(super) fn push(&self, make: impl FnOnce(u32) -> T) -> Option<u32> {
        let number = self
            .len
            .fetch_update(Relaxed, Relaxed, |len| len.checked_add(1))
            .ok()?;
        let (bucket, at) = place(number);
        let slots =
            self.buckets[bucket].get_or_init(|| (0..bucket_len(bucket)).map(|_| OnceLock::new()).collect());
        let item = make(number);
        slots[at].get_or_init(|| item);
        Some(number)
    }

    /// The item with a number; `None` if it was not added yet.
    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        let (bucket, at) = place(number);
        self.buckets[bucket].get()?.get(at)?.get()
    }
}

fn bucket_len(bucket: usize) -> usize {
    1 << (FIRST_BITS as usize + bucket.saturating_sub(1))
}

#[inline]
fn place(number: u32) -> (usize, usize) {
    match number >> FIRST_BITS {
        0 => (0, number as usize),
        high => {
            let top = high.ilog2();
            (top as usize + 1, (number - (1 << (FIRST_BITS + top))) as usize)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_its_own_place() {
        let slots = Slots::new();
        for number in 0..5000 {
            assert_eq!(slots.get(number), None);
            assert_eq!(slots.push(|number| number), Some(number));
        }
        assert!((0..5000).all(|number| slots.get(number) == Some(&number)));
        assert_eq!(slots.get(u32::MAX), None);
    }
}
