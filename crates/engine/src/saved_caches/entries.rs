//! The entries of saved row and counter caches.
//!
//! ```text
//! row entry          := table:uvint key:bytes32                    table is its number in the metadata
//! counter entry      := table:uvint key:bytes32 cell:bytes32
//! cell               := (value:bytes16 0:u8)* (column:bytes16 0:u8) one value a clustering column, none if static
//! ```

use std::path::Path;

use bytes::Bytes;
use ilion_codec::{Reader, Writer};
use ilion_env::Env;
use ilion_schema::TableId;
use uuid::Uuid;

use super::file::{Files, SavedTable, Tables};

/// Entries to be written.
#[derive(Default)]
pub(super) struct EntryDraft {
    tables: Tables,
    entries: Writer,
}

impl EntryDraft {
    /// Adds a partition, and for a counter its cell.
    pub(super) fn add(&mut self, table: TableId, key: &[u8], cell: Option<&[u8]>) {
        let ordinal = self.tables.ordinal(table, "");
        self.entries.uvint(ordinal);
        self.entries.bytes32(key);
        if let Some(cell) = cell {
            self.entries.bytes32(cell);
        }
    }

    /// Writes the three files. Without entries, removes the old ones instead.
    pub(super) fn write(
        self,
        env: &dyn Env,
        directory: &Path,
        cache: &str,
        schema_version: Uuid,
    ) -> ilion_env::Result<()> {
        let files = Files::of(env, directory, cache);
        if self.entries.is_empty() {
            return files.remove();
        }
        let mut metadata = Writer::new();
        self.tables.encode(&mut metadata);
        files.write(schema_version, &metadata, &self.entries)
    }
}

/// An entry of the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SavedEntry {
    pub(super) table: TableId,
    pub(super) key: Bytes,
    /// The name of a counter's cell; `None` for an entry of the row cache.
    pub(super) cell: Option<Bytes>,
}

/// A saved cache that was read.
#[derive(Debug, Default)]
pub(super) struct Saved {
    pub(super) entries: Vec<SavedEntry>,
    /// Why some entries are not used, for the operator.
    pub(super) complaint: Option<String>,
}

impl Saved {
    fn refused(complaint: impl Into<String>) -> Self {
        Self {
            entries: Vec::new(),
            complaint: Some(complaint.into()),
        }
    }

    /// Reads the files of a cache; leaves out entries that cannot be used.
    pub(super) fn read(env: &dyn Env, directory: &Path, cache: &str, has_cells: bool) -> Self {
        let contents = match Files::of(env, directory, cache).read() {
            None => return Self::default(),
            Some(Err(complaint)) => return Self::refused(complaint),
            Some(Ok(contents)) => contents,
        };
        let Some(tables) = Tables::decode(&mut Reader::new(&contents.metadata)) else {
            return Self::refused("its .metadata is damaged");
        };
        let whole = contents.entries;
        let mut input = Reader::new(&whole);
        let mut saved = Self {
            complaint: contents.complaint,
            ..Self::default()
        };
        while !input.is_empty() {
            let Some(entry) = decode_entry(&mut input, &whole, &tables, has_cells) else {
                saved
                    .complaint
                    .get_or_insert_with(|| "an entry is damaged".to_owned());
                break;
            };
            saved.entries.extend(entry);
        }
        saved
    }
}

/// Decodes an entry: `None` if it is damaged, `Some(None)` if it belongs to a hidden table.
fn decode_entry(
    input: &mut Reader<'_>,
    whole: &Bytes,
    tables: &[SavedTable],
    has_cells: bool,
) -> Option<Option<SavedEntry>> {
    let ordinal = usize::try_from(input.uvint().ok()?).ok()?;
    let table = tables.get(ordinal)?;
    let key = whole.slice_ref(input.bytes32().ok()?);
    let cell = match has_cells {
        true => Some(whole.slice_ref(input.bytes32().ok()?)),
        false => None,
    };
    if key.len() > usize::from(u16::MAX) {
        return None;
    }
    let table = table.index.is_empty().then_some(table.id);
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

    fn saved(entries: usize) -> (MemEnv, TableId) {
        let env = MemEnv::new(1);
        let (version, table) = (Uuid::from_u128(7), TableId(Uuid::from_u128(9)));
        let mut draft = EntryDraft::default();
        for number in 0..entries {
            draft.add(table, format!("key {number}").as_bytes(), None);
        }
        draft
            .write(&*env.shared(), Path::new(DIRECTORY), "RowCache", version)
            .unwrap();
        (env, table)
    }

    fn read(env: &MemEnv) -> Saved {
        Saved::read(&*env.shared(), Path::new(DIRECTORY), "RowCache", false)
    }

    #[test]
    fn what_is_saved_is_read_again() {
        let (env, table) = saved(3);
        let again = read(&env);
        assert_eq!((again.entries.len(), again.complaint), (3, None));
        assert_eq!(again.entries[2].table, table);
        assert_eq!(&again.entries[2].key[..], b"key 2");
    }

    #[test]
    fn damage_costs_what_comes_after_it() {
        let (env, _) = saved(20_000);
        let path = Path::new(DIRECTORY).join("RowCache-g.db");
        env.corrupt_byte(&path, 100_000, 1).unwrap();
        let again = read(&env);
        assert!(again.entries.len() > 3000 && again.entries.len() < 7000);
        assert!(again.complaint.is_some());
    }

    #[test]
    fn an_empty_cache_removes_what_was_saved() {
        let (env, _) = saved(3);
        EntryDraft::default()
            .write(&*env.shared(), Path::new(DIRECTORY), "RowCache", Uuid::nil())
            .unwrap();
        assert!(read(&env).entries.is_empty());
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
