//! The memory that all sorted views may take together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The memory that is left for sorted views. A table whose view does not fit has no view until other views are dropped.
#[derive(Debug)]
pub struct SortedBudget {
    left_bytes: AtomicU64,
}

/// A reserved part of the budget, which is returned on drop.
#[derive(Debug)]
pub(super) struct Share {
    budget: Arc<SortedBudget>,
    bytes: u64,
}

impl SortedBudget {
    /// A budget of this many bytes.
    pub fn new(bytes: u64) -> Self {
        Self {
            left_bytes: AtomicU64::new(bytes),
        }
    }

    /// Reserves `bytes`; `None` if less is left.
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

impl Default for SortedBudget {
    /// 64 MiB: about 44 million partitions.
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
        let budget = Arc::new(SortedBudget::new(10));
        let first = SortedBudget::take(&budget, 6);
        assert!(first.is_some() && SortedBudget::take(&budget, 5).is_none());
        drop(first);
        assert!(SortedBudget::take(&budget, 10).is_some());
    }
}
