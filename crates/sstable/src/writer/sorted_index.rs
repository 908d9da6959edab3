//! Writes Index.db and Summary.db, the partition index of the format BIG.
//!
//! ```text
//! index := (key:bytes16  position:uvint  row_index_size:uvint  row_index)*          position: in Data.db
//! ```

use ilion_codec::Append as _;
use ilion_env::Env;
use ilion_schema::TableSchema;

use super::component_writer::ComponentWriter;
use super::ended_partition::EndedPartition;
use super::row_index::{Prefix, RowIndexBuilder};
use super::summary::SummaryBuilder;
use super::written::Written;
use crate::checksums::{Checksums, Sums};
use crate::{Component, Descriptor, Result, write_component};

/// Maximum length of a position.
const POSITION_BYTES_MAX: usize = 9;

pub(super) struct SortedIndexWriter {
    index: ComponentWriter,
    summary: SummaryBuilder,
    rows: RowIndexBuilder,
}

impl SortedIndexWriter {
    pub(super) fn create(
        env: &dyn Env,
        descriptor: &Descriptor,
        table: &TableSchema,
        block_bytes: u32,
    ) -> Result<Self> {
        Ok(Self {
            index: ComponentWriter::create(env, descriptor, &Component::Index)?,
            summary: SummaryBuilder::new(table.options.min_index_interval),
            rows: RowIndexBuilder::new(descriptor.version, block_bytes),
        })
    }

    /// Adds an unfiltered; `clustering` is as stored in Data.db.
    #[inline]
    pub(super) fn add_unfiltered(&mut self, written: Written<'_>, clustering: &[u8], start: u64, end: u64) {
        let prefix = match written {
            Written::Row(_) | Written::Shown(_) => Prefix::Row(clustering),
            Written::Marker(marker) => {
                self.rows.set_open(marker.start);
                Prefix::Marker(clustering)
            }
        };
        self.rows.add(prefix, start, end);
    }

    #[inline]
    pub(super) fn add(&mut self, partition: &EndedPartition<'_>) -> Result<Option<u64>> {
        let key = partition.key;
        let entry_at = self.index.position();
        self.summary.add(key, entry_at);
        let out = self.index.buffer();
        out.fill(2 + key.len() + POSITION_BYTES_MAX, |out| {
            out.bytes16(key);
            out.uvint(partition.position);
        });
        let has_row_index =
            self.rows
                .finish_partition(partition.head_length, partition.deletion, partition.length, out);
        self.index.flush_if_large()?;
        Ok(has_row_index.then_some(entry_at))
    }

    pub(super) fn finish(
        self,
        env: &dyn Env,
        descriptor: &Descriptor,
        first_key: &[u8],
        last_key: &[u8],
        checksums: &mut Checksums,
    ) -> Result<Vec<Component>> {
        self.index.finish(checksums)?;
        let summary = self.summary.encode(first_key, last_key);
        write_component(env, descriptor, &Component::Summary, &summary)?;
        checksums.add(Component::Summary, Sums::of(&summary));
        Ok(vec![Component::Index, Component::Summary])
    }
}
