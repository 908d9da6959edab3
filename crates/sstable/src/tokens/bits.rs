//! A bit for each of many equal stretches of the tokens of an SSTable, set if a partition is there.
//!
//! Made in memory of a token map that is asked often (`growing`). It says in a handful of instructions and one access to memory what a
//! look into the map takes hundreds for: that a token is not there, and about where the next one is; of a hundred SSTables, the maps
//! of few are then asked. Only for codes that are spread evenly.
//!
//! Invariant: no partition is missed.

use super::bits_budget::Share;

/// Stretches for each partition: between these and half of them. One in so many tokens that are not there looks as if it were.
const STRETCHES_PER_PARTITION: u64 = 16;
/// Stretches in one of which a partition is, as far as a map says: of codes that are spread evenly, two.
const STRETCHES_OF_ONE_MAX: u64 = 64;

/// The bits of one SSTable.
pub(crate) struct TokenBits {
    shape: Shape,
    words: Box<[u64]>,
    _memory: Share,
}

/// How the stretches lie, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Bits of a code that do not matter.
    shift: u32,
    /// The first and the last stretch, of all that there are from code zero on.
    first: u64,
    last: u64,
}

/// What the bits know of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sighting {
    /// It is before the first partition or after the last.
    Outside,
    /// No partition has it.
    Absent,
    /// There may be one.
    Possible,
}

impl Shape {
    /// For so many partitions between two codes; `None` if there are none.
    pub(super) fn of(partitions: u64, first_code: u64, last_code: u64) -> Option<Self> {
        if partitions == 0 || first_code > last_code {
            return None;
        }
        let stretch_bits = partitions.checked_mul(STRETCHES_PER_PARTITION)?.ilog2();
        let range_bits = u64::BITS - (last_code - first_code).leading_zeros();
        let shift = range_bits.saturating_sub(stretch_bits);
        Some(Self {
            shift,
            first: first_code >> shift,
            last: last_code >> shift,
        })
    }

    /// Memory of its bits: one to two bytes a partition.
    pub(super) fn memory_bytes(self) -> u64 {
        self.words() * 8
    }

    fn words(self) -> u64 {
        (self.last - self.first) / 64 + 1
    }
}

impl TokenBits {
    /// None is set yet. `None` if so much memory cannot be addressed.
    pub(super) fn none_set(shape: Shape, memory: Share) -> Option<Self> {
        let words = usize::try_from(shape.words()).ok()?;
        Some(Self {
            shape,
            words: vec![0; words].into(),
            _memory: memory,
        })
    }

    /// A partition may have any of these codes. False if these are so many that bits are of no use.
    #[must_use]
    pub(super) fn set(&mut self, least_code: u64, greatest_code: u64) -> bool {
        let from = (least_code >> self.shape.shift).max(self.shape.first);
        let upto = (greatest_code >> self.shape.shift).min(self.shape.last);
        if upto.saturating_sub(from) > STRETCHES_OF_ONE_MAX {
            return false;
        }
        for stretch in from..=upto {
            let at = stretch - self.shape.first;
            if let Some(word) = usize::try_from(at / 64)
                .ok()
                .and_then(|at| self.words.get_mut(at))
            {
                *word |= 1 << (at % 64);
            }
        }
        true
    }

    /// What is known of a code.
    #[inline]
    pub(crate) fn sight(&self, code: u64) -> Sighting {
        let stretch = code >> self.shape.shift;
        if stretch < self.shape.first || stretch > self.shape.last {
            return Sighting::Outside;
        }
        let at = stretch - self.shape.first;
        match self.word(at / 64) >> (at % 64) & 1 {
            0 => Sighting::Absent,
            _ => Sighting::Possible,
        }
    }

    /// A code up to that of the first partition whose code is not below `code`; `None` if there is none.
    #[inline]
    pub(crate) fn next_from(&self, code: u64) -> Option<u64> {
        let at = (code >> self.shape.shift).saturating_sub(self.shape.first);
        let mut index = at / 64;
        let mut word = self.word(index) >> (at % 64) << (at % 64);
        while word == 0 {
            index += 1;
            if index > (self.shape.last - self.shape.first) / 64 {
                return None;
            }
            word = self.word(index);
        }
        let stretch = self.shape.first + index * 64 + u64::from(word.trailing_zeros());
        Some((stretch << self.shape.shift).max(code))
    }

