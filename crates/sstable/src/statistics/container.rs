//! Statistics.db: the file with its components.

use std::path::Path;

use ilion_codec::{Error as Malformed, Reader, Writer, crc32, crc32_extend};
use ilion_env::Env;

use super::{Cardinality, SerializationHeader, StatsMetadata, Validation};
use crate::{Component, Descriptor, Error, Result, Version, read_component};

const VALIDATION: u32 = 0;
const COMPACTION: u32 = 1;
const STATS: u32 = 2;
const HEADER: u32 = 3;
/// Files with more components are refused; no version has as many.
const COMPONENTS_MAX: u32 = 16;

/// The content of Statistics.db.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// Facts on which a node and the file must agree.
    pub validation: Option<Validation>,
    /// An estimate of the number of different partition keys.
    pub cardinality: Option<Cardinality>,
    /// Statistics of the contents.
    pub stats: StatsMetadata,
    /// Facts that a reader needs to decode rows.
    pub header: SerializationHeader,
}

impl Statistics {
    /// The bytes of the component.
    pub fn encode(&self, version: Version) -> Vec<u8> {
        let mut components: Vec<(u32, Writer)> = Vec::with_capacity(4);
        let mut component = |kind: u32, encode: &dyn Fn(&mut Writer)| {
            let mut out = Writer::new();
            encode(&mut out);
            components.push((kind, out));
        };
        if let Some(validation) = &self.validation {
            component(VALIDATION, &|out| validation.encode(out));
        }
        if let Some(cardinality) = &self.cardinality {
            component(COMPACTION, &|out| cardinality.encode(out));
        }
        let types = &self.header.clustering_types;
        component(STATS, &|out| self.stats.encode(version, types, out));
        component(HEADER, &|out| self.header.encode(out));
        assemble(version, &components)
    }

    /// Decodes the parts of a damaged component that are needed to read rows: the header, and the partitioner if it is legible.
    ///
    /// # Errors
    /// Corrupt, with the offset in `file`.
    pub fn salvage(
        bytes: &[u8],
        version: Version,
        file: &Path,
    ) -> Result<(SerializationHeader, Option<Validation>)> {
        let toc = read_toc(bytes, version).map_err(|error| Error::in_file(file, 0, &error))?;
        let component = |kind: u32| component_of(&toc, kind, bytes, version, file);
        let Some((base, header)) = component(HEADER)? else {
            return Err(Error::corrupt(file, 0, "a HEADER component"));
        };
        let header = SerializationHeader::decode(&mut Reader::new(header))
            .map_err(|error| Error::in_file(file, base, &error))?;
        let validation = component(VALIDATION).ok().flatten();
        let validation = validation.and_then(|(_, bytes)| Validation::decode(&mut Reader::new(bytes)).ok());
        Ok((header, validation))
    }

    /// Reads and decodes the component of an SSTable; `None` if the file does not exist.
    ///
    /// # Errors
    /// The file cannot be read, or is corrupt.
    pub fn read(env: &dyn Env, descriptor: &Descriptor) -> Result<Option<Self>> {
        let bytes = read_component(env, descriptor, &Component::Statistics)?;
        let decode = |bytes: Vec<u8>| {
            let path = descriptor.path(&Component::Statistics);
            Self::decode(&bytes, descriptor.version, &path)
        };
        bytes.map(decode).transpose()
    }

