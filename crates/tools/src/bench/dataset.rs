//! The rows of the benchmark: a function of the seed, so that every row can be checked without a list of rows.
//!
//! Rows are those of cassandra-stress: a blob key of ten bytes and five blobs. Keys are the numbers below `keys`, spread over all
//! bytes by an invertible multiplication, so that a scan can compute the number of a row from its key.

/// Bytes of a key.
pub const KEY_BYTES: usize = 10;
/// Columns beside the key.
pub const COLUMN_COUNT: usize = 5;

/// Odd, so it has an inverse modulo 2^64.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
const GATHER: u64 = inverse(SPREAD);

/// The rows of a seed.
#[derive(Clone, Copy, Debug)]
pub struct Dataset {
    seed: u64,
    value_bytes: usize,
}

impl Dataset {
    /// The rows of a seed, with values of this many bytes.
    pub fn new(seed: u64, value_size: u32) -> Self {
        Self {
            seed,
            value_bytes: value_size as usize,
        }
    }

    /// Bytes of a value.
    pub fn value_bytes(&self) -> usize {
        self.value_bytes
    }

    /// The key of a row.
    pub fn key(&self, row: u64) -> [u8; KEY_BYTES] {
        let mut key = [0; KEY_BYTES];
        key[..2].copy_from_slice(&self.tag());
        key[2..].copy_from_slice(&row.wrapping_add(self.seed).wrapping_mul(SPREAD).to_be_bytes());
        key
    }

    /// The number of the row with this key; `None` if the key belongs to another seed.
    pub fn row_of(&self, key: &[u8]) -> Option<u64> {
        let (tag, spread) = key.split_first_chunk::<2>()?;
        let spread = u64::from_be_bytes(spread.try_into().ok()?);
        (*tag == self.tag()).then(|| spread.wrapping_mul(GATHER).wrapping_sub(self.seed))
    }

    /// Writes the value of a column.
    pub fn fill(&self, row: u64, column: usize, into: &mut [u8]) {
        let mut words = self.words(row, column);
        let (whole, rest) = into.as_chunks_mut::<8>();
        for chunk in whole {
            *chunk = words.next_word().to_le_bytes();
        }
        let last = words.next_word().to_le_bytes();
        rest.copy_from_slice(&last[..rest.len()]);
    }

    /// True if `value` is the value of the column.
    pub fn is_value(&self, row: u64, column: usize, value: &[u8]) -> bool {
        let mut words = self.words(row, column);
        let (whole, rest) = value.as_chunks::<8>();
        value.len() == self.value_bytes
            && whole
                .iter()
                .all(|chunk| *chunk == words.next_word().to_le_bytes())
            && words.next_word().to_le_bytes().starts_with(rest)
    }

    fn tag(&self) -> [u8; 2] {
        let [first, second, ..] = mix(self.seed).to_le_bytes();
        [first, second]
    }

    fn words(&self, row: u64, column: usize) -> Words {
        Words {
            state: mix(self.seed ^ row.wrapping_mul(SPREAD)).wrapping_add(column as u64),
        }
    }
}

/// A stream of words (splitmix64).
struct Words {
    state: u64,
}

impl Words {
    #[inline]
    fn next_word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(SPREAD);
        mix(self.state)
    }
}

/// Spreads the bits of a number over all bits.
#[inline]
pub fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The inverse of an odd number modulo 2^64. The start has three correct bits, and each step of Newton's method doubles their
/// number.
const fn inverse(odd: u64) -> u64 {
    let mut guess = odd;
    let mut step = 0;
    while step < 5 {
        guess = guess.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(guess)));
        step += 1;
    }
    guess
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_key_tells_its_row() {
        let dataset = Dataset::new(7, 34);
        for row in [0, 1, 2, 99_999, u64::MAX] {
            assert_eq!(dataset.row_of(&dataset.key(row)), Some(row));
        }
        let keys: HashSet<_> = (0..10_000).map(|row| dataset.key(row)).collect();
        assert_eq!(keys.len(), 10_000);
    }

    #[test]
    fn keys_of_another_seed_or_shape_are_strangers() {
        let dataset = Dataset::new(7, 34);
        assert_eq!(dataset.row_of(&Dataset::new(8, 34).key(0)), None);
        assert_eq!(dataset.row_of(b"short"), None);
        assert_eq!(dataset.row_of(b""), None);
    }

    #[test]
    fn a_value_is_known_again_and_nothing_else_passes_for_it() {
        for size in [1, 7, 8, 34, 40] {
            let dataset = Dataset::new(7, size);
            let mut value = vec![0; size as usize];
            dataset.fill(3, 1, &mut value);
            assert!(dataset.is_value(3, 1, &value));
            assert!(!dataset.is_value(3, 1, &value[1..]), "a shorter one");
            if size >= 8 {
                assert!(!dataset.is_value(3, 2, &value), "of another column");
                assert!(!dataset.is_value(4, 1, &value), "of another row");
            }
            *value.last_mut().unwrap() ^= 1;
            assert!(!dataset.is_value(3, 1, &value), "with a flipped bit");
        }
    }
}
