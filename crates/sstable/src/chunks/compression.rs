//! A table's `compression` options, parsed for the writer.

use std::collections::BTreeMap;

use ilion_codec::Compressor;

use crate::compression_info::{CHUNK_LENGTH_MAX, CompressionInfo, NEVER_RAW};
use crate::{Error, Result};

/// Cassandra's default chunk length.
const CHUNK_LENGTH_DEFAULT: u32 = 16 << 10;

/// Longest chunk of a flush.
const FLUSH_CHUNK_LENGTH_MAX: u32 = 4 << 10;

/// Algorithm, chunk length, and the limit above which a chunk is stored raw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compression {
    /// The algorithm.
    pub compressor: Compressor,
    /// Options of the algorithm, as in CompressionInfo.db.
    pub options: Vec<(String, String)>,
    /// Uncompressed length of a chunk.
    pub chunk_length: u32,
    /// Chunks that compress to this length or more are stored raw.
    pub compressed_length_max: u32,
}

impl Compression {
    /// LZ4 in chunks of 16 KiB: Cassandra's default.
    pub fn lz4() -> Self {
        Self {
            compressor: Compressor::Lz4,
            options: Vec::new(),
            chunk_length: CHUNK_LENGTH_DEFAULT,
            compressed_length_max: NEVER_RAW,
        }
    }

    /// Parses a table's `compression` option; `None` if it disables compression.
    ///
    /// # Errors
    /// Refused: an unknown class, or a value out of range.
    pub fn from_options(options: &BTreeMap<String, String>) -> Result<Option<Self>> {
        let option = |name: &str| options.get(name).map(String::as_str);
        let Some(class) = option("class").or(option("sstable_compression")) else {
            return Ok(None);
        };
        if class.is_empty() || option("enabled") == Some("false") {
            return Ok(None);
        }
        let compressor =
            Compressor::from_class(class, option).map_err(|error| Error::Refused(error.to_string()))?;
        let chunk_length = chunk_length(option("chunk_length_in_kb").or(option("chunk_length_kb")))?;
        Ok(Some(Self {
            compressor,
            options: compressor_options(options),
            chunk_length,
            compressed_length_max: compressed_length_max(chunk_length, option("min_compress_ratio"))?,
        }))
    }

    /// Whether a Data.db was written with this compression. `wanted` is `None` for no compression, `info` is `None` if the SSTable
    /// has no CompressionInfo.db.
    ///
    /// # Errors
    /// Refused: the file names an unknown class.
    pub fn is_of(wanted: Option<&Self>, info: Option<&CompressionInfo>) -> Result<bool> {
        let (Some(wanted), Some(info)) = (wanted, info) else {
            return Ok(wanted.is_none() && info.is_none());
        };
        let option = |name: &str| {
            let found = info.options.iter().find(|(key, _)| key == name);
            found.map(|(_, value)| value.as_str())
        };
        let compressor =
            Compressor::from_class(&info.class, option).map_err(|error| Error::Refused(error.to_string()))?;
        Ok(compressor == wanted.compressor
            && info.chunk_length == wanted.chunk_length
            && info.compressed_length_max == wanted.compressed_length_max)
    }

    /// The compression of flushes, which compaction rewrites soon. Slow algorithms are replaced by LZ4 (Cassandra's
    /// `flush_compression: fast`). Chunks are short, because soon after a burst of writes a read needs chunks from several
    /// flushed SSTables.
    #[must_use]
    pub(crate) fn for_flush(self) -> Self {
        let fast = match self.compressor {
            Compressor::Deflate | Compressor::Zstd { .. } => Self::lz4(),
            _ => self,
        };
        fast.with_chunks_of(FLUSH_CHUNK_LENGTH_MAX)
    }

    /// The same compression, in chunks of at most `length_max` bytes.
    fn with_chunks_of(self, length_max: u32) -> Self {
        let chunk_length = self.chunk_length.min(length_max);
        let compressed_length_max = match self.compressed_length_max {
            NEVER_RAW => NEVER_RAW,
            // Rounds up, as `compressed_length_max` does. The result is at most the old value, so it fits.
            longest => (u64::from(longest) * u64::from(chunk_length))
                .div_ceil(u64::from(self.chunk_length))
                .try_into()
                .unwrap_or(longest),
        };
        Self {
            chunk_length,
            compressed_length_max,
            ..self
        }
    }
}

