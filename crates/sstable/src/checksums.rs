//! Checksums.db: CRCs of components that have no checksums of their own.
//!
//! Cassandra's indexes, filters, summaries and chunk maps have no checksums; a flipped bit in one of them can hide a row.
//! `docs/format/checksums.md` describes the file:
//!
//! ```text
//! file := component *  tail                                                       integers are little-endian
//! component := name:bytes16  length:u64  block_crc:u32 *                          one for each 16 KiB; the last may be short
//! tail := component_count:u16  stored_length:u64  fingerprint:u32  version:u8  crc:u32  "ILCHECKS"     crc: of all before it
//! ```
//!
//! Indexes are checked block by block, when a block is read from the file. Components that are read whole are checked then.

use std::path::Path;

use ilion_codec::{crc32, crc32_extend};
use ilion_env::Env;

use crate::component_file::read_component;
use crate::crc_file::CrcFile;
use crate::tokens::fingerprint_of;
use crate::{Component, Descriptor, Error, Result, StatsMetadata};

const MAGIC: &[u8; 8] = b"ILCHECKS";
const VERSION: u8 = 1;
const TAIL_LEN: usize = 27;
/// Number of bytes that one CRC covers; also the unit of reads of an index.
pub(crate) const BLOCK_BYTES: u32 = 16 << 10;
const READ_BYTES: usize = 256 << 10;

/// The components that Checksums.db covers: their formats have no checksums that each read could compare, and no program rewrites
/// them. Compat: Cassandra replaces Statistics.db (which has checksums) and TOC.txt of existing SSTables.
const COVERED: [Component; 8] = [
    Component::Index,
    Component::Partitions,
    Component::Rows,
    Component::CompressionInfo,
    Component::Crc,
    Component::Digest,
    Component::Filter,
    Component::Summary,
];

/// Length and CRCs of one component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    /// Size of the component.
    pub(crate) length: u64,
    crcs: Vec<u32>,
}

/// Computes the CRCs of a component that is being written or read.
#[derive(Debug, Default)]
pub(crate) struct Summing {
    sums: Sums,
    /// CRC of the bytes of the last block, which is not full yet.
    open_crc: u32,
    open_len: usize,
}

impl Summing {
    /// Adds the next bytes of the component.
    pub(crate) fn add(&mut self, mut bytes: &[u8]) {
        self.sums.length += bytes.len() as u64;
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK_BYTES as usize - self.open_len));
            self.open_crc = crc32_extend(self.open_crc, now);
            self.open_len += now.len();
            if self.open_len == BLOCK_BYTES as usize {
                self.end_block();
            }
            bytes = later;
        }
    }

    fn end_block(&mut self) {
        self.sums.crcs.push(self.open_crc);
        (self.open_crc, self.open_len) = (0, 0);
    }

    pub(crate) fn finish(mut self) -> Sums {
        if self.open_len > 0 {
            self.end_block();
        }
        self.sums
    }
}

impl Sums {
    /// The CRCs of a component with these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut summing = Summing::default();
        summing.add(bytes);
        summing.finish()
    }

    /// These CRCs in the form that a chunk reader needs.
    pub(crate) fn to_crc_file(&self) -> CrcFile {
        CrcFile {
            chunk_length: BLOCK_BYTES,
            crcs: self.crcs.clone(),
        }
    }

    /// Compares these CRCs with the bytes of a component that was read whole.
    pub(crate) fn check(&self, bytes: &[u8], path: &Path) -> Result<()> {
        self.check_length(bytes.len() as u64, path)?;
        self.compare_crcs(bytes.chunks(BLOCK_BYTES as usize).map(crc32), path)
    }

    /// Compares these CRCs, which are expected, with the CRCs `found`.
    pub(crate) fn compare(&self, found: &Self, path: &Path) -> Result<()> {
        self.check_length(found.length, path)?;
        self.compare_crcs(found.crcs.iter().copied(), path)
    }

    fn compare_crcs(&self, found: impl Iterator<Item = u32>, path: &Path) -> Result<()> {
        match found.zip(&self.crcs).position(|(found, crc)| found != *crc) {
            None => Ok(()),
            Some(at) => Err(Error::corrupt(
                path,
                at as u64 * u64::from(BLOCK_BYTES),
                "bytes with the CRC that Checksums.db has of them",
            )),
        }
    }

    pub(crate) fn check_length(&self, length: u64, path: &Path) -> Result<()> {
        if length == self.length {
            return Ok(());
        }
        let expected = format!("a file of {} bytes, as Checksums.db says", self.length);
        Err(Error::corrupt(path, length, expected))
    }
}

