//! Filter.db: a Bloom filter of the partition keys.
//!
//! ```text
//! filter := hash_count:i32  word_count:i32  bits          word_count * 8 bytes
//! ```
//!
//! Bit i is bit i mod 8 (least significant first) of byte i / 8; before na, the bytes of each word are in reverse order. The
//! bits of a key come from both halves of its Murmur3 hash: `base = h2`, `step = h1`, index `|base rem bits|`, `base += step`.
//!
//! Invariant: a filter never denies a key that was added.

use ilion_codec::{Error as Malformed, Reader, Writer, murmur3};
use ilion_types::Token;

use crate::Version;

/// Both halves of the Murmur3 hash of a partition key, computed once per read and used with many filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHash {
    h1: i64,
    h2: i64,
}

impl KeyHash {
    /// Hashes a serialized partition key.
    #[inline]
    pub fn of(key: &[u8]) -> Self {
        let (h1, h2) = murmur3::hash128(key, 0);
        Self { h1, h2 }
    }

    /// The `Murmur3Partitioner` token of the key; `None` for the hash of an empty key, which has another token.
    #[inline]
    pub(crate) fn token(self) -> Option<Token> {
        let hash = if self.h1 == i64::MIN { i64::MAX } else { self.h1 };
        ((self.h1, self.h2) != (0, 0)).then_some(Token::Murmur3(hash))
    }

    /// The lowest byte of the second half, as in the leaves of the trie index.
    #[inline]
    pub fn low_byte(self) -> u8 {
        self.h2.to_le_bytes()[0]
    }
}

/// Bits per key, and the number of hashes per key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BloomSizing {
    /// Bits for each key.
    pub bits_per_key: u32,
    /// Bits that each key sets.
    pub hash_count: u32,
}

const BITS_PER_KEY_MIN: u32 = 2;
const BITS_PER_KEY_MAX: u32 = 20;
const HASH_COUNT_MAX: u32 = 15;
/// Bits added to every filter (`BloomCalculations.EXCESS`).
const EXCESS_BITS: u64 = 20;

impl BloomSizing {
    /// The fewest bits per key that reach the false-positive chance, with their best number of hashes; then the fewest hashes that
    /// still reach it (`BloomCalculations.computeBloomSpec`). A chance below the minimum gets the sizing of the minimum.
    pub(crate) fn for_chance(fp_chance: f64) -> Self {
        let mut sizing = Self {
            bits_per_key: BITS_PER_KEY_MIN,
            hash_count: best_hash_count(BITS_PER_KEY_MIN),
        };
        if fp_chance >= false_positive_rate(BITS_PER_KEY_MIN, 1) {
            return sizing;
        }
        while sizing.bits_per_key < BITS_PER_KEY_MAX && sizing.rate() > fp_chance {
            sizing.bits_per_key += 1;
            sizing.hash_count = best_hash_count(sizing.bits_per_key);
        }
        while sizing.hash_count > 1
            && false_positive_rate(sizing.bits_per_key, sizing.hash_count - 1) <= fp_chance
        {
            sizing.hash_count -= 1;
        }
        sizing
    }

    fn rate(self) -> f64 {
        false_positive_rate(self.bits_per_key, self.hash_count)
    }
}

/// The theoretical rate `(1 - e^(-k/b))^k`, rounded to three significant digits, as in the tables of the literature.
fn false_positive_rate(bits_per_key: u32, hash_count: u32) -> f64 {
    let (bits, hashes) = (f64::from(bits_per_key), f64::from(hash_count));
    let rate = (1.0 - (-hashes / bits).exp()).powf(hashes);
    let scale = 10f64.powf(2.0 - rate.log10().floor());
    (rate * scale).round() / scale
}

fn best_hash_count(bits_per_key: u32) -> u32 {
    let mut best = 1;
    for hash_count in 2..=HASH_COUNT_MAX {
        if false_positive_rate(bits_per_key, hash_count) < false_positive_rate(bits_per_key, best) {
            best = hash_count;
        }
    }
    best
}

