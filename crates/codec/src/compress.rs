//! Compression of chunks in Cassandra's stored forms.
//!
//! | class | stored form |
//! | --- | --- |
//! | `LZ4Compressor` | `u32` little-endian uncompressed length, then a raw LZ4 block |
//! | `SnappyCompressor` | raw Snappy block |
//! | `DeflateCompressor` | zlib stream |
//! | `ZstdCompressor` | one zstd frame with content size and checksum |
//! | `NoopCompressor` | the bytes themselves |
//!
//! Invariant: a chunk is decompressed into the caller's memory, whatever length it announces. Contexts that are costly to build
//! are kept per thread. Not here: the CRC after a chunk, the chunk map, the decision to store a chunk raw; frames of the native
//! protocol.

use std::cell::RefCell;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use zstd::bulk;
use zstd::zstd_safe::{self, CParameter};

/// Errors of compression, decompression and [`Compressor::from_class`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompressError {
    /// The bytes are damaged, or another algorithm wrote them. Retrying does not help.
    #[error("corrupt {algorithm} chunk: {reason}")]
    Corrupt {
        /// Simple class name.
        algorithm: &'static str,
        /// What is wrong.
        reason: &'static str,
    },
    /// The chunk would be longer than the caller allows.
    #[error("{algorithm} chunk holds more than {len_max} bytes")]
    TooLong {
        /// Simple class name.
        algorithm: &'static str,
        /// The caller's limit.
        len_max: usize,
    },
    /// The compressor itself failed; the output is unchanged.
    #[error("{algorithm} failed to compress")]
    Failed {
        /// Simple class name.
        algorithm: &'static str,
    },
    /// Ilion has no compressor of this class name.
    #[error("unknown compression class {0}")]
    UnknownClass(String),
    /// An option is invalid for the class.
    #[error("invalid value {value} for compression option {option}")]
    InvalidOption {
        /// Name of the option.
        option: &'static str,
        /// The given value.
        value: String,
    },
}

/// A compression algorithm with its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compressor {
    /// LZ4. Compat: `lz4_compressor_type: high` is accepted, but the fast compressor is used; every reader reads both.
    Lz4,
    /// Snappy.
    Snappy,
    /// zlib.
    Deflate,
    /// Zstandard.
    Zstd {
        /// -131072 to 22; Cassandra's default is 3.
        level: i32,
    },
    /// No compression, but chunks with checksums.
    Noop,
}

/// Cassandra's default for `compression_level` of `ZstdCompressor`.
const ZSTD_LEVEL_DEFAULT: i32 = 3;

impl Compressor {
    /// Returns the algorithm of a class name (simple or qualified). `option` looks up the value of a compression option.
    ///
    /// # Errors
    /// The class is unknown, or the level is out of range.
    pub fn from_class<'a>(
        class: &str,
        option: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Self, CompressError> {
        let simple = class
            .strip_prefix("org.apache.cassandra.io.compress.")
            .unwrap_or(class);
        match simple {
            "LZ4Compressor" => Ok(Self::Lz4),
            "SnappyCompressor" => Ok(Self::Snappy),
            "DeflateCompressor" => Ok(Self::Deflate),
            "ZstdCompressor" => Ok(Self::Zstd {
                level: zstd_level(option("compression_level"))?,
            }),
            "NoopCompressor" => Ok(Self::Noop),
            _ => Err(CompressError::UnknownClass(class.to_owned())),
        }
    }

