//! CRC.db: checksums of an uncompressed Data.db.
//!
//! ```text
//! file := chunk_length:i32  crc:u32 *          one CRC-32 for every chunk_length bytes, the last chunk may be short
//! ```

use std::path::Path;

use ilion_codec::{Reader, Writer};

use crate::compression_info::CHUNK_LENGTH_MAX;
use crate::{Error, Result};

/// The chunk length that Cassandra uses here and for its saved caches.
pub const CRC_CHUNK_LENGTH: u32 = 65_536;
/// The chunk length of Ilion's CRC.db. Compat: Cassandra accepts any length. With short chunks, a read of a small cell reads
/// little, and the CRCs take half the memory of the chunk map of a compressed file.
pub(crate) const DATA_CRC_CHUNK_LENGTH: u32 = 16 << 10;

/// The content of CRC.db.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrcFile {
    /// Number of bytes per CRC.
    pub chunk_length: u32,
    /// CRC-32 of each chunk.
    pub crcs: Vec<u32>,
}

impl CrcFile {
    /// Decodes the component.
    ///
    /// # Errors
    /// Corrupt, with the offset in `file`.
    pub fn decode(bytes: &[u8], file: &Path) -> Result<Self> {
        let mut input = Reader::new(bytes);
        let chunk_length = input.u32().map_err(|error| Error::in_file(file, 0, &error))?;
        if chunk_length == 0 || chunk_length > CHUNK_LENGTH_MAX {
            return Err(Error::corrupt(file, 0, "a chunk length of 1 byte to 64 MiB"));
        }
        let (crcs, rest) = input.rest().as_chunks::<4>();
        if !rest.is_empty() {
            return Err(Error::corrupt(
                file,
                bytes.len() as u64,
                "a whole number of CRCs of four bytes",
            ));
        }
        Ok(Self {
            chunk_length,
            crcs: crcs.iter().map(|crc| u32::from_be_bytes(*crc)).collect(),
        })
    }

    /// The bytes of the component.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::with_capacity(4 + self.crcs.len() * 4);
        out.u32(self.chunk_length);
        for crc in &self.crcs {
            out.u32(*crc);
        }
        out.into_vec()
    }
}
