//! Writes the partition index: Index.db and Summary.db, or Partitions.db and Rows.db; and Filter.db.

use ilion_env::Env;
use ilion_schema::TableSchema;

use super::ended_partition::EndedPartition;
use super::options::WriterOptions;
use super::sorted_index::SortedIndexWriter;
use super::trie_index::TrieIndexWriter;
use super::written::Written;
use crate::checksums::{Checksums, Sums};
use crate::{BloomFilter, Component, Descriptor, Format, KeyHash, Result, write_component};

pub(super) struct PartitionIndexWriter {
    form: Form,
    filter: Option<BloomFilter>,
    /// Hashes of keys that are not in the filter yet.
    hashes: Vec<KeyHash>,
}

/// Number of keys that are added to the filter at once. Their bits are spread over the filter, and the cache misses of a batch overlap.
const FILTER_BATCH: usize = 128;

enum Form {
    Sorted(Box<SortedIndexWriter>),
    Trie(Box<TrieIndexWriter>),
}

impl PartitionIndexWriter {
    pub(super) fn create(
        env: &dyn Env,
        descriptor: &Descriptor,
        table: &TableSchema,
        options: &WriterOptions,
    ) -> Result<Self> {
        let block_bytes = options.block_bytes(descriptor.format);
        let form = match descriptor.format {
            Format::Big => Form::Sorted(Box::new(SortedIndexWriter::create(
                env,
                descriptor,
                table,
                block_bytes,
            )?)),
            Format::Bti => Form::Trie(Box::new(TrieIndexWriter::create(
                env,
                descriptor,
                table,
                block_bytes,
            )?)),
        };
        let (keys, chance) = (
            options.estimated_partitions.max(1),
            table.options.bloom_filter_fp_chance,
        );
        Ok(Self {
            form,
            filter: BloomFilter::for_keys(keys, chance),
            hashes: Vec::with_capacity(FILTER_BATCH),
        })
    }

    #[inline]
    pub(super) fn begin_partition(&mut self) {
        match &mut self.form {
            Form::Sorted(_) => {}
            Form::Trie(index) => index.begin_partition(),
        }
    }

    /// Adds an unfiltered from `start` to `end`, as offsets from the partition's start; `clustering` is as stored in Data.db.
    #[inline(always)]
    pub(super) fn add_unfiltered(
        &mut self,
        written: Written<'_>,
        clustering: &[u8],
        start: u64,
        end: u64,
    ) -> Result<()> {
        match &mut self.form {
            Form::Sorted(index) => {
                index.add_unfiltered(written, clustering, start, end);
                Ok(())
            }
            Form::Trie(index) => index.add_unfiltered(written, start, end),
        }
    }

    /// Starts a partition with only one row, from `start` to `end`.
    #[inline]
    pub(super) fn begin_partition_of_row(&mut self, start: u64, end: u64) -> Result<()> {
        match &mut self.form {
            // A partition of one row gets no row index.
            Form::Sorted(_) => Ok(()),
            Form::Trie(index) => {
                index.begin_partition();
                index.add_unfiltered(Written::Shown(&[]), start, end)
            }
        }
    }

    /// Adds a partition. Returns the offset of its entry in Index.db or Rows.db, if it has a row index. Requires: the partition's
    /// deletion was stored in Data.db; then it also fits the entry.
    #[inline]
    pub(super) fn add(&mut self, partition: &EndedPartition<'_>) -> Result<Option<u64>> {
        if self.filter.is_some() {
            self.hashes.push(KeyHash::of(partition.key));
            if self.hashes.len() == FILTER_BATCH {
                self.fill_filter();
            }
        }
        match &mut self.form {
            Form::Sorted(index) => index.add(partition),
            Form::Trie(index) => index.add(partition),
        }
    }

    #[inline(never)]
    fn fill_filter(&mut self) {
        if let Some(filter) = &mut self.filter {
            self.hashes.drain(..).for_each(|hash| filter.add(hash));
        }
    }

    /// Writes the rest, and syncs; returns the components that were written.
    pub(super) fn finish(
        mut self,
        env: &dyn Env,
        descriptor: &Descriptor,
        first_key: &[u8],
        last_key: &[u8],
        checksums: &mut Checksums,
    ) -> Result<Vec<Component>> {
        self.fill_filter();
        let mut components = match self.form {
            Form::Sorted(index) => index.finish(env, descriptor, first_key, last_key, checksums)?,
            Form::Trie(index) => index.finish(first_key, last_key, checksums)?,
        };
        if let Some(filter) = self.filter {
            let filter = filter.encode(descriptor.version);
            write_component(env, descriptor, &Component::Filter, &filter)?;
            checksums.add(Component::Filter, Sums::of(&filter));
            components.push(Component::Filter);
        }
        Ok(components)
    }
}