fn chunk_length(kib: Option<&str>) -> Result<u32> {
    let Some(text) = kib else {
        return Ok(CHUNK_LENGTH_DEFAULT);
    };
    text.parse::<u32>()
        .ok()
        .filter(|kib| kib.is_power_of_two() && *kib <= CHUNK_LENGTH_MAX >> 10)
        .map(|kib| kib << 10)
        .ok_or_else(|| {
            Error::Refused(format!(
                "Invalid value {text} for chunk_length_in_kb: a power of two up to {} is needed",
                CHUNK_LENGTH_MAX >> 10
            ))
        })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the quotient lies between 0 and the chunk length, checked by the ratio's range"
)]
fn compressed_length_max(chunk_length: u32, ratio: Option<&str>) -> Result<u32> {
    let Some(text) = ratio else {
        return Ok(NEVER_RAW);
    };
    match text.parse::<f64>() {
        Ok(0.0) => Ok(NEVER_RAW),
        Ok(ratio) if ratio >= 1.0 && ratio.is_finite() => Ok((f64::from(chunk_length) / ratio).ceil() as u32),
        _ => Err(Error::Refused(format!(
            "Invalid value {text} for min_compress_ratio: 0 or at least 1 is needed"
        ))),
    }
}

/// The options of the algorithm, without those of the chunks.
fn compressor_options(options: &BTreeMap<String, String>) -> Vec<(String, String)> {
    const OF_CHUNKS: [&str; 8] = [
        "class",
        "sstable_compression",
        "enabled",
        "chunk_length_in_kb",
        "chunk_length_kb",
        "min_compress_ratio",
        "max_compressed_length",
        "crc_check_chance",
    ];
    options
        .iter()
        .filter(|(key, _)| !OF_CHUNKS.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Result<Option<Compression>> {
        let options = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Compression::from_options(&options.collect())
    }

    #[test]
    fn options_of_a_table_become_parameters() {
        assert_eq!(of(&[]).unwrap(), None);
        assert_eq!(
            of(&[("enabled", "false"), ("class", "LZ4Compressor")]).unwrap(),
            None
        );
        let lz4 = of(&[("class", "org.apache.cassandra.io.compress.LZ4Compressor")]).unwrap();
        assert_eq!(lz4, Some(Compression::lz4()));
        let zstd = of(&[
            ("class", "ZstdCompressor"),
            ("compression_level", "5"),
            ("chunk_length_in_kb", "4"),
            ("min_compress_ratio", "2.5"),
        ]);
        let zstd = zstd.unwrap().unwrap();
        assert_eq!(zstd.compressor, Compressor::Zstd { level: 5 });
        assert_eq!(zstd.options, [("compression_level".to_owned(), "5".to_owned())]);
        assert_eq!((zstd.chunk_length, zstd.compressed_length_max), (4096, 1639));
    }

    #[test]
    fn flushes_are_fast_to_write_and_have_short_chunks() {
        let flushed = |class: &str, kib: &str, ratio: &str| {
            let options = of(&[
                ("class", class),
                ("chunk_length_in_kb", kib),
                ("min_compress_ratio", ratio),
            ]);
            let flushed = options.unwrap().unwrap().for_flush();
            (
                flushed.compressor,
                flushed.chunk_length,
                flushed.compressed_length_max,
            )
        };
        assert_eq!(
            flushed("LZ4Compressor", "16", "0"),
            (Compressor::Lz4, 4096, NEVER_RAW)
        );
        assert_eq!(
            flushed("LZ4Compressor", "2", "0"),
            (Compressor::Lz4, 2048, NEVER_RAW)
        );
        assert_eq!(
            flushed("ZstdCompressor", "16", "2"),
            (Compressor::Lz4, 4096, NEVER_RAW)
        );
        // A fifth of 16,384 bytes is 3,276.8.
        assert_eq!(
            flushed("SnappyCompressor", "16", "5"),
            (Compressor::Snappy, 4096, 820)
        );
    }

    #[test]
    fn wrong_values_are_refused() {
        let class = ("class", "LZ4Compressor");
        for wrong in [
            ("chunk_length_in_kb", "0"),
            ("chunk_length_in_kb", "5"),
            ("chunk_length_in_kb", "4194304"),
            ("min_compress_ratio", "0.5"),
            ("min_compress_ratio", "NaN"),
        ] {
            assert!(of(&[class, wrong]).is_err(), "{wrong:?}");
        }
        assert!(of(&[("class", "MyCompressor")]).is_err());
    }
}
