//! The saved key cache: positions of partitions in SSTables.
//!
//! ```text
//! metadata := tables, then sstables:uvint (table:uvint format:string16 version:string16 id:bytes16)*
//! entry    := sstable:uvint key:bytes32 place                      sstable: its number in the metadata; place: `ilion_sstable::SavedPlace`
//! ```
//!
//! It is loaded without I/O on SSTables, with one exception: small promoted indexes that Cassandra saved whole are read from the
//! index. Entries of SSTables that no longer exist are skipped.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use ilion_codec::{Reader, Writer};
use ilion_rows::DecoratedKey;
use ilion_schema::TableId;
use ilion_sstable::{CachedKey, Descriptor, IndexForm, SSTable, SSTableId, SavedPlace, Version};
use ilion_types::{CqlType, Partitioner};

use super::file::{Files, SavedTable, Tables};
use crate::Result;
use crate::cache_saving::KEYS;
use crate::shared::Shared;

const SSTABLES_MAX: usize = 1 << 20;

/// An SSTable of a table or of a hidden table.
struct Known {
    table: TableId,
    /// Name of the index; empty for the table itself.
    index: String,
    partitioner: Partitioner,
    sstable: Arc<SSTable>,
}

/// Entries to be written.
#[derive(Default)]
struct KeyDraft {
    tables: Tables,
    sstables: HashMap<Descriptor, u64>,
    sstable_rows: Writer,
    entries: Writer,
}

impl KeyDraft {
    fn add(&mut self, known: &Known, cached: &CachedKey) -> Result<()> {
        let mut place = Writer::new();
        if !known.sstable.save_place(cached, &mut place)? {
            return Ok(());
        }
        let next = self.sstables.len() as u64;
        let ordinal = *self.sstables.entry(cached.descriptor.clone()).or_insert(next);
        if ordinal == next {
            let descriptor = &cached.descriptor;
            let table = self.tables.ordinal(known.table, &known.index);
            self.sstable_rows.uvint(table);
            self.sstable_rows.string16(descriptor.format.as_str());
            self.sstable_rows.string16(&descriptor.version.to_string());
            self.sstable_rows.bytes16(&descriptor.id.to_bytes());
        }
        self.entries.uvint(ordinal);
        self.entries.bytes32(&cached.key);
        self.entries.bytes(place.as_slice());
        Ok(())
    }
}

/// The SSTable of an entry.
struct SavedSSTable {
    known: Option<Known>,
    form: IndexForm,
}

impl Shared {
    /// Saves the key cache.
    pub(super) fn save_keys(&self, keys_max: usize) -> Result<()> {
        let known = self.known_sstables();
        let mut draft = KeyDraft::default();
        for cached in self.key_cache.keys(keys_max) {
            if let Some(known) = known
                .get(&cached.descriptor)
                .filter(|known| known.sstable.uses_key_cache())
            {
                draft.add(known, &cached)?;
            }
        }
        let files = Files::of(&*self.env, &self.options.saved_caches_dir, KEYS);
        if draft.entries.is_empty() {
            return Ok(files.remove()?);
        }
        let mut metadata = Writer::new();
        draft.tables.encode(&mut metadata);
        metadata.uvint(draft.sstables.len() as u64);
        metadata.bytes(draft.sstable_rows.as_slice());
        Ok(files.write(self.schema_version_of_cassandra()?, &metadata, &draft.entries)?)
    }

    /// Loads the key cache. Returns the number of saved entries, how many of them are in the cache now, and why some could not be used.
    pub(super) fn load_keys(&self, go_on: &dyn Fn() -> bool) -> (usize, usize, Option<String>) {
        let files = Files::of(&*self.env, &self.options.saved_caches_dir, KEYS);
        let contents = match files.read() {
            None => return (0, 0, None),
            Some(Err(complaint)) => return (0, 0, Some(complaint)),
            Some(Ok(contents)) => contents,
        };
        let Some(sstables) = self.decode_sstables(&contents.metadata) else {
            return (0, 0, Some("its .metadata is damaged".to_owned()));
        };
        let (mut entries, mut loaded) = (0, 0);
        let mut input = Reader::new(&contents.entries);
        while !input.is_empty() && go_on() {
            let Some((sstable, key, place)) = decode_entry(&mut input, &sstables) else {
                let complaint = contents.complaint.or(Some("an entry is damaged".to_owned()));
                return (entries, loaded, complaint);
            };
            entries += 1;
            let Some(known) = &sstable.known else { continue };
            let key = DecoratedKey::new(known.partitioner, Bytes::copy_from_slice(key));
            match known.sstable.load_place(&key, place) {
                Ok(is_loaded) => loaded += usize::from(is_loaded),
                Err(error) => tracing::debug!(%error, "an entry of the saved key cache was not loaded"),
            }
        }
        (entries, loaded, contents.complaint)
    }

