//! [`Manifest`]: the content of a backup, as JSON in an envelope with a checksum.
//!
//! ```text
//! NAME.json := {"sha256": "<of the text of manifest>", "manifest": {"format": 1, ...}}
//! file      := {"path", "bytes", "modified", "chunks": ["<sha256>", ...]}
//! ```
//! A file is its chunks one after another; each but the last has `chunk_bytes`. Names that become paths, and sizes, are checked here before
//! they are used.

use std::fmt;

use bytes::Bytes;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::{Error, Result};

/// The version of this layout; a reader refuses a later one.
pub(crate) const FORMAT: u32 = 1;
/// Bytes of a chunk.
pub(crate) const CHUNK_BYTES: u32 = 16 << 20;
/// The largest chunk that a manifest may ask for.
const CHUNK_BYTES_MAX: u32 = 256 << 20;
/// The largest manifest: chunks of some 50 TiB.
pub(crate) const MANIFEST_BYTES_MAX: u64 = 256 << 20;

/// SHA-256 of a chunk, which is its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash([u8; 32]);

impl Hash {
    /// The hash of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The key of its object.
    pub fn key(&self) -> String {
        let text = self.to_string();
        format!("objects/{}/{text}", &text[..2])
    }

    /// The hash of an object by its key.
    pub(crate) fn of_key(key: &str) -> Option<Self> {
        let hash = Self::parse(key.rsplit('/').next()?)?;
        (hash.key() == key).then_some(hash)
    }

    fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |digit: u8| match digit {
                b'0'..=b'9' => Some(digit - b'0'),
                b'a'..=b'f' => Some(digit - b'a' + 10),
                _ => None,
            };
            *byte = (digit(pair[0])? << 4) | digit(pair[1])?;
        }
        Some(Self(hash))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("expected a SHA-256 in hexadecimal"))
    }
}

/// The content of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the layout.
    pub format: u32,
    /// Name of the backup.
    pub name: String,
    /// Version of Ilion that made it.
    pub program: String,
    /// Name of the cluster.
    pub cluster: String,
    /// Id of the node and of its log.
    pub node: Uuid,
    /// Class of the partitioner.
    pub partitioner: String,
    /// The moment, for people.
    pub at: String,
    /// The moment, microseconds since 1970.
    pub at_micros: i64,
    /// Bytes of each chunk but the last of a file.
    pub chunk_bytes: u32,
    /// The keyspaces.
    pub keyspaces: Vec<KeyspaceEntry>,
    /// The tables.
    pub tables: Vec<TableEntry>,
    /// The stretch of the commit log.
    pub log: LogEntry,
}

/// A keyspace of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyspaceEntry {
    /// Its name.
    pub name: String,
    /// The statement that creates it.
    pub statement: String,
}

/// A table of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableEntry {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: Uuid,
    /// The statements that create it, with its types and indexes.
    pub statements: String,
    /// The components of its SSTables; those of an index in a hidden table below a directory `.<index>`.
    pub files: Vec<FileEntry>,
}

/// The stretch of the commit log that makes the snapshots of a backup one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// The first segment.
    pub from: u64,
    /// The segment behind the last one.
    pub to: u64,
    /// All writes that were acknowledged before this time, microseconds since 1970, are in the backup.
    pub covered_micros: i64,
    /// The segments, oldest first.
    pub segments: Vec<FileEntry>,
    /// What a replay of them leaves out, as in `ilion.purged`; empty in backups of older versions.
    #[serde(default)]
    pub purged: String,
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its name, perhaps with one directory.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// When it was last written, seconds since 1970.
    pub modified: i64,
    /// Its chunks.
    pub chunks: Vec<Hash>,
}

impl FileEntry {
    /// The bytes of a chunk.
    pub(crate) fn chunk_len(&self, index: usize, chunk_bytes: u32) -> u64 {
        let before = (index as u64).saturating_mul(u64::from(chunk_bytes));
        self.bytes.saturating_sub(before).min(u64::from(chunk_bytes))
    }
}

