//! CompressionInfo.db: the compression of Data.db, and the offsets of its chunks.
//!
//! ```text
//! file := class:utf  option_count:i32  (key:utf value:utf)*
//!         chunk_length:i32  [max_compressed_length:i32]  data_length:i64        (max_compressed_length since na)
//!         chunk_count:i32  offset:i64 *
//! ```
//!
//! Offsets are those of the stored chunks in Data.db. There may be one chunk more than the data needs, an empty one, so the
//! number of chunks is never computed from the length. Not here: the bytes of a stored chunk (`chunks`).

use std::path::Path;

use ilion_codec::{Compressor, Error as Malformed, Reader, Writer};
use ilion_env::Env;

use crate::{Component, Descriptor, Error, Result, Version};

/// Longer chunks are refused: Cassandra's tables use 4 KiB to 1 MiB, and a chunk is decompressed whole.
pub(crate) const CHUNK_LENGTH_MAX: u32 = ilion_schema::CHUNK_LENGTH_KIB_MAX << 10;

/// Bytes that are read for the compressor and its options, which are at the start of the file; nearly always enough.
const HEAD_BYTES: usize = 1 << 10;

/// The content of CompressionInfo.db.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompressionInfo {
    /// Simple class name of the compressor.
    pub class: String,
    /// Options of the compressor itself, in the order of the file.
    pub options: Vec<(String, String)>,
    /// Uncompressed length of every chunk except the last.
    pub chunk_length: u32,
    /// Chunks stored with this many bytes or more are not compressed.
    pub compressed_length_max: u32,
    /// Uncompressed size of Data.db.
    pub data_length: u64,
    /// Offset of each chunk in Data.db.
    pub offsets: Vec<u64>,
}

/// `max_compressed_length` of files whose chunks are all compressed.
pub const NEVER_RAW: u32 = i32::MAX as u32;

impl CompressionInfo {
    /// Decodes the component, and checks that all positions of the data have a chunk.
    ///
    /// # Errors
    /// Corrupt, with the offset in `file`.
    pub fn decode(bytes: &[u8], version: Version, file: &Path) -> Result<Self> {
        let mut input = Reader::new(bytes);
        let parsed = Self::read(&mut input, version);
        let info = parsed.map_err(|error| Error::in_file(file, 0, &error))?;
        if !input.is_empty() {
            return Err(Error::in_file(file, 0, &input.error("the end of the file")));
        }
        let refuse = |expected: &str| Err(Error::corrupt(file, 0, expected));
        if info.chunk_length > CHUNK_LENGTH_MAX {
            return refuse("chunks of at most 64 MiB");
        }
        let chunks_needed = info.data_length.div_ceil(u64::from(info.chunk_length));
        if (info.offsets.len() as u64) < chunks_needed {
            return refuse("an offset for every chunk of the data");
        }
        // Consecutive offsets differ by at least the four bytes of the CRC.
        if info.offsets.first().is_some_and(|first| *first != 0)
            || info
                .offsets
                .windows(2)
                .any(|pair| pair[1] < pair[0].saturating_add(4))
        {
            return refuse("ascending chunk offsets from 0");
        }
        Ok(info)
    }

    fn read(input: &mut Reader<'_>, version: Version) -> std::result::Result<Self, Malformed> {
        let (class, options) = read_compressor(input)?;
        let chunk_length = positive(input, "a chunk length above 0")?;
        let compressed_length_max = if version.is_na_or_later() {
            positive(input, "a maximum compressed length above 0")?
        } else {
            NEVER_RAW
        };
        let refused = input.error("a data length >= 0");
        let data_length = u64::try_from(input.i64()?).map_err(|_| refused)?;
        let chunk_count = length(input, "a number of chunks")?;
        if input.remaining() / 8 < chunk_count {
            return Err(input.error("an offset for every chunk"));
        }
        let mut offsets = Vec::with_capacity(chunk_count);
        for _ in 0..chunk_count {
            offsets.push(input.u64()?);
        }
        Ok(Self {
            class,
            options,
            chunk_length,
            compressed_length_max,
            data_length,
            offsets,
        })
    }

    /// The bytes of the component.
    pub fn encode(&self, version: Version) -> Vec<u8> {
        let mut out = Writer::with_capacity(64 + self.offsets.len() * 8);
        out.string16(&self.class);
        out.i32(count_i32(self.options.len()));
        for (key, value) in &self.options {
            out.string16(key);
            out.string16(value);
        }
        out.u32(self.chunk_length);
        if version.is_na_or_later() {
            out.u32(self.compressed_length_max);
        }
        out.u64(self.data_length);
        out.i32(count_i32(self.offsets.len()));
        for offset in &self.offsets {
            out.u64(*offset);
        }
        out.into_vec()
    }

    /// The compressor; `file` is for errors.
    ///
    /// # Errors
    /// Refused: an unknown class, or an unknown value of an option.
    pub fn compressor(&self, file: &Path) -> Result<Compressor> {
        compressor_of(&self.class, &self.options, file)
    }
}

/// Checks that the compressor of an SSTable is known. Returns false if the SSTable has no CompressionInfo.db. Reads only the start of
/// the file: its length grows with the data.
///
/// # Errors
/// Refused: the compressor is unknown. Corrupt: the file names none.
pub(crate) fn check_compressor(env: &dyn Env, descriptor: &Descriptor) -> Result<bool> {
    let path = descriptor.path(&Component::CompressionInfo);
    let file = match env.open_read(&path) {
        Err(error) if error.is_not_found() => return Ok(false),
        opened => opened?,
    };
    let size = usize::try_from(file.size_bytes()).unwrap_or(usize::MAX);
    let mut bytes = vec![0; size.min(HEAD_BYTES)];
    file.read_exact_at(0, &mut bytes)?;
    if read_compressor(&mut Reader::new(&bytes)).is_err() && size > HEAD_BYTES {
        bytes = env.read_all(&path, u64::MAX)?;
    }
    let read = read_compressor(&mut Reader::new(&bytes));
    let (class, options) = read.map_err(|error| Error::in_file(&path, 0, &error))?;
    compressor_of(&class, &options, &path).map(|_| true)
}

type NamedCompressor = (String, Vec<(String, String)>);

fn read_compressor(input: &mut Reader<'_>) -> std::result::Result<NamedCompressor, Malformed> {
    let class = input.string16()?.to_owned();
    let option_count = length(input, "a number of options")?;
    let mut options = Vec::with_capacity(input.capacity_for(option_count, size_of::<(String, String)>()));
    for _ in 0..option_count {
        options.push((input.string16()?.to_owned(), input.string16()?.to_owned()));
    }
    Ok((class, options))
}

fn compressor_of(class: &str, options: &[(String, String)], file: &Path) -> Result<Compressor> {
    let option = |name: &str| {
        let found = options.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    };
    Compressor::from_class(class, option)
        .map_err(|error| Error::Refused(format!("{}: {error}", file.display())))
}

fn length(input: &mut Reader<'_>, expected: &'static str) -> std::result::Result<usize, Malformed> {
    let refused = input.error(expected);
    usize::try_from(input.i32()?).map_err(|_| refused)
}

fn positive(input: &mut Reader<'_>, expected: &'static str) -> std::result::Result<u32, Malformed> {
    let refused = input.error(expected);
    let value = u32::try_from(input.i32()?).ok();
    value.filter(|value| *value > 0).ok_or(refused)
}

/// Converts a count; saturates: a file with 2^31 chunks of at least 4 KiB would have 8 TiB, which the writer refuses first.
fn count_i32(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
