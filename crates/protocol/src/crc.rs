//! The two checksums of v5 segments.
//!
//! Not here: plain CRC32 and Murmur3, which files use (`ilion-codec`).

const CRC24_INIT: u32 = 0x0087_5060;
const CRC24_POLYNOMIAL: u32 = 0x0197_4f0b;

/// Bytes that come before each payload in its CRC32.
const CRC32_PREFIX: [u8; 4] = [0xfa, 0x2d, 0x55, 0xca];

const CRC24_TABLE: [u32; 256] = crc24_table();

const fn crc24_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u32) << 16;
        let mut bit = 0;
        while bit < 8 {
            crc <<= 1;
            if crc & 0x0100_0000 != 0 {
                crc ^= CRC24_POLYNOMIAL;
            }
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

/// CRC24 of a segment header.
#[inline]
pub fn crc24(bytes: &[u8]) -> u32 {
    bytes.iter().fold(CRC24_INIT, |crc, &byte| {
        let index = (crc >> 16) as u8 ^ byte;
        ((crc << 8) & 0x00ff_ffff) ^ CRC24_TABLE[usize::from(index)]
    })
}

/// CRC32 of a segment payload.
#[inline]
pub fn payload_crc32(payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&CRC32_PREFIX);
    hasher.update(payload);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, bit by bit.
    fn crc24_slow(bytes: &[u8]) -> u32 {
        let mut crc = CRC24_INIT;
        for &byte in bytes {
            crc ^= u32::from(byte) << 16;
            for _ in 0..8 {
                crc <<= 1;
                if crc & 0x0100_0000 != 0 {
                    crc ^= CRC24_POLYNOMIAL;
                }
            }
        }
        crc & 0x00ff_ffff
    }

    #[test]
    fn the_table_agrees_with_the_definition() {
        for seed in 0..1000_u64 {
            let bytes = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
            assert_eq!(crc24(&bytes[..5]), crc24_slow(&bytes[..5]));
            assert_eq!(crc24(&bytes[..3]), crc24_slow(&bytes[..3]));
        }
    }
}