/// A Bloom filter of partition keys.
#[derive(Clone, PartialEq, Eq)]
pub struct BloomFilter {
    hash_count: u32,
    /// Word i has bits 64 i to 64 i + 63, least significant first.
    words: Box<[u64]>,
    bits: Divisor,
}

/// More hashes only cost time: no writer uses them, so a file with more is damaged.
const HASH_COUNT_READ_MAX: u32 = 64;

impl BloomFilter {
    /// An empty filter for about `key_count` keys; `None` if the chance is 1, which means no filter.
    pub(crate) fn for_keys(key_count: u64, fp_chance: f64) -> Option<Self> {
        if fp_chance >= 1.0 {
            return None;
        }
        let sizing = BloomSizing::for_chance(fp_chance);
        let bits = key_count
            .saturating_mul(u64::from(sizing.bits_per_key))
            .saturating_add(EXCESS_BITS);
        let words = (((bits - 1) >> 6) + 1).min(i32::MAX as u64);
        let words = vec![0; usize::try_from(words).ok()?];
        Some(Self::of_words(sizing.hash_count, words.into()))
    }

    fn of_words(hash_count: u32, words: Box<[u64]>) -> Self {
        Self {
            hash_count,
            bits: Divisor::of_words(words.len()),
            words,
        }
    }

    /// Adds a key.
    #[inline]
    pub fn add(&mut self, key: KeyHash) {
        for_each_bit(key, self.hash_count, self.bits, |bit| {
            self.words[bit >> 6] |= 1 << (bit & 63);
            true
        });
    }

    /// False if the key was never added.
    #[inline]
    pub fn may_contain(&self, key: KeyHash) -> bool {
        for_each_bit(key, self.hash_count, self.bits, |bit| {
            self.words[bit >> 6] & (1 << (bit & 63)) != 0
        })
    }

    /// Memory of the filter in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.words.len() * 8
    }

    /// True if no key was added. In a file, such a filter would hide every row, so it is damaged.
    pub fn is_blank(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// An empty filter of the same size and with the same number of hashes.
    pub(crate) fn emptied(&self) -> Self {
        Self::of_words(self.hash_count, vec![0; self.words.len()].into())
    }

    /// The approximate file offset of the first bit that is set here, but not in `other`, a filter of the same size.
    pub(crate) fn first_surplus(&self, other: &Self) -> Option<u64> {
        let mut words = self.words.iter().zip(&other.words);
        let word = words.position(|(mine, other)| mine & !other != 0)?;
        Some(8 + 8 * word as u64)
    }

    /// The bytes of the component.
    pub fn encode(&self, version: Version) -> Vec<u8> {
        let mut out = Writer::with_capacity(8 + self.memory_bytes());
        out.u32(self.hash_count);
        out.u32(u32::try_from(self.words.len()).unwrap_or(u32::MAX));
        for word in &self.words {
            let bytes = if version.is_na_or_later() {
                word.to_le_bytes()
            } else {
                word.to_be_bytes()
            };
            out.bytes(&bytes);
        }
        out.into_vec()
    }

    /// Decodes the component.
    ///
    /// # Errors
    /// The bytes are not a filter. The filter can be rebuilt from the index.
    pub fn decode(bytes: &[u8], version: Version) -> Result<Self, Malformed> {
        let mut input = Reader::new(bytes);
        let refused = input.error("1 to 64 hashes");
        let hash_count = input.u32()?;
        if hash_count == 0 || hash_count > HASH_COUNT_READ_MAX {
            return Err(refused);
        }
        let refused = input.error("as many words as the file has, at least one");
        let word_count = input.u32()?;
        let (words, tail) = input.rest().as_chunks::<8>();
        if word_count == 0 || words.len() as u64 != u64::from(word_count) || !tail.is_empty() {
            return Err(refused);
        }
        let from_bytes = if version.is_na_or_later() {
            u64::from_le_bytes
        } else {
            u64::from_be_bytes
        };
        let words = words.iter().map(|word| from_bytes(*word)).collect();
        Ok(Self::of_words(hash_count, words))
    }
}

