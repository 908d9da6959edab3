//! The memory that the bits of all SSTables' tokens may take together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What is left of it. An SSTable for whose bits it does not suffice goes without until others give theirs back.
#[derive(Debug)]
pub struct TokenBitsBudget {
    left_bytes: AtomicU64,
}

/// A part of it, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    budget: Arc<TokenBitsBudget>,
    bytes: u64,
}

impl TokenBitsBudget {
    /// So much in all.
    pub fn new(bytes: u64) -> Self {
        Self {
            left_bytes: AtomicU64::new(bytes),
        }
    }

    /// `None` if less is left.
    pub(super) fn take(budget: &Arc<Self>, bytes: u64) -> Option<Share> {
        let taken = budget
            .left_bytes
            .fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes));
        taken.ok().map(|_| Share {
            budget: budget.clone(),
            bytes,
        })
    }
}

impl Default for TokenBitsBudget {
    /// 64 MiB: the bits of 32 to 64 million partitions.
    fn default() -> Self {
        Self::new(64 << 20)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.left_bytes.fetch_add(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_can_be_taken_again() {
        let budget = Arc::new(TokenBitsBudget::new(10));
        let first = TokenBitsBudget::take(&budget, 6);
        assert!(first.is_some() && TokenBitsBudget::take(&budget, 5).is_none());
        drop(first);
        assert!(TokenBitsBudget::take(&budget, 10).is_some());
    }
}
