//! The partition of a key, as the default partitioner of Java's producer chooses it.
//!
//! Consumers that join topics expect equal keys in partitions of equal numbers, whoever wrote them. The hash is Murmur2 with Kafka's
//! seed, and its sign is cleared.

const SEED: u32 = 0x9747_b28c;
const FACTOR: u32 = 0x5bd1_e995;

/// The partition of a key. Pure.
///
/// # Panics
/// There are no partitions.
pub fn partition_of(key: &[u8], partitions: usize) -> usize {
    assert!(partitions > 0, "a topic has partitions");
    (murmur2(key) & 0x7fff_ffff) as usize % partitions
}

fn murmur2(data: &[u8]) -> u32 {
    let mix = |word: u32| {
        let word = word.wrapping_mul(FACTOR);
        (word ^ (word >> 24)).wrapping_mul(FACTOR)
    };
    // Kafka has lengths of 32 bits.
    let mut hash = SEED ^ (data.len() as u32);
    let (words, rest) = data.as_chunks::<4>();
    for word in words {
        hash = hash.wrapping_mul(FACTOR) ^ mix(u32::from_le_bytes(*word));
    }
    if !rest.is_empty() {
        for (index, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * index);
        }
        hash = hash.wrapping_mul(FACTOR);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(FACTOR);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cases of Kafka's own test of this function.
    #[test]
    fn hashes_are_those_of_kafka() {
        for (key, hash) in [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(key.as_bytes()) as i32, hash, "{key}");
        }
    }

    #[test]
    fn a_key_stays_in_its_partition() {
        assert_eq!(partition_of(b"abc", 6), 479_470_107 % 6);
        assert_eq!(partition_of(b"abc", 1), 0);
    }
}