    /// Decodes the component, and checks it if the version has checksums.
    ///
    /// # Errors
    /// Corrupt, with the offset in `file`; also if STATS or HEADER is missing.
    pub fn decode(bytes: &[u8], version: Version, file: &Path) -> Result<Self> {
        let toc = read_toc(bytes, version).map_err(|error| Error::in_file(file, 0, &error))?;
        let component = |kind: u32| component_of(&toc, kind, bytes, version, file);
        let missing = |name: &str| Error::corrupt(file, 0, format!("a {name} component"));
        let (base, header) = component(HEADER)?.ok_or_else(|| missing("HEADER"))?;
        let header = SerializationHeader::decode(&mut Reader::new(header))
            .map_err(|error| Error::in_file(file, base, &error))?;
        let (base, stats) = component(STATS)?.ok_or_else(|| missing("STATS"))?;
        let stats = StatsMetadata::decode(version, &header.clustering_types, &mut Reader::new(stats))
            .map_err(|error| Error::in_file(file, base, &error))?;
        let validation = component(VALIDATION)?
            .map(|(base, bytes)| {
                let decoded = Validation::decode(&mut Reader::new(bytes));
                decoded.map_err(|error| Error::in_file(file, base, &error))
            })
            .transpose()?;
        // A missing or damaged estimate is no error: Cassandra also reads files without it.
        let cardinality = component(COMPACTION)?
            .and_then(|(_, bytes)| Cardinality::decode(&mut Reader::new(bytes)).ok()?);
        Ok(Self {
            validation,
            cardinality,
            stats,
            header,
        })
    }
}

fn assemble(version: Version, components: &[(u32, Writer)]) -> Vec<u8> {
    let crc_bytes = if version.is_na_or_later() { 4 } else { 0 };
    let mut out = Writer::new();
    out.u32(length(components.len()));
    let count_crc = crc32(out.as_slice());
    let mut toc = Writer::new();
    let mut offset = 4 + crc_bytes + 8 * components.len() + crc_bytes;
    for (kind, component) in components {
        toc.u32(*kind);
        toc.u32(length(offset));
        offset += component.len() + crc_bytes;
    }
    if version.is_na_or_later() {
        out.u32(count_crc);
    }
    out.bytes(toc.as_slice());
    if version.is_na_or_later() {
        out.u32(crc32_extend(count_crc, toc.as_slice()));
    }
    for (_, component) in components {
        out.bytes(component.as_slice());
        if version.is_na_or_later() {
            out.u32(crc32(component.as_slice()));
        }
    }
    out.into_vec()
}

/// Converts a length; saturates: the statistics of a table with clusterings of 64 KiB stay below a few MiB.
fn length(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Types with the start and end of their components, including the CRC.
type Toc = Vec<(u32, u32, u32)>;

fn read_toc(bytes: &[u8], version: Version) -> std::result::Result<Toc, Malformed> {
    let mut input = Reader::new(bytes);
    let refused = input.error("at most 16 components");
    let count = input.u32()?;
    if count > COMPONENTS_MAX {
        return Err(refused);
    }
    let mut crc = crc32(&bytes[..4]);
    if version.is_na_or_later() && input.u32()? != crc {
        return Err(refused_crc(&input));
    }
    let start = input.offset();
    let mut toc: Toc = Vec::with_capacity(count as usize);
    let end = length(bytes.len());
    for _ in 0..count {
        let (kind, offset) = (input.u32()?, input.u32()?);
        if let Some(previous) = toc.last_mut() {
            previous.2 = offset;
        }
        toc.push((kind, offset, end));
    }
    crc = crc32_extend(crc, &bytes[start..input.offset()]);
    if version.is_na_or_later() && input.u32()? != crc {
        return Err(refused_crc(&input));
    }
    Ok(toc)
}

#[cold]
fn refused_crc(input: &Reader<'_>) -> Malformed {
    input.error("the CRC of the bytes before")
}

/// The offset and bytes of a component, after its CRC was checked.
fn component_of<'a>(
    toc: &Toc,
    kind: u32,
    bytes: &'a [u8],
    version: Version,
    file: &Path,
) -> Result<Option<(u64, &'a [u8])>> {
    let Some((_, start, end)) = toc.iter().find(|entry| entry.0 == kind) else {
        return Ok(None);
    };
    let refuse = |expected: &str| Err(Error::corrupt(file, u64::from(*start), expected));
    let Some(mut component) = bytes.get(*start as usize..*end as usize) else {
        return refuse("a component inside the file");
    };
    if version.is_na_or_later() {
        let Some((content, crc)) = component.split_last_chunk::<4>() else {
            return refuse("a component with its CRC");
        };
        if crc32(content) != u32::from_be_bytes(*crc) {
            return refuse("a component with the CRC behind it");
        }
        component = content;
    }
    Ok(Some((u64::from(*start), component)))
}
