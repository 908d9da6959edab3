//! The files of a saved cache, as Cassandra 5.0 has them.
//!
//! ```text
//! <Cache>-g.db       := schema_version:uuid entry*
//! <Cache>-g.crc      := chunk_length:i32 crc:u32*                  as CRC.db of an SSTable
//! <Cache>-g.metadata := tables:uvint (table:uuid index:string16)*  index is empty for a table
//! row entry          := table:uvint key:bytes32                    table is its number in the metadata
//! counter entry      := table:uvint key:bytes32 cell:bytes32
//! cell               := (value:bytes16 0:u8)* (column:bytes16 0:u8) one value a clustering column, none if static
//! ```
//!
//! Other versions than `g` are left alone. Entries up to the first damaged chunk are used.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use ilion_codec::{Reader, Writer, crc32};
use ilion_env::Env;
use ilion_schema::TableId;
use ilion_sstable::crc_file::{CRC_CHUNK_LENGTH, CrcFile};
use uuid::Uuid;

/// A larger file is not ours.
const FILE_BYTES_MAX: u64 = 1 << 30;
const TABLES_MAX: usize = 1 << 16;

/// Entries being gathered.
pub(super) struct Draft {
    tables: Vec<TableId>,
    entries: Writer,
}

impl Draft {
    pub(super) fn new(schema_version: Uuid) -> Self {
        let mut entries = Writer::new();
        entries.bytes(schema_version.as_bytes());
        Self {
            tables: Vec::new(),
            entries,
        }
    }

    fn ordinal(&mut self, table: TableId) -> u64 {
        let known = self.tables.iter().position(|known| *known == table);
        let ordinal = known.unwrap_or_else(|| {
            self.tables.push(table);
            self.tables.len() - 1
        });
        ordinal as u64
    }

    /// Adds a partition, and of a counter its cell.
    pub(super) fn add(&mut self, table: TableId, key: &[u8], cell: Option<&[u8]>) {
        let ordinal = self.ordinal(table);
        self.entries.uvint(ordinal);
        self.entries.bytes32(key);
        if let Some(cell) = cell {
            self.entries.bytes32(cell);
        }
    }

    /// Writes the three files; none, and the old ones are gone, if there are no entries.
    pub(super) fn write(self, env: &dyn Env, directory: &Path, cache: &str) -> ilion_env::Result<()> {
        let files = Files::of(directory, cache);
        if self.tables.is_empty() {
            return files.remove(env);
        }
        let entries = self.entries.into_vec();
        let crcs = CrcFile {
            chunk_length: CRC_CHUNK_LENGTH,
            crcs: entries.chunks(CRC_CHUNK_LENGTH as usize).map(crc32).collect(),
        };
        let mut metadata = Writer::new();
        metadata.uvint(self.tables.len() as u64);
        for table in &self.tables {
            metadata.bytes(table.0.as_bytes());
            metadata.string16("");
        }
        env.create_dir_all(directory)?;
        // Without its entries, the rest is passed over: a crash in between leaves no wrong cache.
        files.remove(env)?;
        env.write_atomically(&files.crc, &crcs.encode())?;
        env.write_atomically(&files.metadata, metadata.as_slice())?;
        env.write_atomically(&files.entries, &entries)
    }
}

struct Files {
    entries: PathBuf,
    crc: PathBuf,
    metadata: PathBuf,
}

impl Files {
    fn of(directory: &Path, cache: &str) -> Self {
        let file = |end: &str| directory.join(format!("{cache}-g.{end}"));
        Self {
            entries: file("db"),
            crc: file("crc"),
            metadata: file("metadata"),
        }
    }

    fn remove(&self, env: &dyn Env) -> ilion_env::Result<()> {
        for file in [&self.entries, &self.crc, &self.metadata] {
            if env.exists(file) {
                env.remove_file(file)?;
            }
        }
        Ok(())
    }
}

/// An entry as it is in the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SavedEntry {
    pub(super) table: TableId,
    pub(super) key: Bytes,
    /// Of a counter.
    pub(super) cell: Option<Bytes>,
}

/// What was saved.
#[derive(Debug, Default)]
pub(super) struct Saved {
    pub(super) entries: Vec<SavedEntry>,
    /// Why not all, or none, of it is used; for the operator.
    pub(super) complaint: Option<String>,
}

impl Saved {
    fn refused(complaint: impl Into<String>) -> Self {
        Self {
            entries: Vec::new(),
            complaint: Some(complaint.into()),
        }
    }