/// How many chunks a file of this size has.
pub(crate) fn chunk_count(bytes: u64, chunk_bytes: u32) -> u64 {
    bytes.div_ceil(u64::from(chunk_bytes))
}

impl TableEntry {
    /// The name of its directory, below that of its keyspace.
    pub(crate) fn directory_name(&self) -> String {
        format!("{}-{}", self.name, self.id.simple())
    }

    /// Bytes of its files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

impl Manifest {
    /// All files: of tables, and of the log.
    pub fn files(&self) -> impl Iterator<Item = &FileEntry> {
        let of_tables = self.tables.iter().flat_map(|table| &table.files);
        of_tables.chain(&self.log.segments)
    }

    /// All chunks, with their sizes; a chunk of several files comes once for each.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (Hash, u64)> + '_ {
        self.files().flat_map(|file| {
            let chunks = file.chunks.iter().enumerate();
            chunks.map(|(index, hash)| (*hash, file.chunk_len(index, self.chunk_bytes)))
        })
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files().map(|file| file.bytes).sum()
    }

    pub(crate) fn encode(&self) -> Result<Bytes> {
        seal(self)
    }

    /// Decodes a manifest, and checks that it can be used.
    pub(crate) fn decode(key: &str, bytes: &[u8]) -> Result<Self> {
        let manifest: Self = unseal(key, bytes)?;
        match manifest.problem() {
            None => Ok(manifest),
            Some(problem) => Err(Error::damaged(key, problem)),
        }
    }

    fn problem(&self) -> Option<String> {
        if !(1..=CHUNK_BYTES_MAX).contains(&self.chunk_bytes) {
            return Some(format!("has chunks of {} bytes", self.chunk_bytes));
        }
        for table in &self.tables {
            if !is_plain(&table.keyspace) || !is_plain(&table.name) {
                return Some(format!("has a table {}.{}", table.keyspace, table.name));
            }
        }
        let problem = |file: &FileEntry| file_problem(file, self.chunk_bytes);
        self.files().find_map(problem)
    }
}

/// Why a file entry cannot be used; `None` if it can.
pub(crate) fn file_problem(file: &FileEntry, chunk_bytes: u32) -> Option<String> {
    let (directory, name) = file.path.split_once('/').unwrap_or(("", &file.path));
    let is_in_hidden = directory.is_empty() || directory.strip_prefix('.').is_some_and(is_plain);
    if !is_in_hidden || name.starts_with('.') || !name.chars().all(is_of_file_name) || name.is_empty() {
        return Some(format!("has a file {:?}", file.path));
    }
    if file.chunks.len() as u64 != chunk_count(file.bytes, chunk_bytes) {
        return Some(format!(
            "has another number of chunks for {} than for its size",
            file.path
        ));
    }
    None
}

/// True if the text can be the name of a keyspace, a table or an index, so that it is safe as a part of a path.
fn is_plain(name: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(is_name)
}

fn is_of_file_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "+-_.".contains(c)
}

#[derive(Serialize, Deserialize)]
struct Sealed {
    sha256: Hash,
    manifest: Box<RawValue>,
}

#[derive(Deserialize)]
struct OnlyFormat {
    format: u32,
}

/// The bytes of an object of JSON, with their checksum.
pub(crate) fn seal<T: Serialize>(value: &T) -> Result<Bytes> {
    let impossible =
        |error: serde_json::Error| Error::Refused(format!("the manifest cannot be written: {error}"));
    let manifest = serde_json::value::to_raw_value(value).map_err(impossible)?;
    let sealed = Sealed {
        sha256: Hash::of(manifest.get().as_bytes()),
        manifest,
    };
    Ok(serde_json::to_vec(&sealed).map_err(impossible)?.into())
}

