//! Ascending numbers, each in two to three bits plus its low bits (Elias-Fano).
//!
//! ```text
//! sequence := ones_before:u16 *  upper:u64 *  low_bits
//! ```
//!
//! The upper bits have for each number as many zeros as its high part exceeds that of the previous number, then a one. So bit
//! `high + index` is the one of number `index`. `ones_before` counts the ones before each group of four upper words. No bytes make this
//! code panic: for damaged bytes it returns `None` or a wrong number.

use std::ops::Range;

use super::u64_at;

const WORDS_PER_SAMPLE: usize = 4;
/// Number of bits that one read of eight bytes returns, if it starts at any bit of the first byte.
const LOW_BITS_MAX: u8 = 56;

/// The sizes of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) count: usize,
    pub(super) low_bits: u8,
    pub(super) words: u16,
}

impl Shape {
    /// The smallest shape for `count` numbers up to `max`; `None` if they are too far apart or too many.
    pub(super) fn fitting(count: usize, max: u64) -> Option<Self> {
        let gap = max / (count as u64).max(1);
        let low_bits = u8::try_from(gap.checked_ilog2().unwrap_or(0)).ok()?;
        let bits = count as u64 + (max >> low_bits) + 1;
        let words = u16::try_from(bits.div_ceil(64)).ok()?;
        (low_bits <= LOW_BITS_MAX && u16::try_from(count).is_ok()).then_some(Self {
            count,
            low_bits,
            words,
        })
    }

    fn samples(self) -> usize {
        usize::from(self.words).div_ceil(WORDS_PER_SAMPLE)
    }

    /// Length of the sequence in bytes.
    pub(super) fn len(self) -> usize {
        self.samples() * 2
            + usize::from(self.words) * 8
            + (self.count * usize::from(self.low_bits)).div_ceil(8)
    }

    fn low_mask(self) -> u64 {
        (1 << self.low_bits) - 1
    }
}

/// Appends the numbers. Requires: they ascend, and `shape` fits them.
pub(super) fn encode(numbers: impl Iterator<Item = u64> + Clone, shape: Shape, out: &mut Vec<u8>) {
    out.reserve(shape.len());
    // A pass for the upper and one for the low bits, so that the state of each fits into registers.
    encode_upper(numbers.clone(), shape, out);
    encode_low(numbers, shape, out);
}

fn encode_upper(numbers: impl Iterator<Item = u64>, shape: Shape, out: &mut Vec<u8>) {
    let mut upper = vec![0_u64; usize::from(shape.words)];
    for (index, number) in numbers.enumerate() {
        let bit = usize::try_from(number >> shape.low_bits).unwrap_or(usize::MAX) + index;
        upper[bit / 64] |= 1 << (bit % 64);
    }
    let mut ones = 0;
    for group in upper.chunks(WORDS_PER_SAMPLE) {
        out.extend_from_slice(&u16::try_from(ones).unwrap_or(u16::MAX).to_le_bytes());
        ones += group.iter().map(|word| word.count_ones()).sum::<u32>();
    }
    upper
        .iter()
        .for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
}

/// Appends the low bits of all numbers, one after another, lowest bit first.
fn encode_low(numbers: impl Iterator<Item = u64>, shape: Shape, out: &mut Vec<u8>) {
    let (mask, count) = (shape.low_mask(), u32::from(shape.low_bits));
    // Bits that are not a whole word yet, and their number.
    let (mut word, mut filled) = (0_u64, 0_u32);
    for number in numbers {
        let bits = number & mask;
        word |= bits << filled;
        filled += count;
        if filled >= 64 {
            out.extend_from_slice(&word.to_le_bytes());
            filled -= 64;
            // The bits that did not fit into the last word.
            word = bits >> (count - filled);
        }
    }
    let last = filled.div_ceil(8) as usize;
    out.extend_from_slice(&word.to_le_bytes()[..last]);
}

/// A sequence whose bytes are in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sequence<'b> {
    shape: Shape,
    samples: &'b [[u8; 2]],
    upper: &'b [[u8; 8]],
    low: &'b [u8],
}

impl<'b> Sequence<'b> {
    /// The sequence at the start of the bytes, and the bytes behind it; `None` if there are too few bytes.
    pub(super) fn split(bytes: &'b [u8], shape: Shape) -> Option<(Self, &'b [u8])> {
        if shape.low_bits > LOW_BITS_MAX {
            return None;
        }
        let (own, rest) = bytes.split_at_checked(shape.len())?;
        let (samples, own) = own.split_at_checked(shape.samples() * 2)?;
        let (upper, low) = own.split_at_checked(usize::from(shape.words) * 8)?;
        let sequence = Self {
            shape,
            samples: samples.as_chunks().0,
            upper: upper.as_chunks().0,
            low,
        };
        Some((sequence, rest))
    }