    /// Reads the files of a cache; what cannot be used is left out with a complaint.
    pub(super) fn read(
        env: &dyn Env,
        directory: &Path,
        cache: &str,
        schema_version: Uuid,
        has_cells: bool,
    ) -> Self {
        let files = Files::of(directory, cache);
        if !env.exists(&files.entries) {
            return Self::default();
        }
        let read = |path: &Path| env.read_all(path, FILE_BYTES_MAX);
        let (entries, crcs, metadata) = match (read(&files.entries), read(&files.crc), read(&files.metadata))
        {
            (Ok(entries), Ok(crcs), Ok(metadata)) => (entries, crcs, metadata),
            (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => {
                return Self::refused(error.to_string());
            }
        };
        let Ok(crcs) = CrcFile::decode(&crcs, &files.crc) else {
            return Self::refused("its .crc is damaged");
        };
        let Some(tables) = decode_tables(&metadata) else {
            return Self::refused("its .metadata is damaged");
        };
        let (whole, mut complaint) = checked(&entries, &crcs);
        let whole = Bytes::copy_from_slice(whole);
        let Some((version, _)) = whole.split_first_chunk::<16>() else {
            return Self::refused("its .db is damaged");
        };
        if Uuid::from_bytes(*version) != schema_version {
            return Self::refused("it was saved with another schema");
        }
        let mut input = Reader::new(&whole);
        let mut saved = Self::default();
        // The version was just seen.
        let _ = input.skip(16);
        while !input.is_empty() {
            let Some(entry) = decode_entry(&mut input, &whole, &tables, has_cells) else {
                complaint.get_or_insert_with(|| "an entry is damaged".to_owned());
                break;
            };
            saved.entries.extend(entry);
        }
        saved.complaint = complaint;
        saved
    }
}

/// The bytes before the first damaged chunk.
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

fn decode_tables(metadata: &[u8]) -> Option<Vec<Option<TableId>>> {
    let mut input = Reader::new(metadata);
    let count = input.uvint_len().ok().filter(|count| *count <= TABLES_MAX)?;
    let mut tables = Vec::with_capacity(input.capacity_for(count, 18));
    for _ in 0..count {
        let id = Uuid::from_bytes(input.uuid_bytes().ok()?);
        let is_table = input.string16().ok()?.is_empty();
        tables.push(is_table.then_some(TableId(id)));
    }
    Some(tables)
}

/// An entry; nothing inside if it is of a hidden table. Nothing at all if it is damaged.
fn decode_entry(
    input: &mut Reader<'_>,
    whole: &Bytes,
    tables: &[Option<TableId>],
    has_cells: bool,
) -> Option<Option<SavedEntry>> {
    let ordinal = usize::try_from(input.uvint().ok()?).ok()?;
    let table = *tables.get(ordinal)?;
    let key = whole.slice_ref(input.bytes32().ok()?);
    let cell = match has_cells {
        true => Some(whole.slice_ref(input.bytes32().ok()?)),
        false => None,
    };
    if key.is_empty() || key.len() > usize::from(u16::MAX) {
        return None;
    }
    Some(table.map(|table| SavedEntry { table, key, cell }))
}

/// The name of a counter's cell.
pub(super) fn encode_cell(values: &ilion_rows::Values, column: &str) -> Vec<u8> {
    let mut out = Writer::new();
    for value in values {
        out.bytes16(value.as_deref().unwrap_or_default());
        out.u8(0);
    }
    out.bytes16(column.as_bytes());
    out.u8(0);
    out.into_vec()
}

/// Clustering values and column of a cell's name.
pub(super) fn decode_cell(cell: &Bytes) -> Option<(ilion_rows::Values, String)> {
    let mut input = Reader::new(cell);
    let mut parts = ilion_rows::Values::new();
    while !input.is_empty() {
        parts.push(Some(cell.slice_ref(input.bytes16().ok()?)));
        input.u8().ok()?;
    }
    let column = parts.pop()??;
    Some((parts, String::from_utf8(column.to_vec()).ok()?))
}

#[cfg(test)]
mod tests {
    use ilion_env::MemEnv;

    use super::*;

    const DIRECTORY: &str = "/saved_caches";

    fn saved(entries: usize) -> (MemEnv, Uuid, TableId) {
        let env = MemEnv::new(1);
        let (version, table) = (Uuid::from_u128(7), TableId(Uuid::from_u128(9)));
        let mut draft = Draft::new(version);
        for number in 0..entries {
            draft.add(table, format!("key {number}").as_bytes(), None);
        }
        draft
            .write(&*env.shared(), Path::new(DIRECTORY), "RowCache")
            .unwrap();
        (env, version, table)
    }

    fn read(env: &MemEnv, version: Uuid) -> Saved {
        Saved::read(&*env.shared(), Path::new(DIRECTORY), "RowCache", version, false)
    }

    #[test]
    fn what_is_saved_is_read_again_and_nothing_of_another_schema() {
        let (env, version, table) = saved(3);
        let again = read(&env, version);
        assert_eq!((again.entries.len(), again.complaint), (3, None));
        assert_eq!(again.entries[2].table, table);
        assert_eq!(&again.entries[2].key[..], b"key 2");
        let foreign = read(&env, Uuid::from_u128(8));
        assert!(foreign.entries.is_empty() && foreign.complaint.is_some());
    }

    #[test]
    fn damage_costs_what_comes_after_it() {
        let (env, version, _) = saved(20_000);
        let path = Path::new(DIRECTORY).join("RowCache-g.db");
        env.corrupt_byte(&path, 100_000, 1).unwrap();
        let again = read(&env, version);
        assert!(again.entries.len() > 3000 && again.entries.len() < 7000);
        assert!(again.complaint.is_some());
    }

    #[test]
    fn an_empty_cache_removes_what_was_saved() {
        let (env, version, _) = saved(3);
        Draft::new(version)
            .write(&*env.shared(), Path::new(DIRECTORY), "RowCache")
            .unwrap();
        assert!(read(&env, version).entries.is_empty());
        assert!(!env.shared().exists(&Path::new(DIRECTORY).join("RowCache-g.crc")));
    }

    #[test]
    fn the_name_of_a_cell_has_its_clustering_and_column() {
        let values: ilion_rows::Values = [Some(Bytes::from_static(b"c")), Some(Bytes::new())]
            .into_iter()
            .collect();
        let cell = Bytes::from(encode_cell(&values, "hits"));
        assert_eq!(&cell[..], b"\0\x01c\0\0\0\0\0\x04hits\0");
        assert_eq!(decode_cell(&cell), Some((values, "hits".to_owned())));
        let of_static = Bytes::from(encode_cell(&ilion_rows::Values::new(), "s"));
        assert_eq!(&of_static[..], b"\0\x01s\0");
        assert_eq!(decode_cell(&of_static.slice(..2)), None);
    }
}
