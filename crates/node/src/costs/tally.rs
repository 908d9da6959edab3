//! The costs of one shape on one thread. Counting takes few instructions; readers convert the counts to [`ShapeCosts`].
//!
//! Most statements read nothing from disk and process few rows. There is one counter for each combination of such small
//! numbers, so counting takes one addition. Readers fill the histograms from these counters.

use ilion_env::cost::amplification_percent;
use ilion_env::{Cost, Count};

use super::{Histogram, ShapeCosts, Spent, Stages};

/// Counts of rows and of SSTables are small below this number, and counts of tombstones below half of it.
const SMALL: u64 = 4;
/// Index of the stage `log_wait` in [`Stages::NAMES`].
const LOG_WAIT: usize = 2;
/// Number of combinations of small numbers.
const COMBINATIONS: usize = (SMALL * SMALL * SMALL / 2) as usize;

/// Counts executions.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub errors: u64,
    pub total: Cost,
    pub latency: Histogram,
    pub local_latency: Histogram,
    pub stage_nanos: [u64; Stages::COUNT],
    /// Executions that read nothing from disk, by rows, SSTables and tombstones.
    small: [u64; COMBINATIONS],
    large: LargeCounts,
}

/// Executions with a number that is not small.
#[derive(Clone, Debug, Default)]
struct LargeCounts {
    calls: u64,
    disk_bytes: Histogram,
    amplification: Histogram,
    rows: Histogram,
    tombstones: Histogram,
    sstables: Histogram,
}

/// The numbers of one execution.
#[derive(Clone, Copy)]
struct Numbers {
    rows: u64,
    sstables: u64,
    tombstones: u64,
    disk_bytes: u64,
}

impl Tally {
    /// Counts an execution.
    #[inline]
    pub(crate) fn record(&mut self, spent: &Spent<'_>) {
        let cost = spent.cost;
        self.errors += u64::from(spent.is_error);
        let numbers = Numbers {
            disk_bytes: cost.add_to(&mut self.total),
            rows: cost.of(Count::Rows),
            sstables: cost.of(Count::SSTablesTouched),
            tombstones: cost.of(Count::Tombstones),
        };
        match self.small.get_mut(numbers.combination()) {
            Some(count) => *count += 1,
            None => self.large.record(numbers, cost.of(Count::BytesReturned)),
        }
        if let Some(elapsed) = spent.elapsed_nanos {
            let log = cost.of(Count::LogNanos);
            self.record_times(&Stages {
                execute: elapsed.saturating_sub(log),
                log_wait: (log > 0).then_some(log),
                ..Stages::default()
            });
        }
    }

    /// Counts the times of an execution.
    #[inline]
    pub(crate) fn record_times(&mut self, stages: &Stages) {
        self.latency.record(stages.sum());
        self.local_latency.record(stages.local());
        let add = |sum: &mut u64, nanos: u64| *sum = sum.wrapping_add(nanos);
        let [queue, execute, log_wait, send] = &mut self.stage_nanos;
        add(queue, stages.queue);
        add(execute, stages.execute);
        add(log_wait, stages.log_wait.unwrap_or(0));
        add(send, stages.send);
    }

    /// Executions.
    pub(crate) fn calls(&self) -> u64 {
        self.large.calls + self.small.iter().sum::<u64>()
    }

    /// Converts the counters to histograms.
    pub(crate) fn costs(&self) -> ShapeCosts {
        let mut costs = ShapeCosts {
            calls: self.calls(),
            errors: self.errors,
            // `self.total` has only waits for the log within an execution. Most waits end later, so the stage has the right sum.
            total: self.total.with(Count::LogNanos, self.stage_nanos[LOG_WAIT]),
            latency: self.latency.clone(),
            local_latency: self.local_latency.clone(),
            stage_nanos: self.stage_nanos,
            disk_bytes: self.large.disk_bytes.clone(),
            amplification: self.large.amplification.clone(),
            rows: self.large.rows.clone(),
            tombstones: self.large.tombstones.clone(),
            sstables: self.large.sstables.clone(),
        };
        for (combination, count) in self.small.iter().enumerate().filter(|(_, count)| **count > 0) {
            let numbers = Numbers::of_combination(combination as u64);
            costs.disk_bytes.record_many(0, *count);
            costs.amplification.record_many(0, *count);
            costs.rows.record_many(numbers.rows, *count);
            costs.tombstones.record_many(numbers.tombstones, *count);
            costs.sstables.record_many(numbers.sstables, *count);
        }
        costs
    }
}

impl LargeCounts {
    #[cold]
    #[inline(never)]
    fn record(&mut self, numbers: Numbers, returned: u64) {
        self.calls += 1;
        self.disk_bytes.record(numbers.disk_bytes);
        self.amplification
            .record(amplification_percent(numbers.disk_bytes, returned));
        self.rows.record(numbers.rows);
        self.tombstones.record(numbers.tombstones);
        self.sstables.record(numbers.sstables);
    }
}

impl Numbers {
    /// The index of the combination, or `COMBINATIONS` if a number is not small.
    #[inline]
    fn combination(self) -> usize {
        let above = [
            (self.rows | self.sstables) / SMALL,
            self.tombstones / (SMALL / 2),
            self.disk_bytes,
        ];
        if above[0] | above[1] | above[2] > 0 {
            return COMBINATIONS;
        }
        (self.rows + SMALL * (self.sstables + SMALL * self.tombstones)) as usize
    }

    fn of_combination(combination: u64) -> Self {
        Self {
            rows: combination % SMALL,
            sstables: combination / SMALL % SMALL,
            tombstones: combination / (SMALL * SMALL),
            disk_bytes: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_are_told_apart_and_others_are_beyond() {
        for combination in 0..COMBINATIONS {
            let numbers = Numbers::of_combination(combination as u64);
            assert_eq!(numbers.combination(), combination);
        }
        let small = Numbers::of_combination(0);
        for large in [
            Numbers { rows: SMALL, ..small },
            Numbers {
                rows: u64::MAX,
                ..small
            },
            Numbers {
                sstables: SMALL,
                ..small
            },
            Numbers {
                tombstones: SMALL / 2,
                ..small
            },
            Numbers {
                tombstones: u64::MAX,
                ..small
            },
            Numbers {
                disk_bytes: 1,
                ..small
            },
            Numbers {
                disk_bytes: 1 << 63,
                ..small
            },
        ] {
            assert_eq!(large.combination(), COMBINATIONS);
        }
    }
}