/// Decodes what [`seal`] made. `T` has a field `format`.
pub(crate) fn unseal<T: for<'de> Deserialize<'de>>(key: &str, bytes: &[u8]) -> Result<T> {
    let sealed: Sealed = serde_json::from_slice(bytes)
        .map_err(|error| Error::damaged(key, format!("is no manifest: {error}")))?;
    let text = sealed.manifest.get();
    if Hash::of(text.as_bytes()) != sealed.sha256 {
        return Err(Error::damaged(key, "does not have the checksum that is in it"));
    }
    let format: OnlyFormat = serde_json::from_str(text)
        .map_err(|error| Error::damaged(key, format!("is no manifest: {error}")))?;
    if format.format > FORMAT {
        return Err(Error::Refused(format!(
            "{key} has format {}; this Ilion reads up to {FORMAT}, use a newer one",
            format.format
        )));
    }
    serde_json::from_str(text).map_err(|error| Error::damaged(key, format!("is no manifest: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let file = |path: &str, bytes: &[u8]| FileEntry {
            path: path.to_owned(),
            bytes: bytes.len() as u64,
            modified: 7,
            chunks: bytes.chunks(4).map(Hash::of).collect(),
        };
        Manifest {
            format: FORMAT,
            name: "monday".to_owned(),
            program: "1".to_owned(),
            cluster: "c".to_owned(),
            node: Uuid::from_u128(5),
            partitioner: "p".to_owned(),
            at: "t".to_owned(),
            at_micros: 3,
            chunk_bytes: 4,
            keyspaces: Vec::new(),
            tables: vec![TableEntry {
                keyspace: "ks".to_owned(),
                name: "t".to_owned(),
                id: Uuid::from_u128(6),
                statements: "CREATE".to_owned(),
                files: vec![
                    file("nb-1-big-Data.db", b"abcdefghi"),
                    file(".idx/nb-1-big-Index+x.db", b""),
                ],
            }],
            log: LogEntry {
                from: 1,
                to: 2,
                covered_micros: 3,
                segments: vec![file("ilion-1-1.log", b"xy")],
                purged: "log 5".to_owned(),
            },
        }
    }

    #[test]
    fn a_manifest_is_read_back_and_any_damage_is_seen() {
        let manifest = manifest();
        let bytes = manifest.encode().unwrap();
        assert_eq!(Manifest::decode("k", &bytes).unwrap(), manifest);
        for at in 0..bytes.len() {
            let mut damaged = bytes.to_vec();
            damaged[at] ^= 1;
            // Blanks and the order of names do not matter; nothing else may change.
            if let Ok(read) = Manifest::decode("k", &damaged) {
                assert_eq!(read, manifest, "byte {at}");
            }
            assert!(Manifest::decode("k", &bytes[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn names_that_are_paths_and_sizes_that_do_not_fit_are_refused() {
        let refused = |change: &dyn Fn(&mut Manifest)| {
            let mut manifest = manifest();
            change(&mut manifest);
            Manifest::decode("k", &manifest.encode().unwrap())
                .unwrap_err()
                .to_string()
        };
        for path in [
            "../x",
            "/etc/x",
            "a/b",
            ".idx/../x",
            ".x/y/z",
            "",
            ".idx/",
            "..",
            "a\\b",
        ] {
            let error = refused(&|manifest| manifest.tables[0].files[0].path = path.to_owned());
            assert_eq!(error, format!("k at the destination has a file {path:?}"));
        }
        let error = refused(&|manifest| manifest.tables[0].keyspace = "..".to_owned());
        assert!(error.contains("has a table ...t"), "{error}");
        let error = refused(&|manifest| manifest.tables[0].files[0].bytes = u64::MAX);
        assert!(error.contains("another number of chunks"), "{error}");
        let error = refused(&|manifest| manifest.chunk_bytes = u32::MAX);
        assert!(error.contains("has chunks of"), "{error}");
        let error = refused(&|manifest| manifest.format = FORMAT + 1);
        assert!(error.contains("use a newer one"), "{error}");
    }

    #[test]
    fn a_hash_is_found_by_its_key_only() {
        let hash = Hash::of(b"abc");
        assert_eq!(
            hash.key(),
            "objects/ba/ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(Hash::of_key(&hash.key()), Some(hash));
        for other in [
            hash.key().to_uppercase(),
            hash.key().replace("/ba/", "/bb/"),
            hash.key() + "0",
        ] {
            assert_eq!(Hash::of_key(&other), None, "{other}");
        }
    }
}