/// The content of Checksums.db.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checksums {
    components: Vec<(Component, Sums)>,
}

/// Identifies the SSTable that checksums belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// Size of Data.db on disk.
    pub(crate) stored_length: u64,
    fingerprint: u32,
}

impl Owner {
    pub(crate) fn of(stored_length: u64, stats: &StatsMetadata) -> Self {
        Self {
            stored_length,
            fingerprint: fingerprint_of(stats),
        }
    }
}

impl Checksums {
    /// Reads the existing components and computes their CRCs. `None` if `go_on` returned false.
    ///
    /// # Errors
    /// A component cannot be read.
    pub(crate) fn of_files(
        env: &dyn Env,
        descriptor: &Descriptor,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Self>> {
        let mut checksums = Self::default();
        let mut buffer = vec![0; READ_BYTES];
        for component in COVERED {
            let file = match env.open_read(&descriptor.path(&component)) {
                Err(error) if error.is_not_found() => continue,
                file => file?,
            };
            let (mut summing, mut offset) = (Summing::default(), 0);
            loop {
                let count = file.read_at(offset, &mut buffer)?;
                if count == 0 {
                    break;
                }
                summing.add(&buffer[..count]);
                offset += count as u64;
                if !go_on() {
                    return Ok(None);
                }
            }
            checksums.add(component, summing.finish());
        }
        Ok(Some(checksums))
    }

    /// Adds a component that was written; ignores components that are not covered.
    pub(crate) fn add(&mut self, component: Component, sums: Sums) {
        if COVERED.contains(&component) {
            self.components.push((component, sums));
            self.components.sort_by(|a, b| a.0.cmp(&b.0));
        }
    }

    /// The CRCs of a component; `None` if it is not covered, or did not exist when the CRCs were computed.
    pub(crate) fn of(&self, component: &Component) -> Option<&Sums> {
        let mut all = self.components.iter();
        all.find_map(|(known, sums)| (known == component).then_some(sums))
    }

    /// All components that must exist, with their CRCs.
    pub(crate) fn all(&self) -> &[(Component, Sums)] {
        &self.components
    }

    /// Memory of the CRCs in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let crcs = self.components.iter().map(|(_, sums)| sums.crcs.len() * 4);
        crcs.sum()
    }

    /// Reads the component; `None` if it does not exist.
    ///
    /// # Errors
    /// Corrupt if it is damaged, or belongs to another SSTable of the same name.
    pub(crate) fn read(env: &dyn Env, descriptor: &Descriptor, owner: Owner) -> Result<Option<Self>> {
        let Some(bytes) = read_component(env, descriptor, &Component::Checksums)? else {
            return Ok(None);
        };
        let path = descriptor.path(&Component::Checksums);
        let Some((checksums, found)) = Self::decode(&bytes) else {
            return Err(Error::corrupt(&path, 0, "checksums of version 1, whole"));
        };
        if found != owner {
            let expected = "checksums of this SSTable, not of another one with the same name";
            return Err(Error::corrupt(&path, 0, expected));
        }
        Ok(Some(checksums))
    }

    /// The bytes of the component.
    pub(crate) fn encode(&self, owner: Owner) -> Vec<u8> {
        let mut out = Vec::new();
        for (component, sums) in &self.components {
            let name = component.name().as_bytes();
            out.extend_from_slice(&u16::try_from(name.len()).unwrap_or(u16::MAX).to_le_bytes());
            out.extend_from_slice(name);
            out.extend_from_slice(&sums.length.to_le_bytes());
            for crc in &sums.crcs {
                out.extend_from_slice(&crc.to_le_bytes());
            }
        }
        let count = u16::try_from(self.components.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&count.to_le_bytes());
        out.extend_from_slice(&owner.stored_length.to_le_bytes());
        out.extend_from_slice(&owner.fingerprint.to_le_bytes());
        out.push(VERSION);
        out.extend_from_slice(&crc32(&out).to_le_bytes());
        out.extend_from_slice(MAGIC);
        out
    }

