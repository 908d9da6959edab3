//! Slices: the data that the tables of a replica have of some tablets, for another replica that lacks it.
//!
//! The sender keeps the current SSTables of all tables ([`Engine::hold_tables`]). For each table it writes the rows in the wanted ranges
//! into one new SSTable ([`HeldTable::write_slice`]), whose files it sends. Like every SSTable, it says up to which offset it has the
//! records of the tablets. The receiver removes its old data of the tablets ([`Engine::clear_ranges`]), imports the
//! files ([`Engine::begin_copy`]), and continues with the logs: a record that is already in a table's copy is not applied to it again.
//! So a copy is like a replica that was restarted, and writes need not pause for it.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use ilion_compaction::merge_into;
use ilion_env::ReadFile;
use ilion_rows::{Cursor, KeyBound, KeyRange};
use ilion_schema::{TableId, TableSchema, is_system_keyspace};
use ilion_sstable::{Component, Descriptor, EncodingStats, Finding, WriterOptions, union_intervals};

use crate::compact::{CompactionRequest, Rules};
use crate::indexes::IndexedWriter;
use crate::intervals::intervals_of;
use crate::live_sstable::LiveSSTable;
use crate::load::ScratchDirectory;
use crate::over_ranges::OverRanges;
use crate::shared::Shared;
use crate::table_store::{TableIndexes, TableStore};
use crate::tablet_ends::tablet_of;
use crate::{Engine, Result};

/// The SSTables of a table. Their files are not removed while this value exists.
pub struct HeldTable {
    shared: Arc<Shared>,
    store: Arc<TableStore>,
    table: Arc<TableSchema>,
    sstables: Vec<Arc<LiveSSTable>>,
}

/// An SSTable with a part of a table, made to be sent. Its files are removed with this value.
pub struct Slice {
    descriptor: Descriptor,
    components: Vec<(Component, Arc<dyn ReadFile>)>,
    // Declared behind the files, so that these are closed before the directory is removed.
    _directory: ScratchDirectory,
}

/// A part of the ring.
#[derive(Clone, Debug)]
pub struct SliceRanges {
    /// The tablets.
    pub tablets: BTreeSet<u32>,
    /// The ranges of their partitions, ascending and without overlap.
    pub ranges: Vec<KeyRange>,
    /// How many tablets the ring has.
    pub of_tablets: u32,
}

impl SliceRanges {
    /// The ranges of all other partitions.
    fn others(&self) -> Vec<KeyRange> {
        let mut others = Vec::new();
        let mut start = KeyBound::Start;
        for range in &self.ranges {
            let end = range.start.clone();
            others.push(KeyRange { start, end });
            start = range.end.clone();
        }
        let end = KeyBound::End;
        others.push(KeyRange { start, end });
        // Removes empty ranges: the first tablet may begin the ring, and the last one may end it.
        others.retain(|range| range.start != range.end);
        others
    }
}

impl Engine {
    /// Keeps the current SSTables of all tables of clients.
    pub fn hold_tables(&self) -> Vec<HeldTable> {
        let stores = self.shared.tables.load_full();
        let of_clients = stores
            .values()
            .filter(|store| !is_system_keyspace(&store.schema().keyspace));
        let held = of_clients.map(|store| HeldTable {
            shared: self.shared.clone(),
            table: store.schema(),
            sstables: store.view().sstables.clone(),
            store: store.clone(),
        });
        let mut held: Vec<HeldTable> = held.collect();
        held.sort_by_key(HeldTable::id);
        held
    }

    /// Removes all partitions of these ranges from the tables of clients, and returns when that is durable: no memtable, SSTable or record
    /// of the local log can bring them back.
    ///
    /// Requires: no writes to the ranges during the call.
    ///
    /// # Errors
    /// A file cannot be read or written, or a compaction was stopped. The caller can try again.
    pub fn clear_ranges(&self, slices: &SliceRanges) -> Result<()> {
        for held in self.hold_tables() {
            let store = held.store.clone();
            drop(held);
            self.shared.flush_table(&store)?;
            self.shared.clear_of(&store, slices)?;
            store.forget_tablet_ends();
            self.shared.forget_cached_table(store.id);
        }
        Ok(())
    }
}

