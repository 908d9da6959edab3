//! Writes Data.db in chunks, with CompressionInfo.db or CRC.db, and Digest.crc32.

use std::sync::Arc;

use ilion_codec::{crc32, crc32_extend};
use ilion_env::{Env, WriteFile};

use super::compression::Compression;
use crate::checksums::{Checksums, Sums};
use crate::component_file::write_component;
use crate::compression_info::CompressionInfo;
use crate::crc_file::{CrcFile, DATA_CRC_CHUNK_LENGTH};
use crate::{Component, Descriptor, Error, Result, digest};

/// Stored bytes that are collected before they are written.
const APPEND_BYTES: usize = 256 << 10;

/// Sizes and digest of a written Data.db.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DataFile {
    /// Uncompressed size.
    pub data_length: u64,
    /// Size of Data.db on disk.
    pub stored_length: u64,
    /// Compressed size divided by uncompressed size, without CRCs; -1 if not compressed. Stored in the STATS part of Statistics.db.
    pub compression_ratio: f64,
    /// CRC-32 of Data.db.
    pub digest: u32,
}

/// Data.db is synced whenever this many bytes were written: otherwise the system writes hundreds of megabytes at once, and reads of the
/// disk wait for them. Compat: `trickle_fsync`, 10 MiB by default.
const SYNC_BYTES: u64 = 8 << 20;

/// Writes Data.db. If dropped before [`ChunkWriter::finish`], it leaves files that the transaction removes.
pub struct ChunkWriter {
    env: Arc<dyn Env>,
    descriptor: Descriptor,
    file: Box<dyn WriteFile>,
    compression: Option<Compression>,
    chunk_length: usize,
    /// Bytes of a chunk that is not full yet.
    pending: Vec<u8>,
    /// Stored bytes that are not written to the file yet.
    outgoing: Vec<u8>,
    data_length: u64,
    stored_length: u64,
    payload_length: u64,
    offsets: Vec<u64>,
    crcs: Vec<u32>,
    digest: u32,
}

impl ChunkWriter {
    /// Creates Data.db, compressed if `compression` is set.
    ///
    /// # Errors
    /// A file cannot be created, or exists.
    pub fn create(
        env: Arc<dyn Env>,
        descriptor: Descriptor,
        compression: Option<Compression>,
    ) -> Result<Self> {
        let file = env.create(&descriptor.path(&Component::Data))?;
        let chunk_length = compression
            .as_ref()
            .map_or(DATA_CRC_CHUNK_LENGTH, |compression| compression.chunk_length)
            as usize;
        Ok(Self {
            env,
            descriptor,
            file,
            compression,
            chunk_length,
            pending: Vec::with_capacity(chunk_length),
            outgoing: Vec::with_capacity(APPEND_BYTES + chunk_length + chunk_length / 4),
            data_length: 0,
            stored_length: 0,
            payload_length: 0,
            offsets: Vec::new(),
            crcs: Vec::new(),
            digest: 0,
        })
    }

    /// Number of uncompressed bytes so far: the position of the next byte.
    #[inline]
    pub fn position(&self) -> u64 {
        self.data_length
    }

    /// Number of stored bytes so far, without the chunk that is not full yet.
    pub(crate) fn stored_length(&self) -> u64 {
        self.stored_length
    }

