//! The rows: functions of their numbers, so that every one that comes back is checked.

/// Bytes of a key.
pub const KEY_BYTES: usize = 16;

/// All rows.
pub struct Rows {
    pub count: u64,
    value_bytes: usize,
}

impl Rows {
    pub fn new(count: u64, value_bytes: usize) -> Self {
        Self { count, value_bytes }
    }

    /// Eight bytes that spread the rows, and their number.
    pub fn key(&self, row: u64) -> [u8; KEY_BYTES] {
        let mut key = [0; KEY_BYTES];
        key[..8].copy_from_slice(&mix(row).to_be_bytes());
        key[8..].copy_from_slice(&row.to_be_bytes());
        key
    }

    /// The first half cannot be compressed, the second half is all the same.
    pub fn value(&self, row: u64) -> Vec<u8> {
        let mut value = vec![b'x'; self.value_bytes];
        let mut word = row ^ 0x5555;
        for chunk in value[..self.value_bytes / 2].chunks_mut(8) {
            word = mix(word);
            chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
        }
        value
    }

    /// Whether this is a row; the beginning of its value stands for all of it.
    pub fn is_row(&self, key: &[u8], value: &[u8]) -> bool {
        let Some(number) = key.get(8..).and_then(|bytes| bytes.try_into().ok()) else {
            return false;
        };
        let row = u64::from_be_bytes(number);
        let begin = mix(row ^ 0x5555).to_le_bytes();
        let checked = (self.value_bytes / 2).min(8);
        row < self.count
            && key == self.key(row)
            && value.len() == self.value_bytes
            && value.starts_with(&begin[..checked])
    }
}

/// Spreads the bits of a number over all bits (splitmix64).
pub fn mix(mut value: u64) -> u64 {
    value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_known_again_and_nothing_else_passes_for_it() {
        let rows = Rows::new(10, 100);
        assert!(rows.is_row(&rows.key(3), &rows.value(3)));
        assert!(!rows.is_row(&rows.key(3), &rows.value(4)));
        assert!(!rows.is_row(&rows.key(3), &rows.value(3)[1..]));
        assert!(!rows.is_row(&rows.key(10), &rows.value(10)));
        assert!(!rows.is_row(b"short", &rows.value(3)));
    }
}