    fn decode(bytes: &[u8]) -> Option<(Self, Owner)> {
        let (components, tail) = bytes.split_at_checked(bytes.len().checked_sub(TAIL_LEN)?)?;
        let (before_crc, end) = bytes.split_at(bytes.len() - 12);
        let is_whole = end.ends_with(MAGIC) && end[..4] == crc32(before_crc).to_le_bytes();
        if !is_whole || tail[14] != VERSION {
            return None;
        }
        let owner = Owner {
            stored_length: u64::from_le_bytes(*tail[2..].first_chunk()?),
            fingerprint: u32::from_le_bytes(*tail[10..].first_chunk()?),
        };
        let (mut checksums, mut rest) = (Self::default(), components);
        for _ in 0..u16::from_le_bytes(*tail.first_chunk()?) {
            let (len, after) = rest.split_first_chunk()?;
            let (name, after) = after.split_at_checked(usize::from(u16::from_le_bytes(*len)))?;
            let (length, after) = after.split_first_chunk()?;
            let length = u64::from_le_bytes(*length);
            let crcs_len = usize::try_from(length.div_ceil(u64::from(BLOCK_BYTES)))
                .ok()?
                .checked_mul(4)?;
            let (crcs, after) = after.split_at_checked(crcs_len)?;
            let crcs = crcs
                .as_chunks()
                .0
                .iter()
                .map(|crc| u32::from_le_bytes(*crc))
                .collect();
            let component = Component::from_name(std::str::from_utf8(name).ok()?);
            checksums.components.push((component, Sums { length, crcs }));
            rest = after;
        }
        rest.is_empty().then_some((checksums, owner))
    }
}

/// Writes Checksums.db for an SSTable of another program, or to replace damaged checksums. The current content of the
/// components counts as correct. Returns false if `go_on` stopped it.
pub(crate) fn make_checksums(
    env: &dyn Env,
    descriptor: &Descriptor,
    owner: Owner,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<bool> {
    let Some(checksums) = Checksums::of_files(env, descriptor, go_on)? else {
        return Ok(false);
    };
    let path = descriptor.path(&Component::Checksums);
    env.write_atomically(&path, &checksums.encode(owner))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> (Checksums, Owner) {
        let mut checksums = Checksums::default();
        checksums.add(Component::Index, Sums::of(&vec![7; 40_000]));
        checksums.add(Component::Rows, Sums::of(&[]));
        checksums.add(Component::Filter, Sums::of(&[1; 16 << 10]));
        checksums.add(Component::Data, Sums::of(&[1]));
        let owner = Owner {
            stored_length: 1 << 40,
            fingerprint: 0xFEDC_BA98,
        };
        (checksums, owner)
    }

    #[test]
    fn what_was_encoded_is_decoded_and_no_byte_of_it_may_be_another() {
        let (checksums, owner) = some();
        assert_eq!(checksums.all().len(), 3, "Data.db has checksums of its own");
        let bytes = checksums.encode(owner);
        assert_eq!(Checksums::decode(&bytes), Some((checksums, owner)));
        for at in 0..bytes.len() {
            assert_eq!(Checksums::decode(&bytes[..at]), None);
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                assert_eq!(Checksums::decode(&damaged), None, "byte {at}");
            }
        }
    }

    #[test]
    fn sums_are_the_same_however_the_bytes_come() {
        let bytes: Vec<u8> = (0..50_000_u32).map(|at| at.to_le_bytes()[0]).collect();
        let mut summing = Summing::default();
        bytes.chunks(777).for_each(|piece| summing.add(piece));
        let sums = summing.finish();
        assert_eq!(sums, Sums::of(&bytes));
        let path = Path::new("nb-1-big-Index.db");
        assert!(sums.check(&bytes, path).is_ok());
        assert!(sums.check(&bytes[1..], path).is_err());
        let mut damaged = bytes;
        damaged[40_000] ^= 1;
        let error = sums.check(&damaged, path).unwrap_err().to_string();
        assert!(error.contains("at byte 32768"), "{error}");
    }
}
