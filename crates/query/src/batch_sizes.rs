//! How many partitions the batches have changed, by kind of batch.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ilion_cql::ast::BatchKind;

/// Counts below this have a bucket each; larger counts share a bucket per power of two.
const EXACT: u64 = 64;
const STEPS: usize = EXACT as usize + 32;

/// Counts batches.
#[derive(Debug, Default)]
pub struct BatchSizes {
    logged: Sizes,
    unlogged: Sizes,
    counter: Sizes,
}

impl BatchSizes {
    /// The sizes of one kind of batch.
    pub fn of(&self, kind: BatchKind) -> &Sizes {
        match kind {
            BatchKind::Logged => &self.logged,
            BatchKind::Unlogged => &self.unlogged,
            BatchKind::Counter => &self.counter,
        }
    }
}

/// A histogram: exact for small numbers, by powers of two for others.
#[derive(Debug)]
pub struct Sizes {
    counts: [AtomicU64; STEPS],
    max: AtomicU64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            counts: std::array::from_fn(|_| AtomicU64::new(0)),
            max: AtomicU64::new(0),
        }
    }
}

impl Sizes {
    /// Counts one number, for example the number of partitions of a batch.
    pub(crate) fn record(&self, partitions: u64) {
        self.counts[step_of(partitions)].fetch_add(1, Relaxed);
        self.max.fetch_max(partitions, Relaxed);
    }

    /// The largest number that was counted.
    pub fn max(&self) -> u64 {
        self.max.load(Relaxed)
    }

    /// A number that `per_mille` of 1000 counted numbers do not exceed.
    pub fn per_mille(&self, per_mille: u64) -> u64 {
        let counts = self.counts.each_ref().map(|count| count.load(Relaxed));
        let wanted = (counts.iter().sum::<u64>() * per_mille).div_ceil(1000);
        let mut seen = 0;
        let step = counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        step.map_or(0, top_of).min(self.max())
    }
}

fn step_of(partitions: u64) -> usize {
    match partitions {
        0..EXACT => usize::try_from(partitions).unwrap_or(0),
        _ => (EXACT as usize + partitions.ilog2() as usize - EXACT.ilog2() as usize).min(STEPS - 1),
    }
}

fn top_of(step: usize) -> u64 {
    match step {
        0..64 => step as u64,
        _ => (EXACT << (step - EXACT as usize + 1)) - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_small_batches_are_exact_and_of_large_ones_near() {
        let sizes = Sizes::default();
        assert_eq!((sizes.per_mille(500), sizes.max()), (0, 0));
        for partitions in 1..=10 {
            sizes.record(partitions);
        }
        sizes.record(1000);
        assert_eq!(sizes.per_mille(500), 6);
        assert_eq!((sizes.per_mille(999), sizes.max()), (1000, 1000));
        assert_eq!([63, 64, 127, 128].map(step_of), [63, 64, 64, 65]);
        assert_eq!([63, 64, 65].map(top_of), [63, 127, 255]);
        sizes.record(u64::MAX);
    }
}