    fn known_sstables(&self) -> HashMap<Descriptor, Known> {
        let mut all = HashMap::new();
        for store in self.tables.load().values() {
            let indexes = store.indexes();
            let hidden = indexes.0.iter().filter_map(|live| {
                Some((
                    live.hidden.as_ref()?,
                    live.index.definition().schema.name.as_str(),
                ))
            });
            for (part, index) in hidden.chain([(store, "")]) {
                let partitioner = part.schema().partitioner(self.options.partitioner);
                for live in &part.view().sstables {
                    let known = Known {
                        table: store.id,
                        index: index.to_owned(),
                        partitioner,
                        sstable: live.sstable.clone(),
                    };
                    all.insert(live.descriptor().clone(), known);
                }
            }
        }
        all
    }

    fn decode_sstables(&self, metadata: &[u8]) -> Option<Vec<SavedSSTable>> {
        let mut known: HashMap<_, _> = self
            .known_sstables()
            .into_iter()
            .map(|(descriptor, known)| {
                let name = (
                    known.table,
                    known.index.clone(),
                    descriptor.version,
                    descriptor.id,
                );
                (name, (descriptor, known))
            })
            .collect();
        let mut input = Reader::new(metadata);
        let tables = Tables::decode(&mut input)?;
        let count = input.uvint_len().ok().filter(|count| *count <= SSTABLES_MAX)?;
        let mut sstables = Vec::with_capacity(input.capacity_for(count, 8));
        for _ in 0..count {
            let table = tables.get(usize::try_from(input.uvint().ok()?).ok()?)?;
            let format = input.string16().ok()?;
            let version = Version::parse(input.string16().ok()?)?;
            let id = SSTableId::from_bytes(input.bytes16().ok()?)?;
            let name = (table.id, table.index.clone(), version, id);
            let found = known
                .remove(&name)
                .filter(|(descriptor, _)| descriptor.format.as_str() == format);
            let form = match &found {
                Some((_, known)) => {
                    let types = &known.sstable.header().clustering_types;
                    IndexForm::of(version, types.iter().map(|class| &class.ty))
                }
                None => self.form_of_gone(version, table),
            };
            let known = found.map(|(_, known)| known);
            sstables.push(SavedSSTable { known, form });
        }
        Some(sstables)
    }

    /// The form of the index entries of an SSTable that no longer exists; it is needed to skip its entries.
    fn form_of_gone(&self, version: Version, table: &SavedTable) -> IndexForm {
        let store = self.table(table.id);
        let store = match table.index.as_str() {
            "" => store,
            index => store.and_then(|store| store.indexes().named(index)?.hidden.clone()),
        };
        match store {
            Some(store) => {
                let schema = store.schema();
                let types: Vec<CqlType> = schema.clustering().map(|column| column.ty.clone()).collect();
                IndexForm::of(version, &types)
            }
            None => IndexForm::of_unknown(version),
        }
    }
}

fn decode_entry<'b, 's>(
    input: &mut Reader<'b>,
    sstables: &'s [SavedSSTable],
) -> Option<(&'s SavedSSTable, &'b [u8], SavedPlace)> {
    let sstable = sstables.get(usize::try_from(input.uvint().ok()?).ok()?)?;
    let key = input.bytes32().ok()?;
    if key.len() > usize::from(u16::MAX) {
        return None;
    }
    let place = SavedPlace::decode(input, &sstable.form)?;
    Some((sstable, key, place))
}