/// Calls `visit` with each bit of a key until `visit` returns false. Returns true if it never did.
#[inline]
fn for_each_bit(key: KeyHash, hash_count: u32, bits: Divisor, mut visit: impl FnMut(usize) -> bool) -> bool {
    let mut base = key.h2;
    for _ in 0..hash_count {
        // Compat: Java takes the absolute value of a signed remainder; that is the remainder of the absolute value.
        let bit = bits.remainder_of(base.unsigned_abs()) as usize;
        if !visit(bit) {
            return false;
        }
        base = base.wrapping_add(key.h1);
    }
    true
}

/// A divisor whose remainders need only multiplications: a division takes several times as long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Divisor {
    value: u64,
    /// (2^64 - 1) / value, rounded down.
    inverse: u64,
}

impl Divisor {
    /// The number of bits in `words` words; at least those of one word.
    fn of_words(words: usize) -> Self {
        let value = ((words as u64) << 6).max(1);
        Self {
            value,
            inverse: u64::MAX / value,
        }
    }

    #[inline]
    fn remainder_of(self, number: u64) -> u64 {
        // The estimate is at most one too low: `inverse` is less than one below 2^64 / value, and `number` is below 2^64.
        let quotient = (u128::from(number) * u128::from(self.inverse)) >> 64;
        let remainder = number - quotient as u64 * self.value;
        if remainder >= self.value {
            remainder - self.value
        } else {
            remainder
        }
    }
}

impl std::fmt::Debug for BloomFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BloomFilter")
            .field("hash_count", &self.hash_count)
            .field("words", &self.words.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizing_follows_cassandras_table() {
        for (chance, bits_per_key, hash_count) in [
            (0.9, 2, 1),
            (0.1, 5, 3),
            (0.01, 10, 5),
            (0.001, 15, 7),
            (0.0001, 20, 10),
            (6.71e-5, 20, 14),
            (0.0, 20, 14),
        ] {
            let expected = BloomSizing {
                bits_per_key,
                hash_count,
            };
            assert_eq!(BloomSizing::for_chance(chance), expected, "{chance}");
        }
    }

    #[test]
    fn every_added_key_is_there_and_few_others_are() {
        let mut filter = BloomFilter::for_keys(1000, 0.01).unwrap();
        let key = |number: u32| KeyHash::of(&number.to_be_bytes());
        (0..1000).for_each(|number| filter.add(key(number)));
        for version in [Version::NB, Version::parse("me").unwrap()] {
            let read = BloomFilter::decode(&filter.encode(version), version).unwrap();
            assert_eq!(read, filter);
            assert!((0..1000).all(|number| read.may_contain(key(number))));
        }
        let wrong = (1000..11_000)
            .filter(|number| filter.may_contain(key(*number)))
            .count();
        assert!(wrong < 300, "{wrong} of 10000 false positives");
        assert_eq!(BloomFilter::for_keys(10, 1.0), None);
    }

    #[test]
    fn remainders_are_those_of_a_division() {
        for words in [1, 2, 3, 7, 1000, 45_678, i32::MAX as usize] {
            let divisor = Divisor::of_words(words);
            let near = |number: u64| [number.wrapping_sub(1), number, number.wrapping_add(1)];
            let mut numbers: Vec<u64> = [0, 1 << 63, u64::MAX / divisor.value * divisor.value]
                .into_iter()
                .flat_map(near)
                .collect();
            numbers.extend((0..1000).map(|index: u64| index.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
            for number in numbers {
                assert_eq!(
                    divisor.remainder_of(number),
                    number % divisor.value,
                    "{number} of {words}"
                );
            }
        }
    }

    #[test]
    fn damaged_filters_are_refused() {
        let mut filter = BloomFilter::for_keys(3, 0.1).unwrap();
        assert!(filter.is_blank());
        filter.add(KeyHash::of(b"k"));
        let bytes = filter.encode(Version::NB);
        for len in 0..bytes.len() {
            assert!(
                BloomFilter::decode(&bytes[..len], Version::NB).is_err(),
                "{len} bytes"
            );
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(BloomFilter::decode(&longer, Version::NB).is_err());
        assert!(BloomFilter::decode(&[0; 16], Version::NB).is_err());
    }
}
