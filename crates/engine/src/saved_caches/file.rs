//! The files of a saved cache, in the format of Cassandra 5.0.
//!
//! ```text
//! <Cache>-g.db       := schema_version:uuid entry*                 see `schema_digest`, `entries`, `keys`
//! <Cache>-g.crc      := chunk_length:i32 crc:u32*                  as CRC.db of an SSTable
//! <Cache>-g.metadata := tables:uvint (table:uuid index:string16)*  index is empty for a table
//!                       for the key cache, more behind it: see `keys`
//! ```
//!
//! Other versions than `g` are ignored. Entries up to the first damaged chunk are used. Compat: Cassandra ignores a file
//! that was saved with another schema; here each entry is checked by itself, so the file is used.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use ilion_codec::{Reader, Writer, crc32};
use ilion_env::Env;
use ilion_schema::TableId;
use ilion_sstable::crc_file::{CRC_CHUNK_LENGTH, CrcFile};
use uuid::Uuid;

/// Maximum size of a file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 30;
const TABLES_MAX: usize = 1 << 16;
const VERSION_BYTES: usize = 16;

/// A table, or the hidden table of one of its indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SavedTable {
    pub(super) id: TableId,
    /// Name of the index; empty for the table itself.
    pub(super) index: String,
}

/// Tables in the order of their first use.
#[derive(Default)]
pub(super) struct Tables(Vec<SavedTable>);

impl Tables {
    /// The number of a table.
    pub(super) fn ordinal(&mut self, table: TableId, index: &str) -> u64 {
        let is_it = |known: &SavedTable| known.id == table && known.index == index;
        let ordinal = self.0.iter().position(is_it).unwrap_or_else(|| {
            self.0.push(SavedTable {
                id: table,
                index: index.to_owned(),
            });
            self.0.len() - 1
        });
        ordinal as u64
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        out.uvint(self.0.len() as u64);
        for table in &self.0 {
            out.bytes(table.id.0.as_bytes());
            out.string16(&table.index);
        }
    }

    pub(super) fn decode(input: &mut Reader<'_>) -> Option<Vec<SavedTable>> {
        let count = input.uvint_len().ok().filter(|count| *count <= TABLES_MAX)?;
        let mut tables = Vec::with_capacity(input.capacity_for(count, 18));
        for _ in 0..count {
            let id = TableId(Uuid::from_bytes(input.uuid_bytes().ok()?));
            let index = input.string16().ok()?.to_owned();
            tables.push(SavedTable { id, index });
        }
        Some(tables)
    }
}

/// The three files of a cache.
pub(super) struct Files<'e> {
    env: &'e dyn Env,
    entries: PathBuf,
    crc: PathBuf,
    metadata: PathBuf,
}

/// The contents of these files.
pub(super) struct Contents {
    pub(super) metadata: Vec<u8>,
    /// Entries before the first damaged chunk.
    pub(super) entries: Bytes,
    /// Why entries are missing; `None` if these are all.
    pub(super) complaint: Option<String>,
}

impl<'e> Files<'e> {
    pub(super) fn of(env: &'e dyn Env, directory: &Path, cache: &str) -> Self {
        let file = |end: &str| directory.join(format!("{cache}-g.{end}"));
        Self {
            env,
            entries: file("db"),
            crc: file("crc"),
            metadata: file("metadata"),
        }
    }

    pub(super) fn remove(&self) -> ilion_env::Result<()> {
        for file in [&self.entries, &self.crc, &self.metadata] {
            self.env.remove_file_if_any(file)?;
        }
        Ok(())
    }

    /// Writes the three files.
    pub(super) fn write(
        &self,
        schema_version: Uuid,
        metadata: &Writer,
        entries: &Writer,
    ) -> ilion_env::Result<()> {
        let entries = [schema_version.as_bytes(), entries.as_slice()].concat();
        let crcs = CrcFile {
            chunk_length: CRC_CHUNK_LENGTH,
            crcs: entries.chunks(CRC_CHUNK_LENGTH as usize).map(crc32).collect(),
        };
        if let Some(directory) = self.entries.parent() {
            self.env.create_dir_all(directory)?;
        }
        // Without the entries the other files are ignored, so a crash in between leaves no wrong cache.
        self.remove()?;
        self.env.write_atomically(&self.crc, &crcs.encode())?;
        self.env.write_atomically(&self.metadata, metadata.as_slice())?;
        self.env.write_atomically(&self.entries, &entries)
    }

    /// Reads the files: `None` if the cache was not saved, else its contents, or the reason why they cannot be used.
    pub(super) fn read(&self) -> Option<Result<Contents, String>> {
        self.env.exists(&self.entries).then(|| self.read_saved())
    }

    fn read_saved(&self) -> Result<Contents, String> {
        let read = |path: &Path| {
            let bytes = self.env.read_all(path, FILE_BYTES_MAX);
            bytes.map_err(|error| error.to_string())
        };
        let entries = Bytes::from(read(&self.entries)?);
        let crcs = read(&self.crc)?;
        let metadata = read(&self.metadata)?;
        let crcs = CrcFile::decode(&crcs, &self.crc).map_err(|_| "its .crc is damaged")?;
        let (whole, complaint) = checked(&entries, &crcs);
        if whole.len() < VERSION_BYTES {
            return Err("its .db is damaged".to_owned());
        }
        Ok(Contents {
            metadata,
            entries: entries.slice(VERSION_BYTES..whole.len()),
            complaint,
        })
    }
}

/// The bytes before the first damaged chunk, and a message if there is such a chunk.
fn checked<'b>(bytes: &'b [u8], crcs: &CrcFile) -> (&'b [u8], Option<String>) {
    let chunk_length = crcs.chunk_length as usize;
    let chunks = bytes.chunks(chunk_length);
    let whole = chunks
        .zip(&crcs.crcs)
        .take_while(|(chunk, crc)| crc32(chunk) == **crc)
        .count();
    let end = (whole * chunk_length).min(bytes.len());
    let complaint = (end < bytes.len()).then(|| format!("damaged from byte {end} on"));
    (&bytes[..end], complaint)
}
