//! Compression of bodies (v3, v4) and of segment payloads (v5).
//!
//! ```text
//! body, lz4    := uncompressed length: u32 (big-endian), LZ4 block
//! body, snappy := raw Snappy
//! segment, lz4 := LZ4 block; both lengths are in the segment header
//! ```
//!
//! Invariant: memory for the result is allocated only if the announced size is within the limit and possible for this input. So
//! a small frame cannot cause a large allocation.

use crate::error::Error;

/// A compression algorithm of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// LZ4, in all versions.
    Lz4,
    /// Snappy, not in v5.
    Snappy,
}

/// Largest ratio of an LZ4 block: a match of 255 bytes costs at least one byte.
const LZ4_RATIO_MAX: usize = 255;
/// Largest ratio of a Snappy block: a copy of 64 bytes costs at least three.
const SNAPPY_RATIO_MAX: usize = 22;

impl Compression {
    /// The name in STARTUP and SUPPORTED.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lz4 => "lz4",
            Self::Snappy => "snappy",
        }
    }

    /// The algorithm with this name, in upper or lower case; `None` if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Lz4, Self::Snappy]
            .into_iter()
            .find(|compression| compression.name().eq_ignore_ascii_case(name))
    }

    /// Compresses a body for v3 and v4.
    pub(crate) fn compress_body(self, body: &[u8]) -> Result<Vec<u8>, Error> {
        match self {
            Self::Lz4 => {
                let mut out = vec![0; 4 + lz4_flex::block::get_maximum_output_size(body.len())];
                let length = u32::try_from(body.len()).map_err(|_| too_large(body.len()))?;
                out[..4].copy_from_slice(&length.to_be_bytes());
                let size =
                    lz4_flex::block::compress_into(body, &mut out[4..]).map_err(|_| too_large(body.len()))?;
                out.truncate(4 + size);
                Ok(out)
            }
            Self::Snappy => snap::raw::Encoder::new()
                .compress_vec(body)
                .map_err(|_| too_large(body.len())),
        }
    }

    /// Decompresses a body of v3 and v4.
    pub(crate) fn decompress_body(self, body: &[u8], max_bytes: usize) -> Result<Vec<u8>, Error> {
        match self {
            Self::Lz4 => {
                let (length, block) = body
                    .split_first_chunk::<4>()
                    .ok_or_else(|| Error::refused("LZ4 body without its uncompressed length"))?;
                decompress_lz4(block, u32::from_be_bytes(*length) as usize, max_bytes)
            }
            Self::Snappy => decompress_snappy(body, max_bytes),
        }
    }
}

#[cold]
fn too_large(size: usize) -> Error {
    Error::TooLarge {
        what: "a body to compress",
        size,
        max: u32::MAX as usize,
    }
}

/// Refuses sizes above the limit, and sizes that are impossible for `compressed_len` bytes.
fn check_announced(
    announced: usize,
    compressed_len: usize,
    ratio_max: usize,
    max_bytes: usize,
) -> Result<(), Error> {
    if announced > max_bytes {
        return Err(Error::refused(format!(
            "decompressed body of {announced} bytes exceeds the limit of {max_bytes}"
        )));
    }
    if announced > compressed_len.saturating_mul(ratio_max) {
        return Err(Error::refused(format!(
            "{compressed_len} compressed bytes cannot give {announced}"
        )));
    }
    Ok(())
}

/// Decompresses a raw LZ4 block to exactly `announced` bytes.
pub(crate) fn decompress_lz4(block: &[u8], announced: usize, max_bytes: usize) -> Result<Vec<u8>, Error> {
    if announced == 0 {
        return Ok(Vec::new());
    }
    check_announced(announced, block.len(), LZ4_RATIO_MAX, max_bytes)?;
    let mut out = vec![0; announced];
    match lz4_flex::block::decompress_into(block, &mut out) {
        Ok(size) if size == announced => Ok(out),
        Ok(size) => Err(Error::refused(format!(
            "LZ4 block of {size} bytes, announced as {announced}"
        ))),
        Err(error) => Err(Error::refused(format!("LZ4: {error}"))),
    }
}

fn decompress_snappy(body: &[u8], max_bytes: usize) -> Result<Vec<u8>, Error> {
    let announced =
        snap::raw::decompress_len(body).map_err(|error| Error::refused(format!("Snappy: {error}")))?;
    check_announced(announced, body.len(), SNAPPY_RATIO_MAX, max_bytes)?;
    snap::raw::Decoder::new()
        .decompress_vec(body)
        .map_err(|error| Error::refused(format!("Snappy: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 1 << 20;

    #[test]
    fn bodies_come_back() {
        for compression in [Compression::Lz4, Compression::Snappy] {
            for body in [
                Vec::new(),
                vec![7],
                vec![0; 100_000],
                (0..=255).cycle().take(5000).collect(),
            ] {
                let compressed = compression.compress_body(&body).unwrap();
                assert_eq!(compression.decompress_body(&compressed, MAX).unwrap(), body);
            }
        }
    }

    #[test]
    fn the_empty_lz4_body_of_cassandra_is_understood() {
        let body = Compression::Lz4.decompress_body(&[0, 0, 0, 0, 0], MAX).unwrap();
        assert!(body.is_empty());
    }

    #[test]
    fn bombs_are_refused_by_their_announced_size() {
        let zeros = vec![0; MAX + 1];
        for compression in [Compression::Lz4, Compression::Snappy] {
            let compressed = compression.compress_body(&zeros).unwrap();
            let error = compression.decompress_body(&compressed, MAX).unwrap_err();
            assert!(error.to_string().contains("exceeds the limit"), "{error}");
        }
        // One megabyte from six bytes is within the limit and still impossible.
        let error = Compression::Lz4
            .decompress_body(&[0, 0x10, 0, 0, 0x11, 0x22], MAX)
            .unwrap_err();
        assert!(error.to_string().contains("cannot give"), "{error}");
    }
}
