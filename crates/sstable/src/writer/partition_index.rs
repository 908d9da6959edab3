//! Index.db, Summary.db and Filter.db: where partitions are.
//!
//! ```text
//! index := (key:bytes16  position:uvint  row_index_size:uvint  row_index)*          position: in Data.db
//! ```

use ilion_env::Env;
use ilion_rows::DeletionTime;
use ilion_schema::TableSchema;

use super::component_writer::ComponentWriter;
use super::row_index::RowIndexBuilder;
use super::summary::SummaryBuilder;
use crate::values::Unstorable;
use crate::{BloomFilter, Component, Descriptor, KeyHash, Result, write_component};

/// The partition that just ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndedPartition<'a> {
    pub(super) key: &'a [u8],
    pub(super) deletion: &'a DeletionTime,
    /// Start in Data.db.
    pub(super) position: u64,
    /// Bytes before its first unfiltered.
    pub(super) head_length: u64,
    /// All its bytes.
    pub(super) length: u64,
}

pub(super) struct PartitionIndexWriter {
    index: ComponentWriter,
    summary: SummaryBuilder,
    filter: Option<BloomFilter>,
}

impl PartitionIndexWriter {
    pub(super) fn create(
        env: &dyn Env,
        descriptor: &Descriptor,
        table: &TableSchema,
        estimated_partitions: u64,
    ) -> Result<Self> {
        let options = &table.options;
        Ok(Self {
            index: ComponentWriter::create(env, descriptor, &Component::Index)?,
            summary: SummaryBuilder::new(options.min_index_interval),
            filter: BloomFilter::for_keys(estimated_partitions.max(1), options.bloom_filter_fp_chance),
        })
    }

    pub(super) fn add(
        &mut self,
        partition: &EndedPartition<'_>,
        rows: &mut RowIndexBuilder,
    ) -> Result<std::result::Result<(), Unstorable>> {
        self.summary.add(partition.key, self.index.position());
        if let Some(filter) = &mut self.filter {
            filter.add(KeyHash::of(partition.key));
        }
        let out = self.index.buffer();
        out.bytes16(partition.key);
        out.uvint(partition.position);
        let stored = rows.finish_partition(partition.head_length, partition.deletion, partition.length, out);
        self.index.flush_if_large()?;
        Ok(stored)
    }

    /// Writes what is left and makes it durable; gives the components that there are now.
    pub(super) fn finish(
        self,
        env: &dyn Env,
        descriptor: &Descriptor,
        first_key: &[u8],
        last_key: &[u8],
    ) -> Result<Vec<Component>> {
        self.index.finish()?;
        let mut components = vec![Component::Index, Component::Summary];
        let summary = self.summary.encode(first_key, last_key);
        write_component(env, descriptor, &Component::Summary, &summary)?;
        if let Some(filter) = self.filter {
            let filter = filter.encode(descriptor.version);
            write_component(env, descriptor, &Component::Filter, &filter)?;
            components.push(Component::Filter);
        }
        Ok(components)
    }
}