    #[inline]
    fn word(&self, index: u64) -> u64 {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        self.words.get(index).copied().unwrap_or(0)
    }

    /// Memory that it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.words.len() * 8
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ilion_env::Seeded;

    use super::*;
    use crate::tokens::bits_budget::TokenBitsBudget;

    fn check(codes: &[u64], asked: impl Iterator<Item = u64>) -> (usize, usize) {
        let shape = Shape::of(codes.len() as u64, codes[0], codes[codes.len() - 1]).unwrap();
        let memory = Arc::new(TokenBitsBudget::new(1 << 20));
        let share = TokenBitsBudget::take(&memory, shape.memory_bytes()).unwrap();
        let mut bits = TokenBits::none_set(shape, share).unwrap();
        assert!(codes.iter().all(|code| bits.set(*code, *code)));
        let (mut absent, mut seen) = (0, 0);
        for code in codes.iter().copied().chain(asked) {
            let at = codes.partition_point(|known| *known < code);
            let sighting = bits.sight(code);
            match codes.binary_search(&code) {
                Ok(_) => assert_eq!(sighting, Sighting::Possible, "{code}"),
                Err(_) => {
                    absent += 1;
                    seen += usize::from(sighting == Sighting::Possible);
                }
            }
            if sighting == Sighting::Outside {
                assert!(at == 0 || at == codes.len(), "{code}");
            }
            match (bits.next_from(code), codes.get(at)) {
                (Some(next), Some(found)) => {
                    assert!(code <= next && next <= *found, "{code}: {next} {found}")
                }
                (None, Some(found)) => panic!("{found} is missed from {code} on"),
                (Some(_), None) | (None, None) => {}
            }
        }
        (absent, seen)
    }

    #[test]
    fn no_partition_is_missed() {
        let mut random = Seeded::new(1);
        for round in 0..300 {
            let most = 1_u64 << (round % 64);
            let mut codes: Vec<u64> = (0..random.below(500) + 1).map(|_| random.below(most)).collect();
            codes.extend((round % 7 == 0).then_some(u64::MAX));
            codes.sort_unstable();
            let mut asked = Seeded::new(round);
            check(&codes, (0..200).map(|_| asked.below(u64::MAX) >> asked.below(64)));
        }
        check(&[0, u64::MAX], [1, u64::MAX - 1].into_iter());
        check(&[7; 5], [6, 8].into_iter());
    }

    #[test]
    fn most_tokens_that_are_not_there_are_known_not_to_be() {
        let mut random = Seeded::new(2);
        let mut codes: Vec<u64> = (0..5000).map(|_| random.below(u64::MAX)).collect();
        codes.sort_unstable();
        let (absent, seen) = check(&codes, (0..5000).map(|_| random.below(u64::MAX)));
        assert!(seen * 7 < absent, "{seen} of {absent}");
    }

    #[test]
    fn a_partition_that_may_be_nearly_everywhere_makes_bits_useless() {
        let shape = Shape::of(1_000_000, 0, u64::MAX).unwrap();
        let memory = Arc::new(TokenBitsBudget::default());
        let share = TokenBitsBudget::take(&memory, shape.memory_bytes()).unwrap();
        let mut bits = TokenBits::none_set(shape, share).unwrap();
        assert!(!bits.set(0, u64::MAX / 2));
        assert_eq!(bits.sight(1), Sighting::Absent);
    }

    #[test]
    fn a_partition_takes_two_bytes_at_most() {
        for partitions in [1, 1000, 1 << 20, (1 << 20) + 1, 100_000_000] {
            let shape = Shape::of(partitions, 0, u64::MAX).unwrap();
            assert!(shape.memory_bytes() <= (2 * partitions).max(8), "{partitions}");
        }
        assert_eq!(Shape::of(u64::MAX, 0, u64::MAX), None);
        assert_eq!(Shape::of(0, 0, 0), None);
    }
}
