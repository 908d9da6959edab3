//! Checksums and digests: CRC-32 (zlib) of files and frames, CRC-24 of protocol v5 headers, MD5 of
//! `RandomPartitioner` keys.

use md5::Digest as _;

/// CRC-32 (zlib polynomial) of `bytes`.
#[inline]
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// Continues a CRC-32: `crc32_extend(crc32(a), b)` is the CRC-32 of `a` followed by `b`.
#[inline]
pub fn crc32_extend(crc: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(crc);
    hasher.update(bytes);
    hasher.finalize()
}

const CRC24_INIT: u32 = 0x87_5060;
const CRC24_POLY: u32 = 0x197_4F0B;

/// CRC-24 of `bytes`, as in segment headers of the native protocol v5 (Cassandra's `Crc.crc24`).
pub fn crc24(bytes: &[u8]) -> u32 {
    bytes.iter().fold(CRC24_INIT, |crc, byte| {
        let index = ((crc >> 16) ^ u32::from(*byte)) & 0xFF;
        ((crc << 8) & 0xFF_FFFF) ^ CRC24_TABLE[index as usize]
    })
}

const CRC24_TABLE: [u32; 256] = crc24_table();

const fn crc24_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0u32;
    while index < 256 {
        let mut crc = index << 16;
        let mut bit = 0;
        while bit < 8 {
            crc <<= 1;
            if crc & 0x100_0000 != 0 {
                crc ^= CRC24_POLY;
            }
            bit += 1;
        }
        table[index as usize] = crc & 0xFF_FFFF;
        index += 1;
    }
    table
}

/// MD5 of `bytes`.
pub fn md5(bytes: &[u8]) -> [u8; 16] {
    md5::Md5::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_values_hold() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32_extend(crc32(b"1234"), b"56789"), 0xCBF4_3926);
        assert_eq!(
            md5(b"key"),
            *b"\x3c\x6e\x0b\x8a\x9c\x15\x22\x4a\x82\x28\xb9\xa9\x8c\xa1\x53\x1d"
        );
    }

    #[test]
    fn the_table_agrees_with_the_bitwise_definition() {
        let bitwise = |bytes: &[u8]| {
            let mut crc = CRC24_INIT;
            for byte in bytes {
                crc ^= u32::from(*byte) << 16;
                for _ in 0..8 {
                    crc <<= 1;
                    if crc & 0x100_0000 != 0 {
                        crc ^= CRC24_POLY;
                    }
                }
            }
            crc
        };
        for bytes in [&b""[..], b"\0", b"\x01\x02\x03", b"\xFF\xFE\x80\x00\x7F"] {
            assert_eq!(crc24(bytes), bitwise(bytes));
        }
    }
}