    /// The simple class name, as in CompressionInfo.db.
    pub fn class_name(&self) -> &'static str {
        match self {
            Self::Lz4 => "LZ4Compressor",
            Self::Snappy => "SnappyCompressor",
            Self::Deflate => "DeflateCompressor",
            Self::Zstd { .. } => "ZstdCompressor",
            Self::Noop => "NoopCompressor",
        }
    }

    /// Appends the stored form of `input` to `out`.
    ///
    /// # Errors
    /// The compression library failed (out of memory); `out` is then unchanged.
    pub fn compress(&self, input: &[u8], out: &mut Vec<u8>) -> Result<(), CompressError> {
        let start = out.len();
        let result = match self {
            Self::Lz4 => compress_lz4(input, out),
            Self::Snappy => compress_snappy(input, out),
            Self::Deflate => compress_deflate(input, out),
            Self::Zstd { level } => compress_zstd(input, *level, out),
            Self::Noop => {
                out.extend_from_slice(input);
                Some(())
            }
        };
        result.ok_or_else(|| {
            out.truncate(start);
            CompressError::Failed {
                algorithm: self.class_name(),
            }
        })
    }

    /// Decompresses `input` to the start of `out`, whose length is the limit; returns the number of bytes.
    ///
    /// # Errors
    /// The chunk is damaged or longer than `out`. The content of `out` is then undefined.
    pub fn decompress(&self, input: &[u8], out: &mut [u8]) -> Result<usize, CompressError> {
        let len_max = out.len();
        let result = match self {
            Self::Lz4 => decompress_lz4(input, out),
            Self::Snappy => decompress_snappy(input, out),
            Self::Deflate => decompress_deflate(input, out),
            Self::Zstd { .. } => decompress_zstd(input, out),
            Self::Noop => match out.get_mut(..input.len()) {
                None => Err(Refusal::TooLong),
                Some(out) => {
                    out.copy_from_slice(input);
                    Ok(input.len())
                }
            },
        };
        let algorithm = self.class_name();
        result.map_err(|refusal| match refusal {
            Refusal::TooLong => CompressError::TooLong { algorithm, len_max },
            Refusal::Corrupt(reason) => CompressError::Corrupt { algorithm, reason },
        })
    }
}

fn zstd_level(value: Option<&str>) -> Result<i32, CompressError> {
    let Some(text) = value else {
        return Ok(ZSTD_LEVEL_DEFAULT);
    };
    text.parse()
        .ok()
        .filter(|level| (-(1 << 17)..=22).contains(level))
        .ok_or_else(|| CompressError::InvalidOption {
            option: "compression_level",
            value: text.to_owned(),
        })
}

/// Why a decompressor failed; the caller adds the algorithm.
enum Refusal {
    Corrupt(&'static str),
    TooLong,
}

/// Decompresses a raw LZ4 block that must fill all of `out`.
fn fill_from_lz4_block(input: &[u8], out: &mut [u8]) -> Result<(), &'static str> {
    if out.is_empty() {
        // Writers emit one zero token; older writers emit no bytes.
        return if matches!(input, [] | [0]) {
            Ok(())
        } else {
            Err("bytes in an empty block")
        };
    }
    match lz4_flex::block::decompress_into(input, out) {
        Ok(written) if written == out.len() => Ok(()),
        Ok(_) => Err("block is shorter than its length says"),
        Err(_) => Err("not an LZ4 block of this length"),
    }
}

fn compress_lz4(input: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let len = u32::try_from(input.len()).ok()?;
    out.extend_from_slice(&len.to_le_bytes());
    let start = out.len();
    out.resize(start + lz4_flex::block::get_maximum_output_size(input.len()), 0);
    let compressed = lz4_flex::block::compress_into(input, &mut out[start..]).ok()?;
    out.truncate(start + compressed);
    Some(())
}

fn decompress_lz4(input: &[u8], out: &mut [u8]) -> Result<usize, Refusal> {
    let Some((prefix, block)) = input.split_first_chunk::<4>() else {
        return Err(Refusal::Corrupt("shorter than its length prefix"));
    };
    let len = u32::from_le_bytes(*prefix) as usize;
    let out = out.get_mut(..len).ok_or(Refusal::TooLong)?;
    fill_from_lz4_block(block, out).map_err(Refusal::Corrupt)?;
    Ok(len)
}

/// Appends a raw Snappy block.
fn compress_snappy(input: &[u8], out: &mut Vec<u8>) -> Option<()> {
    thread_local! {
        static ENCODER: RefCell<snap::raw::Encoder> = RefCell::new(snap::raw::Encoder::new());
    }
    let start = out.len();
    out.resize(start + snap::raw::max_compress_len(input.len()), 0);
    let len = ENCODER
        .with_borrow_mut(|encoder| encoder.compress(input, &mut out[start..]))
        .ok()?;
    out.truncate(start + len);
    Some(())
}

fn decompress_snappy(input: &[u8], out: &mut [u8]) -> Result<usize, Refusal> {
    let len = snap::raw::decompress_len(input).map_err(|_| Refusal::Corrupt("bad length"))?;
    let out = out.get_mut(..len).ok_or(Refusal::TooLong)?;
    match snap::raw::Decoder::new().decompress(input, out) {
        Ok(written) if written == len => Ok(len),
        _ => Err(Refusal::Corrupt("not a Snappy block")),
    }
}

