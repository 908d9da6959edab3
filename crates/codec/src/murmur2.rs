//! MurmurHash2, 64 bits, as Cassandra computes it (`MurmurHash.hash2_64`), for the cardinality estimate of Statistics.db.
//!
//! Compat: as in `murmur3`, the bytes of the tail are sign-extended.

use crate::murmur3::sign_extended;

const M: u64 = 0xc6a4_a793_5bd1_e995;
const R: u32 = 47;

/// The hash of `key`.
#[inline]
pub fn murmur2_hash64(key: &[u8], seed: u32) -> u64 {
    let mut hash = u64::from(seed) ^ M.wrapping_mul(key.len() as u64);
    let (blocks, tail) = key.as_chunks::<8>();
    for block in blocks {
        let mut k = u64::from_le_bytes(*block).wrapping_mul(M);
        k ^= k >> R;
        hash = (hash ^ k.wrapping_mul(M)).wrapping_mul(M);
    }
    if !tail.is_empty() {
        hash = (hash ^ sign_extended(tail)).wrapping_mul(M);
    }
    hash ^= hash >> R;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> R)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the reference MurmurHash64A. For ASCII input, the sign extension makes no difference.
    #[test]
    fn ascii_keys_hash_as_in_the_reference() {
        assert_eq!(murmur2_hash64(b"", 0), 0);
        assert_ne!(murmur2_hash64(b"a", 0), murmur2_hash64(b"b", 0));
        assert_eq!(murmur2_hash64(b"12345678", 0), reference(b"12345678"));
        assert_eq!(murmur2_hash64(b"0123456789abc", 0), reference(b"0123456789abc"));
    }

    fn reference(key: &[u8]) -> u64 {
        let mut hash = M.wrapping_mul(key.len() as u64);
        for block in key.chunks(8) {
            let k = block
                .iter()
                .rev()
                .fold(0u64, |k, byte| (k << 8) | u64::from(*byte));
            if block.len() == 8 {
                let mut k = k.wrapping_mul(M);
                k ^= k >> R;
                hash ^= k.wrapping_mul(M);
            } else {
                hash ^= k;
            }
            hash = hash.wrapping_mul(M);
        }
        hash ^= hash >> R;
        hash = hash.wrapping_mul(M);
        hash ^ (hash >> R)
    }
}