impl Shared {
    fn clear_of(&self, store: &Arc<TableStore>, slices: &SliceRanges) -> Result<()> {
        // Repeated, since a compaction that ends meanwhile may have moved some partitions into another SSTable.
        loop {
            let sstables = store.view().sstables.clone();
            let table = store.schema();
            let mut files = Vec::new();
            for live in &sstables {
                if OverRanges::of(&slices.ranges, vec![live.clone()], &table)
                    .next_partition()?
                    .is_some()
                {
                    files.push(live.data_path());
                }
            }
            if files.is_empty() {
                return Ok(());
            }
            drop(sstables);
            let rules = Rules::Within(Arc::new(slices.others()));
            for file in files {
                self.compact_now(store, &CompactionRequest::Files(vec![file]), &rules)?;
            }
        }
    }
}

impl HeldTable {
    /// The table.
    pub fn id(&self) -> TableId {
        self.table.id
    }

    /// Writes the data of these tablets, including tombstones of any age. `None` if the SSTables have no partition of them.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn write_slice(&self, slices: &SliceRanges) -> Result<Option<Slice>> {
        if self.sstables.is_empty() {
            return Ok(None);
        }
        let shared = &self.shared;
        let directory = ScratchDirectory::new(shared);
        shared.env.create_dir_all(directory.path())?;
        let named = self
            .store
            .next_descriptor(&*shared.env, shared.options.sstable_version);
        let descriptor = Descriptor::new(directory.path().clone(), named.version, named.id, named.format);
        let indexes = TableIndexes::default();
        let options = self.options(slices);
        let mut writer = IndexedWriter::new(shared, &indexes, &descriptor, &self.table, options)?;
        let mut source = OverRanges::of(&slices.ranges, self.sstables.clone(), &self.table);
        if let Err(error) = merge_into(&mut source, &mut writer) {
            writer.abandon();
            return Err(error);
        }
        if writer.partitions() == 0 {
            writer.abandon();
            return Ok(None);
        }
        writer.finish()?;
        let components = components_of(shared, &descriptor)?;
        Ok(Some(Slice {
            descriptor,
            components,
            _directory: directory,
        }))
    }

    fn options(&self, slices: &SliceRanges) -> WriterOptions {
        let shared = &self.shared;
        let sstables = self.sstables.iter().map(|live| &live.sstable);
        let stats = sstables.clone().map(|sstable| sstable.header().stats);
        let covered = sstables
            .clone()
            .flat_map(|sstable| intervals_of(sstable, shared.id));
        let of_slices =
            covered.filter(|interval| tablet_of(interval).is_some_and(|of| slices.tablets.contains(&of)));
        let partitions: u64 = sstables.clone().map(|sstable| sstable.estimated_keys()).sum();
        let share = partitions.saturating_mul(slices.tablets.len() as u64);
        WriterOptions {
            partitioner: self.table.partitioner(shared.options.partitioner),
            has_static_rows: sstables
                .clone()
                .any(|sstable| !sstable.header().statics.is_empty()),
            estimated_partitions: share.div_ceil(u64::from(slices.of_tablets.max(1))),
            commit_log_intervals: union_intervals(of_slices.collect()),
            originating_host: Some(shared.id),
            encoding_stats: stats.fold(EncodingStats::NONE, EncodingStats::merge),
            writes_token_map: shared.options.finding == Finding::TokenMap,
            ..WriterOptions::default()
        }
    }
}

impl Slice {
    /// Prefix of the names of its files.
    pub fn name(&self) -> String {
        self.descriptor.base_name()
    }

    /// Its components, Statistics.db first, and their sizes.
    pub fn components(&self) -> impl Iterator<Item = (String, u64)> {
        let components = self.components.iter();
        components.map(|(component, file)| (component.name().into(), file.size_bytes()))
    }

    /// Reads `bytes` bytes of a component. Requires: the component exists and has these bytes.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self, component: usize, offset: u64, bytes: usize) -> Result<Bytes> {
        let mut part = vec![0; bytes];
        if let Some((_, file)) = self.components.get(component) {
            file.read_exact_at(offset, &mut part)?;
        }
        Ok(part.into())
    }
}

/// The files of an SSTable, Statistics.db first.
fn components_of(shared: &Shared, descriptor: &Descriptor) -> Result<Vec<(Component, Arc<dyn ReadFile>)>> {
    let mut components = Vec::new();
    for path in descriptor.files(&*shared.env)? {
        let name = path.file_name().and_then(|name| name.to_str());
        let parsed = name.and_then(|name| Descriptor::parse(&descriptor.directory, name));
        if let Some((_, component)) = parsed {
            let file = shared.env.open_read(&path)?;
            components.push((component, file));
        }
    }
    components.sort_by_key(|(component, ..)| *component != Component::Statistics);
    Ok(components)
}