fn compress_deflate(input: &[u8], out: &mut Vec<u8>) -> Option<()> {
    thread_local! {
        static DEFLATER: RefCell<Compress> = RefCell::new(Compress::new(Compression::default(), true));
    }
    // A generous upper bound for one call of zlib.
    out.reserve(input.len() + input.len() / 8 + 64);
    DEFLATER.with_borrow_mut(|deflater| {
        deflater.reset();
        loop {
            let consumed = usize::try_from(deflater.total_in()).ok()?;
            match deflater.compress_vec(input.get(consumed..)?, out, FlushCompress::Finish) {
                Ok(Status::StreamEnd) => return Some(()),
                Ok(_) => out.reserve(4096),
                Err(_) => return None,
            }
        }
    })
}

fn decompress_deflate(input: &[u8], out: &mut [u8]) -> Result<usize, Refusal> {
    thread_local! {
        static INFLATER: RefCell<Decompress> = RefCell::new(Decompress::new(true));
    }
    if input.is_empty() {
        // Compat: the empty chunk at the end of a compaction's output is stored as zero bytes.
        return Ok(0);
    }
    INFLATER.with_borrow_mut(|inflater| {
        inflater.reset(true);
        let inflate = |inflater: &mut Decompress, out: &mut [u8]| {
            let consumed = usize::try_from(inflater.total_in()).unwrap_or(usize::MAX);
            let rest = input.get(consumed..).unwrap_or_default();
            inflater.decompress(rest, out, FlushDecompress::Finish)
        };
        let mut status = inflate(inflater, out);
        let written = usize::try_from(inflater.total_out()).unwrap_or(usize::MAX);
        if written == out.len() && !matches!(status, Ok(Status::StreamEnd)) {
            // `out` is full: the stream must end here, or it is too long.
            let mut beyond = [0];
            status = inflate(inflater, &mut beyond);
            if inflater.total_out() > written as u64 {
                return Err(Refusal::TooLong);
            }
        }
        match status {
            Ok(Status::StreamEnd) => Ok(written),
            _ => Err(Refusal::Corrupt("not a complete zlib stream")),
        }
    })
}

fn compress_zstd(input: &[u8], level: i32, out: &mut Vec<u8>) -> Option<()> {
    thread_local! {
        static COMPRESSOR: RefCell<Option<(i32, bulk::Compressor<'static>)>> = const { RefCell::new(None) };
    }
    let start = out.len();
    out.resize(start + zstd_safe::compress_bound(input.len()), 0);
    let len = COMPRESSOR.with_borrow_mut(|slot| {
        if slot.as_ref().is_none_or(|(kept, _)| *kept != level) {
            let mut compressor = bulk::Compressor::new(level).ok()?;
            compressor.set_parameter(CParameter::ChecksumFlag(true)).ok()?;
            *slot = Some((level, compressor));
        }
        let (_, compressor) = slot.as_mut()?;
        compressor.compress_to_buffer(input, &mut out[start..]).ok()
    })?;
    out.truncate(start + len);
    Some(())
}

fn decompress_zstd(input: &[u8], out: &mut [u8]) -> Result<usize, Refusal> {
    thread_local! {
        static DECOMPRESSOR: RefCell<Option<bulk::Decompressor<'static>>> = const { RefCell::new(None) };
    }
    let announced =
        zstd_safe::get_frame_content_size(input).map_err(|_| Refusal::Corrupt("not a zstd frame"))?;
    let out = match announced.map(usize::try_from) {
        None => out,
        Some(announced) => announced
            .ok()
            .and_then(|len| out.get_mut(..len))
            .ok_or(Refusal::TooLong)?,
    };
    let written = DECOMPRESSOR.with_borrow_mut(|slot| {
        if slot.is_none() {
            *slot = bulk::Decompressor::new().ok();
        }
        slot.as_mut()?.decompress_to_buffer(input, out).ok()
    });
    match written {
        Some(len) if announced.is_none_or(|announced| announced == len as u64) => Ok(len),
        _ => Err(Refusal::Corrupt("not a complete zstd frame")),
    }
}

#[cfg(test)]
mod tests;
