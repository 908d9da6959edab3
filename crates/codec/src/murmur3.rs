//! MurmurHash3 x64-128 as Cassandra computes it (`org.apache.cassandra.utils.MurmurHash.hash3_x64_128`).
//!
//! Compat: full 16-byte blocks are standard, but the bytes of the tail are *sign-extended* before they are shifted and xored.
//! So keys with a byte above 0x7F in their tail have another hash than in standard implementations.

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// Both halves (h1, h2) of the hash. The token of a key is h1 with seed 0; Bloom filters use both halves.
#[inline]
pub fn hash128(key: &[u8], seed: u64) -> (i64, i64) {
    let (mut h1, mut h2) = (seed, seed);
    let (blocks, tail) = key.as_chunks::<16>();
    for block in blocks {
        let bits = u128::from_le_bytes(*block);
        #[expect(clippy::cast_possible_truncation, reason = "splits into halves")]
        let (low, high) = (bits as u64, (bits >> 64) as u64);
        h1 = (h1 ^ mix1(low)).rotate_left(27).wrapping_add(h2);
        h1 = h1.wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 = (h2 ^ mix2(high)).rotate_left(31).wrapping_add(h1);
        h2 = h2.wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    if tail.len() > 8 {
        h2 ^= mix2(sign_extended(&tail[8..]));
    }
    if !tail.is_empty() {
        h1 ^= mix1(sign_extended(&tail[..tail.len().min(8)]));
    }
    finish(h1, h2, key.len() as u64)
}

#[inline]
fn finish(mut h1: u64, mut h2: u64, len: u64) -> (i64, i64) {
    h1 ^= len;
    h2 ^= len;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = fmix(h1);
    h2 = fmix(h2);
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    (h1.cast_signed(), h2.cast_signed())
}

/// Sign-extends each of at most eight bytes, shifts it to its position, and xors all of them.
#[inline]
pub(crate) fn sign_extended(tail: &[u8]) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let raw = little_endian(tail);
    // A negative byte inverts all higher bits. So each byte is inverted if an odd number of lower bytes is negative.
    let signs_below = (raw >> 7 & ONES).wrapping_mul(ONES << 8);
    raw ^ ((signs_below & ONES) * 0xFF)
}

/// Returns at most eight bytes as a little-endian number. Two reads that overlap in the middle replace a loop.
#[inline]
fn little_endian(bytes: &[u8]) -> u64 {
    let len = bytes.len();
    if let Some(all) = bytes.first_chunk::<8>() {
        return u64::from_le_bytes(*all);
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let high = u64::from(u32::from_le_bytes(*last)) << (8 * (len - 4));
        return u64::from(u32::from_le_bytes(*first)) | high;
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk::<2>(), bytes.last_chunk::<2>()) {
        let high = u64::from(u16::from_le_bytes(*last)) << (8 * (len - 2));
        return u64::from(u16::from_le_bytes(*first)) | high;
    }
    bytes.first().copied().map_or(0, u64::from)
}

#[inline]
fn mix1(k: u64) -> u64 {
    k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

#[inline]
fn mix2(k: u64) -> u64 {
    k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

#[inline]
fn fmix(mut k: u64) -> u64 {
    k ^= k >> 33;
    k = k.wrapping_mul(0xff51_afd7_ed55_8ccd);
    k ^= k >> 33;
    k = k.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^ (k >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_sign_extended_byte_by_byte() {
        let by_byte = |tail: &[u8]| {
            tail.iter().enumerate().fold(0, |value, (index, byte)| {
                value ^ (i64::from(byte.cast_signed()) << (8 * index)).cast_unsigned()
            })
        };
        let bytes: Vec<u8> = (0..2000_u32)
            .map(|index| (index.wrapping_mul(0x9e37_79b9) >> 21) as u8)
            .collect();
        for len in 0..=8 {
            for tail in bytes.windows(len.max(1)) {
                assert_eq!(sign_extended(&tail[..len]), by_byte(&tail[..len]), "{tail:02x?}");
            }
            assert_eq!(sign_extended(&[0xFF; 8][..len]), by_byte(&[0xFF; 8][..len]));
        }
    }

    #[test]
    fn the_vectors_of_a_real_cassandra_hold() {
        let cases: [(&[u8], i64, i64); 9] = [
            (b"key", -6847573755651342660, -4836763491456212019),
            (&[0, 0, 0, 1], -4069959284402364209, 8758431505130184934),
            (&[0xFF], -4442228696663692417, -6049531771631615289),
            (
                &[0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88],
                7770289513489161555,
                -4142528516539560030,
            ),
            (b"0123456789abcdef", 5467490433528156583, -8663980805763692326),
            (
                b"0123456789abcdef\xE9\xFF\x80",
                -5828729509200270782,
                9177883730445981525,
            ),
            (
                &[0, 4, 0, 0, 0, 1, 0, 0, 1, 0x70, 0],
                -2589522129947212054,
                -8037238378193277955,
            ),
            (&[0xFF; 8], 7071048584287372947, 1253504245926449930),
            (
                "Z\u{fc}rich".as_bytes(),
                -5540362457254946660,
                -2776621043974690765,
            ),
        ];
        for (key, h1, h2) in cases {
            assert_eq!(hash128(key, 0), (h1, h2), "{key:02x?}");
        }
    }
}
