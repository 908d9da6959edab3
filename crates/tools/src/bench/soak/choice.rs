//! Chooses the row of an operation.
//!
//! Zipfian numbers by Gray and others, "Quickly generating billion-record synthetic databases" (SIGMOD '94), with YCSB's constant 0.99.

use crate::bench::dataset::mix;
use crate::bench::soak::args::Spread;

const THETA: f64 = 0.99;

/// Chooses rows. The choice is a function of the seed and a number.
#[derive(Clone, Debug)]
pub struct Choice {
    spread: Spread,
    seed: u64,
    /// Number of rows at the beginning.
    count: u64,
    zeta: f64,
    eta: f64,
}

impl Choice {
    /// Takes some time for each million rows, unless the spread is uniform.
    pub fn new(spread: Spread, seed: u64, count: u64) -> Self {
        let zeta = |count: u64| -> f64 { (1..=count).map(|rank| (rank as f64).powf(-THETA)).sum() };
        let zeta_all = match spread {
            Spread::Uniform => 1.0,
            Spread::Zipfian | Spread::Latest => zeta(count),
        };
        let eta = (1.0 - (2.0 / count as f64).powf(1.0 - THETA)) / (1.0 - zeta(2) / zeta_all);
        Self {
            spread,
            seed,
            count,
            zeta: zeta_all,
            eta,
        }
    }

    /// The row for the operation with this number, if there are `now` rows.
    pub fn row(&self, number: u64, now: u64) -> u64 {
        let random = mix(self.seed ^ mix(number.wrapping_add(1)));
        match self.spread {
            Spread::Uniform => random % now,
            // Ranks are spread over all rows, as YCSB does it.
            Spread::Zipfian => mix(self.rank(random).wrapping_add(1)) % now,
            Spread::Latest => now - 1 - self.rank(random) % now,
        }
    }

    /// A zipfian number: most often 0, then 1, and so on.
    fn rank(&self, random: u64) -> u64 {
        let u = random as f64 / 2f64.powi(64);
        let at = u * self.zeta;
        if at < 1.0 {
            return 0;
        }
        if at < 1.0 + 0.5f64.powf(THETA) {
            return 1;
        }
        let alpha = 1.0 / (1.0 - THETA);
        let rank = self.count as f64 * (self.eta * u - self.eta + 1.0).powf(alpha);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and the count"
        )]
        let rank = rank as u64;
        rank.min(self.count - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn counts(spread: Spread, now: u64) -> BTreeMap<u64, u64> {
        let choice = Choice::new(spread, 7, 1000);
        let mut counts = BTreeMap::new();
        for number in 0..100_000 {
            *counts.entry(choice.row(number, now)).or_default() += 1;
        }
        counts
    }

    #[test]
    fn ranks_have_the_shares_of_the_law() {
        let choice = Choice::new(Spread::Zipfian, 7, 1000);
        let mut counts = vec![0u64; 1000];
        for number in 0..100_000 {
            counts[choice.rank(mix(number)) as usize] += 1;
        }
        for rank in [0, 1, 9, 99] {
            let share = (rank as f64 + 1.0).powf(-THETA) / choice.zeta;
            let seen = counts[rank] as f64 / 100_000.0;
            assert!(
                (seen / share - 1.0).abs() < 0.3,
                "{rank}: {seen} instead of {share}"
            );
        }
    }

    #[test]
    fn the_newest_rows_are_chosen_most_and_others_too() {
        let latest = counts(Spread::Latest, 1200);
        assert!(latest[&1199] > latest[&1190] && latest[&1190] > 100);
        assert!(latest.keys().all(|row| *row < 1200));
        let uniform = counts(Spread::Uniform, 1200);
        assert!(uniform.len() == 1200 && uniform.values().all(|count| *count < 200));
        let zipfian = counts(Spread::Zipfian, 1200);
        assert!(*zipfian.values().max().unwrap() > 10_000);
    }
}