    /// Appends uncompressed bytes.
    ///
    /// # Errors
    /// The file cannot be written; the writer is unusable after that.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.data_length += bytes.len() as u64;
        if !self.pending.is_empty() {
            let missing = (self.chunk_length - self.pending.len()).min(bytes.len());
            let (head, tail) = bytes.split_at(missing);
            self.pending.extend_from_slice(head);
            bytes = tail;
            if self.pending.len() < self.chunk_length {
                return Ok(());
            }
            self.store_pending()?;
        }
        while let Some((chunk, tail)) = bytes.split_at_checked(self.chunk_length) {
            self.store(chunk)?;
            bytes = tail;
        }
        self.pending.extend_from_slice(bytes);
        Ok(())
    }

    fn store_pending(&mut self) -> Result<()> {
        let mut pending = std::mem::take(&mut self.pending);
        let stored = self.store(&pending);
        pending.clear();
        self.pending = pending;
        stored
    }

    fn store(&mut self, chunk: &[u8]) -> Result<()> {
        let at = self.outgoing.len();
        match &self.compression {
            None => {
                self.outgoing.extend_from_slice(chunk);
                self.crcs.push(crc32(chunk));
                self.payload_length += chunk.len() as u64;
            }
            Some(compression) => {
                append_stored(compression, chunk, &mut self.outgoing)?;
                let stored = &self.outgoing[at..];
                self.payload_length += stored.len() as u64;
                self.offsets.push(self.stored_length);
                let crc = crc32(stored);
                self.outgoing.extend_from_slice(&crc.to_be_bytes());
            }
        }
        self.stored_length += (self.outgoing.len() - at) as u64;
        if self.outgoing.len() >= APPEND_BYTES {
            self.append_outgoing()?;
        }
        Ok(())
    }

    fn append_outgoing(&mut self) -> Result<()> {
        self.digest = crc32_extend(self.digest, &self.outgoing);
        let begun = self.file.position() / SYNC_BYTES;
        self.file.append(&self.outgoing)?;
        if self.file.position() / SYNC_BYTES > begun {
            self.file.sync()?;
        }
        self.outgoing.clear();
        Ok(())
    }

    /// Writes the rest, the chunk map and the digest, and syncs all of them. Their names are durable after the directory's
    /// sync.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn finish(self) -> Result<DataFile> {
        self.finish_summed(&mut Checksums::default())
    }

    /// As [`Self::finish`]; also adds the CRCs of the components that have no checksums of their own.
    pub(crate) fn finish_summed(mut self, checksums: &mut Checksums) -> Result<DataFile> {
        if !self.pending.is_empty() {
            self.store_pending()?;
        }
        self.append_outgoing()?;
        self.file.sync()?;
        let (component, bytes) = self.chunk_map();
        write_component(self.env.as_ref(), &self.descriptor, &component, &bytes)?;
        checksums.add(component, Sums::of(&bytes));
        let digest = digest::encode(self.digest);
        write_component(self.env.as_ref(), &self.descriptor, &Component::Digest, &digest)?;
        checksums.add(Component::Digest, Sums::of(&digest));
        Ok(DataFile {
            data_length: self.data_length,
            stored_length: self.stored_length,
            compression_ratio: self.compression_ratio(),
            digest: self.digest,
        })
    }

    /// The components that [`ChunkWriter::finish`] writes.
    pub fn components(&self) -> [Component; 3] {
        let map = match self.compression {
            Some(_) => Component::CompressionInfo,
            None => Component::Crc,
        };
        [Component::Data, map, Component::Digest]
    }

    fn chunk_map(&mut self) -> (Component, Vec<u8>) {
        match &self.compression {
            None => {
                let crcs = CrcFile {
                    chunk_length: DATA_CRC_CHUNK_LENGTH,
                    crcs: std::mem::take(&mut self.crcs),
                };
                (Component::Crc, crcs.encode())
            }
            Some(compression) => {
                let info = CompressionInfo {
                    class: compression.compressor.class_name().to_owned(),
                    options: compression.options.clone(),
                    chunk_length: compression.chunk_length,
                    compressed_length_max: compression.compressed_length_max,
                    data_length: self.data_length,
                    offsets: std::mem::take(&mut self.offsets),
                };
                (Component::CompressionInfo, info.encode(self.descriptor.version))
            }
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a ratio for estimates")]
    fn compression_ratio(&self) -> f64 {
        match self.compression {
            Some(_) if self.data_length > 0 => self.payload_length as f64 / self.data_length as f64,
            _ => -1.0,
        }
    }
}

/// Appends the stored form of a chunk: compressed, or raw if compression saves too little.
fn append_stored(compression: &Compression, chunk: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let at = out.len();
    compression
        .compressor
        .compress(chunk, out)
        .map_err(|error| Error::Refused(error.to_string()))?;
    let stored_min = compression.compressed_length_max as usize;
    if out.len() - at >= stored_min {
        out.truncate(at);
        out.extend_from_slice(chunk);
        // Padded with zeros: a shorter chunk would count as compressed.
        if chunk.len() < stored_min {
            out.resize(at + stored_min, 0);
        }
    }
    Ok(())
}

impl std::fmt::Debug for ChunkWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChunkWriter")
            .field("descriptor", &self.descriptor)
            .finish()
    }
}
