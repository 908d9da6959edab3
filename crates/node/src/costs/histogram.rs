//! Counts of values on a logarithmic scale with four steps per doubling: a percentile is at most a quarter too high.

/// Bits of a value below its highest one that select the step.
const STEP_BITS: u32 = 2;
/// Larger values are counted in the step of this one; sum and maximum stay exact.
const VALUE_MAX: u64 = (1 << 48) - 1;
/// Bits of the floating-point number 1.0 down to its first `STEP_BITS` bits of mantissa.
const STEP_OF_ONE: u64 = (f64::MAX_EXP as u64 - 1) << STEP_BITS;

/// A histogram. It allocates memory only up to the step of the highest value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Count of zeros, which are common.
    zeros: u64,
    /// Count of each step.
    counts: Vec<u64>,
    max: u64,
    sum: u64,
}

/// Percentiles, maximum and sum of a [`Histogram`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The median.
    pub p50: u64,
    /// The 95th percentile.
    pub p95: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The maximum, exact.
    pub max: u64,
    /// The sum, exact.
    pub sum: u64,
}

impl Histogram {
    /// Adds a value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        if value == 0 {
            self.zeros += 1;
            return;
        }
        let step = step_of(value);
        if let Some(count) = self.counts.get_mut(step) {
            *count += 1;
        } else {
            self.widen(step);
        }
        self.max = self.max.max(value);
        self.sum = self.sum.wrapping_add(value);
    }

    #[cold]
    fn widen(&mut self, step: usize) {
        self.counts.resize(step + 1, 0);
        self.counts[step] = 1;
    }

    /// Adds a value `times` times.
    pub(crate) fn record_many(&mut self, value: u64, times: u64) {
        if value == 0 {
            self.zeros += times;
            return;
        }
        let step = step_of(value);
        if self.counts.len() <= step {
            self.counts.resize(step + 1, 0);
        }
        self.counts[step] += times;
        self.max = self.max.max(value);
        self.sum = self.sum.saturating_add(value.saturating_mul(times));
    }

    /// Adds the values of another histogram.
    pub fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.zeros += other.zeros;
        self.max = self.max.max(other.max);
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// The lowest value, as the upper bound of its step; 0 if the histogram is empty.
    pub fn min(&self) -> u64 {
        let lowest = self.counts.iter().position(|count| *count > 0);
        match (self.zeros, lowest) {
            (0, Some(step)) => top_of(step).min(self.max),
            _ => 0,
        }
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.zeros + self.counts.iter().sum::<u64>()
    }

    /// Number of values up to each bound. Exact. Requires: the bounds are powers of two less one.
    pub fn counts_up_to<const N: usize>(&self, bounds: [u64; N]) -> [u64; N] {
        bounds.map(|bound| {
            let steps = self.counts.iter().enumerate();
            let below = steps.take_while(|(step, _)| top_of(*step) <= bound);
            self.zeros + below.map(|(_, count)| count).sum::<u64>()
        })
    }

    /// Percentiles, maximum and sum.
    pub fn summary(&self) -> Summary {
        Summary {
            p50: self.percentile(50),
            p95: self.percentile(95),
            p99: self.percentile(99),
            max: self.max,
            sum: self.sum,
        }
    }

    /// Upper bound of the step that contains the percentile, at most the maximum.
    pub fn percentile(&self, percent: u64) -> u64 {
        let wanted = (self.count() * percent).div_ceil(100);
        let mut seen = self.zeros;
        if seen >= wanted {
            return 0;
        }
        for (step, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return top_of(step).min(self.max);
            }
        }
        self.max
    }
}

/// The step of a value: its exponent and the first bits of its mantissa. Higher values have higher steps. Requires: the value is not zero.
#[inline]
fn step_of(value: u64) -> usize {
    // Converting a signed integer takes one instruction. It may round, but only the first bits of the result are used.
    let float = value.min(VALUE_MAX).cast_signed() as f64;
    ((float.to_bits() >> (f64::MANTISSA_DIGITS - 1 - STEP_BITS)) - STEP_OF_ONE) as usize
}

/// The highest value of a step. Steps without values (below 4) give a lower value.
fn top_of(step: usize) -> u64 {
    let steps = 1_u64 << STEP_BITS;
    let (exponent, within) = (step as u64 / steps, step as u64 % steps);
    ((steps + within + 1) << exponent).div_ceil(steps) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_ascend_and_hold_the_values_up_to_their_top() {
        let mut last = 0;
        assert_eq!(step_of(1), 0);
        for value in (1..5000).chain((13..48).flat_map(|bits| [(1 << bits) - 1, 1 << bits, (1 << bits) + 1]))
        {
            let step = step_of(value);
            assert!(step >= last, "{value}");
            assert!(top_of(step) >= value, "{value}");
            assert!(step == 0 || top_of(step - 1) < value, "{value}");
            last = step;
        }
        assert_eq!(step_of(u64::MAX), step_of(VALUE_MAX));
    }

    #[test]
    fn percentiles_are_near_and_the_maximum_is_exact() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.summary(), Summary::default());
        for value in 1..=1000 {
            histogram.record(value);
        }
        let summary = histogram.summary();
        assert!((500..=600).contains(&summary.p50), "{summary:?}");
        assert!((950..=1000).contains(&summary.p95), "{summary:?}");
        assert!((990..=1000).contains(&summary.p99), "{summary:?}");
        assert_eq!((summary.max, summary.sum), (1000, 500_500));
    }

    #[test]
    fn counts_up_to_powers_of_two_are_exact() {
        let mut histogram = Histogram::default();
        (0..=4096).for_each(|value| histogram.record(value));
        let counts = histogram.counts_up_to([0, 15, 1023, 4095, 8191]);
        assert_eq!(counts, [1, 16, 1024, 4096, 4097]);
    }

    #[test]
    fn merged_histograms_are_as_one() {
        let (mut odd, mut even, mut all) = (Histogram::default(), Histogram::default(), Histogram::default());
        for value in 0..500_u64 {
            let of_half = if value % 2 == 0 { &mut even } else { &mut odd };
            of_half.record(value * value);
            all.record(value * value);
        }
        odd.merge(&even);
        assert_eq!(odd, all);
    }
}