    #[inline]
    fn word(&self, index: usize) -> Option<u64> {
        self.upper.get(index).map(|word| u64::from_le_bytes(*word))
    }

    /// Number of ones before a group of words; `None` beyond the last group.
    #[inline]
    fn ones_before(&self, group: usize) -> Option<usize> {
        let ones = self.samples.get(group)?;
        Some(usize::from(u16::from_le_bytes(*ones)))
    }

    #[inline]
    fn low(&self, index: usize) -> u64 {
        let at = index * usize::from(self.shape.low_bits);
        (u64_at(self.low, at / 8) >> (at % 8)) & self.shape.low_mask()
    }

    /// The number at `index`.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<u64> {
        let bit = self.bit_of_one(index)?;
        let high = bit.checked_sub(index)? as u64;
        Some((high << self.shape.low_bits) | self.low(index))
    }

    /// Calls `visit` with all numbers, in order.
    pub(super) fn each(&self, mut visit: impl FnMut(u64)) {
        let mut index = 0;
        for at in 0..self.upper.len() {
            let mut word = self.word(at).unwrap_or(0);
            while word != 0 && index < self.shape.count {
                let bit = at * 64 + word.trailing_zeros() as usize;
                let high = bit.saturating_sub(index) as u64;
                visit((high << self.shape.low_bits) | self.low(index));
                index += 1;
                word &= word - 1;
            }
        }
    }

    /// The number at `index`. Requires: `bit` is at or before the one of this number, and behind the one of the number before.
    #[inline]
    pub(super) fn get_from(&self, bit: usize, index: usize) -> Option<u64> {
        let mut at = bit / 64;
        let mut word = self.word(at)? >> (bit % 64) << (bit % 64);
        while word == 0 {
            at += 1;
            word = self.word(at)?;
        }
        let bit = at * 64 + word.trailing_zeros() as usize;
        let high = bit.checked_sub(index)? as u64;
        Some((high << self.shape.low_bits) | self.low(index))
    }

    /// The least index of a number that is at least `value`, and that number, if there is one.
    #[inline]
    pub(super) fn next_from(&self, value: u64) -> (usize, Option<u64>) {
        let (range, bit) = self.locate(value);
        let next = bit.filter(|_| range.start < self.shape.count);
        let next = next.and_then(|bit| self.get_from(bit, range.start));
        (range.start, next)
    }

    /// The indexes of the numbers that equal `value`. If there are none: an empty range, where they would be.
    #[inline]
    pub(super) fn equal_range(&self, value: u64) -> Range<usize> {
        self.locate(value).0
    }

    /// The indexes of the numbers that equal `value`. Also a bit at or before the one of the first number that is at least `value`; if
    /// there is no such number, it has no meaning, or is `None`.
    #[inline]
    fn locate(&self, value: u64) -> (Range<usize>, Option<usize>) {
        let count = self.shape.count;
        let found = usize::try_from(value >> self.shape.low_bits)
            .ok()
            .and_then(|high| Some((high, self.bit_after_zeros(high)?)));
        let Some((high, mut bit)) = found else {
            return (count..count, None);
        };
        let low = value & self.shape.low_mask();
        let mut index = bit.saturating_sub(high);
        while index < count && self.is_one(bit) && self.low(index) < low {
            bit += 1;
            index += 1;
        }
        let (start, start_bit) = (index.min(count), bit);
        while index < count && self.is_one(bit) && self.low(index) == low {
            bit += 1;
            index += 1;
        }
        (start..index.clamp(start, count), Some(start_bit))
    }

    fn is_one(&self, bit: usize) -> bool {
        self.word(bit / 64)
            .is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }

    /// The bit position of one number `index`, counted from zero.
    #[inline]
    fn bit_of_one(&self, index: usize) -> Option<usize> {
        let mut group = 0;
        while self.ones_before(group + 1).is_some_and(|ones| ones <= index) {
            group += 1;
        }
        let mut left = index.checked_sub(self.ones_before(group)?)?;
        let mut at = group * WORDS_PER_SAMPLE;
        loop {
            let word = self.word(at)?;
            let ones = word.count_ones() as usize;
            if left < ones {
                return Some(at * 64 + nth_one(word, left));
            }
            left -= ones;
            at += 1;
        }
    }

    /// The bit position behind this many zeros.
    #[inline]
    fn bit_after_zeros(&self, zeros: usize) -> Option<usize> {
        let Some(mut left) = zeros.checked_sub(1) else {
            return Some(0);
        };
        let zeros_before =
            |group: usize| Some((group * WORDS_PER_SAMPLE * 64).saturating_sub(self.ones_before(group)?));
        let mut group = 0;
        while zeros_before(group + 1).is_some_and(|before| before <= left) {
            group += 1;
        }
        left = left.checked_sub(zeros_before(group)?)?;
        let mut at = group * WORDS_PER_SAMPLE;
        loop {
            let word = !self.word(at)?;
            let zeros = word.count_ones() as usize;
            if left < zeros {
                return Some(at * 64 + nth_one(word, left) + 1);
            }
            left -= zeros;
            at += 1;
        }
    }
}

