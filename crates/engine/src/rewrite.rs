//! Rewrites or checks the SSTables of a table, most of them one by one, while the table is in use.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use ilion_rows::{DecoratedKey, Granularity};
use ilion_schema::{TableId, TableSchema};
use ilion_sstable::compression_info::CompressionInfo;
use ilion_sstable::{Component, Compression, Descriptor, read_component, verify};

use crate::compact::{CompactionRequest, Rules};
use crate::shared::Shared;
use crate::tasks::{Checking, Job};
use crate::{Engine, Error, Result, TableStore};

/// Which SSTables to rewrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// SSTables in another format than the one that is written now.
    OtherFormats,
    /// SSTables with another compression than that of the table.
    OtherCompression,
    /// All SSTables.
    All,
}

/// An SSTable that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedSSTable {
    /// Path of its Data.db.
    pub path: PathBuf,
    /// Uncompressed bytes of its rows.
    pub data_bytes: u64,
    /// Its damage, with files and offsets; empty if there is none.
    pub damage: Vec<String>,
}

impl Engine {
    /// Rewrites each chosen SSTable of a table, in the format and with the compression that are written now; returns their number.
    /// Data that a compaction of the SSTable would drop is dropped.
    ///
    /// # Errors
    /// A file cannot be read or written, or the work was stopped. Some SSTables may have been rewritten before.
    pub fn rewrite(&self, table: TableId, choice: Rewrite) -> Result<u64> {
        let mut count = 0;
        for path in self.chosen(table, choice)? {
            // An SSTable that a compaction has replaced meanwhile needs no rewrite.
            count += self.compact_as(table, &CompactionRequest::Files(vec![path]))? as u64;
        }
        Ok(count)
    }

    fn chosen(&self, table: TableId, choice: Rewrite) -> Result<Vec<PathBuf>> {
        let store = self.usable_store(table)?;
        let view = store.view();
        let mut chosen = Vec::new();
        for live in &view.sstables {
            let descriptor = live.descriptor();
            let is_chosen = match choice {
                Rewrite::All => true,
                Rewrite::OtherFormats => descriptor.version != self.shared.options.sstable_version,
                Rewrite::OtherCompression => !self.has_compression_of(&store.schema(), descriptor)?,
            };
            if is_chosen {
                chosen.push(descriptor.path(&Component::Data));
            }
        }
        Ok(chosen)
    }

    fn has_compression_of(&self, table: &TableSchema, descriptor: &Descriptor) -> Result<bool> {
        let wanted = Compression::from_options(&table.options.compression)?;
        let path = descriptor.path(&Component::CompressionInfo);
        let bytes = read_component(&*self.shared.env, descriptor, &Component::CompressionInfo)?;
        let info = bytes.map(|bytes| CompressionInfo::decode(&bytes, descriptor.version, &path));
        Ok(Compression::is_of(wanted.as_ref(), info.transpose()?.as_ref())?)
    }

    /// Flushes a table and rewrites each of its SSTables without the data that the others have deleted; returns their number. The oldest
    /// come first, so that deletions that cover no data any more can be dropped in the same run.
    ///
    /// # Errors
    /// A file cannot be read or written, or the work was stopped. Some SSTables may have been rewritten before.
    pub fn collect_garbage(&self, table: TableId, granularity: Granularity) -> Result<u64> {
        let store = self.usable_store(table)?;
        self.flush(table)?;
        let mut sstables = store.view().sstables.clone();
        sstables.sort_by_key(|live| live.sstable.stats().max_timestamp_micros);
        let rules = Rules::Garbage(granularity);
        let mut count = 0;
        for live in sstables {
            let request = CompactionRequest::Files(vec![live.data_path()]);
            drop(live);
            count += self.shared.compact_now(&store, &request, &rules)? as u64;
        }
        Ok(count)
    }

    /// Flushes a table and compacts the SSTables that may have one of these partitions. Their tombstones are dropped also within gc
    /// grace, if they cover no data outside of the compaction. Returns the number of compactions.
    ///
    /// # Errors
    /// A file cannot be read or written, or the work was stopped.
    pub fn compact_keys(&self, table: TableId, keys: &[Bytes]) -> Result<u64> {
        let store = self.usable_store(table)?;
        self.flush(table)?;
        let mut files = BTreeSet::new();
        for key in keys {
            files.extend(self.sstables_with(table, key)?);
        }
        let partitioner = store.schema().partitioner(self.shared.options.partitioner);
        let keys = keys.iter().map(|key| DecoratedKey::new(partitioner, key.clone()));
        let rules = Rules::WithoutGrace(Arc::new(keys.collect()));
        let request = CompactionRequest::Files(files.into_iter().collect());
        Ok(self.shared.compact_now(&store, &request, &rules)? as u64)
    }

    /// Checks the integrity of all SSTables of a table, component by component.
    ///
    /// # Errors
    /// A file cannot be read. Damage is not an error: the report lists it.
    pub fn check_sstables(&self, table: TableId) -> Result<Vec<CheckedSSTable>> {
        let store = self.usable_store(table)?;
        let view = store.view();
        let mut checked = Vec::new();
        // The view keeps the files of SSTables that are replaced meanwhile.
        let descriptors = view.sstables.iter().map(|live| live.descriptor());
        let mut checking = self.shared.begin_check(&store, "Verify", descriptors);
        for live in &view.sstables {
            let descriptor = live.descriptor();
            let found = verify::verify(&*self.shared.env, descriptor, &mut |bytes| checking.at(bytes))?;
            checking.pass(verify::work_bytes(&*self.shared.env, descriptor));
            let mut damage: Vec<String> = found.findings.kept().iter().map(ToString::to_string).collect();
            if found.findings.more() > 0 {
                damage.push(format!("and {} more", found.findings.more()));
            }
            checked.push(CheckedSSTable {
                path: descriptor.path(&Component::Data),
                data_bytes: live.sstable.data_length(),
                damage,
            });
        }
        Ok(checked)
    }

    pub(crate) fn usable_store(&self, table: TableId) -> Result<Arc<TableStore>> {
        let found = self.shared.any_table(table);
        let (store, owner) = found.ok_or_else(|| Error::Refused(format!("table {table} does not exist")))?;
        owner.check_usable()?;
        Ok(store)
    }
}

impl Shared {
    /// Shows a check of SSTables to operators, until the value is dropped.
    pub(crate) fn begin_check<'d>(
        &self,
        store: &TableStore,
        kind: &'static str,
        sstables: impl Iterator<Item = &'d Descriptor> + Clone,
    ) -> Checking<'_> {
        let table = store.schema();
        let bytes = sstables
            .clone()
            .map(|descriptor| verify::work_bytes(&*self.env, descriptor));
        let job = Job {
            table_id: store.id,
            keyspace: table.keyspace.clone(),
            table: table.name.clone(),
            kind,
            directory: store.directory.clone(),
            total_bytes: bytes.sum(),
            sstables: sstables.count(),
        };
        self.tasks.check(self.env.time_uuid(), job)
    }
}
