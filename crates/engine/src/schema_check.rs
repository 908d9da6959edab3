//! Tries out a change of the schema before it is logged, since every later start must adopt it.
//!
//! `ilion_schema` has checked that the rows of the change can be read back. Here an SSTable of each new or altered table, and of
//! the hidden tables of its indexes, is written to a disk in memory and opened again. Then the table's directories are
//! made. If this fails, nothing has changed, except that an empty directory may exist.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use ilion_env::{Env, MemEnv};
use ilion_index::Storage;
use ilion_rows::{Clustering, DecoratedKey, DeletionTime, Liveness, PartitionHead, Row, Unfiltered};
use ilion_schema::{Applied, Diff, IndexSchema, TableKind, TableSchema, Transition};
use ilion_sstable::{Descriptor, Finding, SSTableId, SSTableWriter, WriterOptions};

use crate::indexes::directory_of as directory_of_index;
use crate::recovery::check_file_types;
use crate::shared::Shared;
use crate::table_store::directory_of;
use crate::{Error, Result};

/// Maximum length of the name of a file or directory, in bytes.
const FILE_NAME_LEN_MAX: usize = 255;
/// Maximum length of the path of a directory, in bytes, so that the name of a file in it still fits.
const PATH_LEN_MAX: usize = 4095 - FILE_NAME_LEN_MAX - 1;

impl Shared {
    /// Refuses a change whose tables could not be flushed, or which the next start could not open.
    pub(crate) fn try_out(&self, applied: &Applied) -> Result<()> {
        for diff in &applied.diffs {
            match diff {
                Diff::Table(Transition::Created(table)) if table.kind != TableKind::Virtual => {
                    self.try_layout(table)?;
                    self.make_directory(&directory_of(&self.options.data_dir, table))?;
                }
                Diff::Table(Transition::Updated { new: table, .. }) => {
                    self.try_layout(table)?;
                    let keyspace = applied.schema.keyspace(&table.keyspace);
                    let indexes = keyspace
                        .into_iter()
                        .flat_map(|owner| owner.indexes_of(&table.name));
                    indexes
                        .into_iter()
                        .try_for_each(|index| self.try_index(index, table))?;
                }
                Diff::Index(
                    keyspace,
                    Transition::Created(index) | Transition::Updated { new: index, .. },
                ) => {
                    if let Some(table) = applied.schema.table(keyspace, &index.table) {
                        self.try_index(index, table)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn try_index(&self, schema: &Arc<IndexSchema>, table: &Arc<TableSchema>) -> Result<()> {
        // An index of an unknown class is skipped with a warning when it is opened.
        let Ok(index) = self.make_index(schema, table) else {
            return Ok(());
        };
        if let Storage::HiddenTable(hidden) = index.storage() {
            self.try_layout(hidden.table())?;
            let of_table = directory_of(&self.options.data_dir, table);
            self.make_directory(&directory_of_index(&of_table, &schema.name))?;
        }
        Ok(())
    }

    /// Writes an SSTable of one row to a disk in memory, and opens it.
    fn try_layout(&self, table: &Arc<TableSchema>) -> Result<()> {
        let env: Arc<dyn Env> = Arc::new(MemEnv::new(0));
        let directory = Path::new("/table");
        env.create_dir_all(directory)?;
        let version = self.options.sstable_version;
        let descriptor = Descriptor::new(directory, version, SSTableId::Sequence(1), version.format());
        let options = WriterOptions {
            partitioner: table.partitioner(self.options.partitioner),
            estimated_partitions: 1,
            writes_token_map: self.options.finding == Finding::TokenMap,
            ..WriterOptions::default()
        };
        let partitioner = options.partitioner;
        let mut writer = SSTableWriter::new(&env, &descriptor, table, options)?;
        let key = DecoratedKey::new(partitioner, Bytes::from_static(b"key"));
        let absent = table.clustering().map(|_| Bytes::new()).collect::<Vec<_>>();
        writer.begin_partition(&PartitionHead {
            key,
            deletion: DeletionTime::LIVE,
            static_row: None,
        })?;
        writer.add(&Unfiltered::Row(Row {
            liveness: Liveness::live(1),
            ..Row::empty(Clustering::of(absent))
        }))?;
        writer.finish_partition()?;
        writer.finish()?;
        let live = self.open_in(&env, table, &descriptor)?;
        check_file_types(&live)?;
        let header = live.sstable.header();
        let columns = header.statics.len() + header.regulars.len();
        if columns != table.statics().len() + table.regulars().len() {
            return Err(Error::Refused(format!(
                "the header of SSTables of {}.{} would not read back",
                table.keyspace, table.name
            )));
        }
        Ok(())
    }

    fn make_directory(&self, directory: &Path) -> Result<()> {
        let name_len = directory.file_name().map_or(0, |name| name.len());
        if name_len > FILE_NAME_LEN_MAX || directory.as_os_str().len() > PATH_LEN_MAX {
            return Err(Error::Refused(format!(
                "The directory {} would have a longer name than file systems take",
                directory.display()
            )));
        }
        Ok(self.env.create_dir_all(directory)?)
    }
}