/// The position of one number `index` in a word. Requires: the word has more ones than `index`. Counting the ones of all bytes at once
/// finds its byte (Vigna, "Broadword implementation of rank/select queries").
#[inline]
fn nth_one(word: u64, index: usize) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let pairs = word - (word >> 1 & 0x5555_5555_5555_5555);
    let nibbles = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
    let bytes = (nibbles + (nibbles >> 4)) & 0x0F0F_0F0F_0F0F_0F0F;
    // Each byte has the number of ones in itself and in all lower bytes.
    let upto = bytes.wrapping_mul(EACH);
    let passed = ((index as u64).wrapping_mul(EACH) | HIGH).wrapping_sub(upto) & HIGH;
    let shift = ((passed >> 7).wrapping_mul(EACH) >> 56).min(7) * 8;
    let before = (upto << 8) >> shift & 0xFF;
    let mut left = word >> shift;
    for _ in before..index as u64 {
        left &= left.wrapping_sub(1);
    }
    shift as usize + left.trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use ilion_env::Seeded;

    use super::*;

    fn check(numbers: &[u64]) {
        let shape = Shape::fitting(numbers.len(), numbers.last().copied().unwrap_or(0)).unwrap();
        let mut bytes = Vec::new();
        encode(numbers.iter().copied(), shape, &mut bytes);
        assert_eq!(bytes.len(), shape.len());
        bytes.extend([0xAB; 3]);
        let (sequence, rest) = Sequence::split(&bytes, shape).unwrap();
        assert_eq!(rest, [0xAB; 3]);
        for (index, number) in numbers.iter().enumerate() {
            assert_eq!(sequence.get(index), Some(*number), "{index} of {numbers:?}");
            for value in [number.saturating_sub(1), *number, number.saturating_add(1)] {
                let start = numbers.partition_point(|known| *known < value);
                let end = numbers.partition_point(|known| *known <= value);
                assert_eq!(sequence.equal_range(value), start..end, "{value} in {numbers:?}");
                let next = (start, numbers.get(start).copied());
                assert_eq!(sequence.next_from(value), next, "{value} in {numbers:?}");
            }
        }
        assert_eq!(sequence.get(numbers.len()), None);
        let mut all = Vec::new();
        sequence.each(|number| all.push(number));
        assert_eq!(all, numbers);
        assert_eq!(sequence.equal_range(u64::MAX), numbers.len()..numbers.len());
    }

    #[test]
    fn numbers_are_found_by_index_and_by_value() {
        check(&[0]);
        check(&[7]);
        check(&[5; 100]);
        check(&[0, 0, 1 << 50]);
        check(&(0..1024).collect::<Vec<_>>());
        let mut random = Seeded::new(1);
        for round in 0..200 {
            let count = random.below(1024) + 1;
            let most = 1_u64 << (round % 50);
            let mut numbers: Vec<u64> = (0..count).map(|_| random.below(most)).collect();
            numbers.sort_unstable();
            check(&numbers);
        }
    }

    #[test]
    fn bytes_that_make_no_sense_do_not_panic() {
        let mut random = Seeded::new(2);
        for _ in 0..2000 {
            let bytes: Vec<u8> = (0..random.below(300)).map(|_| random.below(256) as u8).collect();
            let shape = Shape {
                count: random.below(200) as usize,
                low_bits: random.below(64) as u8,
                words: random.below(20) as u16,
            };
            if let Some((sequence, _)) = Sequence::split(&bytes, shape) {
                sequence.each(|_| {});
                for index in 0..shape.count + 2 {
                    let _ = sequence.get(index);
                    let _ = sequence.next_from(random.below(u64::MAX));
                    let range = sequence.equal_range(random.below(u64::MAX));
                    assert!(range.start <= range.end && range.end <= shape.count);
                }
            }
        }
    }
}
