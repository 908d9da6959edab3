//! Writes an SSTable: partitions are added in ascending order, and all components are written.
//!
//! The main path: `begin_partition` encodes key, deletion and static row. `add` encodes a row or marker. `finish_partition`
//! adds the index entry. `add_plain` does all of this in one call; `add_plain_row` and `add_entry` add rows without building
//! them (`rows`). Encoded bytes are collected in one buffer, and written to Data.db in large pieces. `finish` writes the
//! components that are only known then, TOC.txt last.
//!
//! Requires: the SSTable's ADD is in the transaction log before a component is created; the caller does this.

mod cell_entries;
mod clustering_span;
mod component_writer;
mod ended_partition;
mod options;
mod partition_index;
mod row_index;
mod row_trie;
mod rows;
mod sorted_index;
mod summary;
#[cfg(test)]
mod tests;
mod trie_builder;
mod trie_draft;
mod trie_index;
mod written;

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use ilion_codec::{Append as _, Slab};
use ilion_env::Env;
use ilion_rows::{ClusteringComparator, DecoratedKey, DeletionTime, PartitionHead, PlainRow};
use ilion_schema::TableSchema;
use ilion_types::Token;

use crate::cells;
use crate::checksums::{Checksums, Owner};
use crate::deleted::DeletedRunsWriter;
use crate::metadata_collector::MetadataCollector;
use crate::row::encode::{
    RowEncoder, encode_end_of_partition, encode_partition_start, partition_start_len_max,
};
use crate::row::format::values::Unstorable;
use crate::statistics::Validation;
use crate::tokens::{TokenMapWriter, Whole, fingerprint_of};
use crate::{
    ChunkWriter, Component, Compression, Descriptor, Error, Format, Result, SerializationHeader, Statistics,
    TransactionKind, Version, toc, write_component,
};

pub use options::{CellMapLimits, WriterOptions};

use cell_entries::CellEntries;
use clustering_span::{ClusteringSpan, Reach};
use ended_partition::EndedPartition;
use partition_index::PartitionIndexWriter;
use written::Written;

/// Size of the buffer for encoded bytes. It has room for several chunks: chunks that are whole in the buffer need not be copied.
const BUFFER_BYTES: usize = 128 << 10;

/// Writes an SSTable. If it is dropped before `finish`, the transaction removes its files.
pub struct SSTableWriter {
    env: Arc<dyn Env>,
    descriptor: Descriptor,
    options: WriterOptions,
    header: SerializationHeader,
    bloom_filter_fp_chance: f64,
    data: ChunkWriter,
    /// Encoded bytes that are not written to Data.db yet.
    buffer: Slab,
    encoder: RowEncoder,
    index: PartitionIndexWriter,
    tokens: Option<TokenMapWriter>,
    cells: Option<CellEntries>,
    deleted: DeletedRunsWriter,
    stats: MetadataCollector,
    open: Option<OpenPartition>,
    keys: Keys,
    first_key: Option<Bytes>,
    partitions: u64,
    span: ClusteringSpan,
}

/// The keys of the current and the previous partition, in two buffers that swap: counting references per key would be slower.
#[derive(Debug)]
struct Keys {
    before: KeyCopy,
    at_hand: KeyCopy,
}

#[derive(Debug)]
struct KeyCopy {
    token: Token,
    bytes: Slab,
}

impl Keys {
    fn none() -> Self {
        let none = || KeyCopy {
            token: Token::Murmur3(0),
            bytes: Slab::default(),
        };
        Self {
            before: none(),
            at_hand: none(),
        }
    }

    /// Copies the key of a new partition.
    #[inline]
    fn begin(&mut self, token: &Token, key: &[u8]) {
        let copy = &mut self.at_hand;
        match (&mut copy.token, token) {
            (Token::Murmur3(copy), Token::Murmur3(hash)) => *copy = *hash,
            (copy, token) => copy.clone_from(token),
        }
        copy.bytes.clear();
        copy.bytes.bytes(key);
    }

    /// Makes the current key the previous one.
    #[inline]
    fn end(&mut self) {
        std::mem::swap(&mut self.before, &mut self.at_hand);
    }
}

impl KeyCopy {
    #[inline]
    fn is_before(&self, token: &Token, key: &[u8]) -> bool {
        match (&self.token, token) {
            (Token::Murmur3(mine), Token::Murmur3(hash)) if mine != hash => mine < hash,
            _ => (&self.token, self.bytes.as_slice()) < (token, key),
        }
    }
}

/// The current partition.
#[derive(Debug)]
struct OpenPartition {
    deletion: DeletionTime,
    /// Position of the partition in Data.db.
    start: u64,
    head_length: u64,
    /// True if the partition has neither a deletion nor a static row.
    is_blank: bool,
    /// Start of the previous unfiltered, as an offset from the partition's start.
    previous_start: u64,
}

impl SSTableWriter {
    /// Creates the files of an SSTable of `table`.
    ///
    /// # Errors
    /// A file cannot be created or exists, or the options are invalid.
    pub fn new(
        env: &Arc<dyn Env>,
        descriptor: &Descriptor,
        table: &Arc<TableSchema>,
        options: WriterOptions,
    ) -> Result<Self> {
        check_writable(descriptor)?;
        let version = descriptor.version;
        let compression = Compression::from_options(&table.options.compression)?;
        let compression = match options.kind {
            TransactionKind::Flush => compression.map(Compression::for_flush),
            TransactionKind::Compaction => compression,
        };
        let encoder = RowEncoder::new(table, options.encoding_stats, version);
        let mut header = SerializationHeader::of(table, options.encoding_stats);
        let encoder = match options.has_static_rows {
            true => encoder,
            false => {
                header.statics.clear();
                encoder.without_statics()
            }
        };
        let encoder = match options.cell_map {
            Some(limits) => encoder.with_bodies_from(limits.row_bytes_min),
            None => encoder,
        };
        let tokens_path = descriptor.path(&Component::Tokens);
        let tokens = options
            .writes_token_map
            .then(|| TokenMapWriter::create(&**env, &tokens_path, options.partitioner));
        Ok(Self {
            tokens: tokens.transpose()?,
            cells: options
                .cell_map
                .map(|limits| CellEntries::new(env, descriptor, limits)),
            deleted: DeletedRunsWriter::default(),
            data: ChunkWriter::create(env.clone(), descriptor.clone(), compression)?,
            index: PartitionIndexWriter::create(&**env, descriptor, table, &options)?,
            header,
            bloom_filter_fp_chance: table.options.bloom_filter_fp_chance,
            encoder,
            stats: MetadataCollector::new(ClusteringComparator::of(table)),
            span: ClusteringSpan::new(table),
            buffer: Slab::with_capacity(BUFFER_BYTES + BUFFER_BYTES / 4),
            open: None,
            keys: Keys::none(),
            first_key: None,
            partitions: 0,
            env: env.clone(),
            descriptor: descriptor.clone(),
            options,
        })
    }

    /// Starts a partition, with its static row. Requires: keys ascend. A partition that ends up empty is not written.
    ///
    /// # Errors
    /// Refused if the key does not ascend, or the partition cannot be stored; or a file cannot be written. After an error of this
    /// or any method below, the writer is unusable: abandon it.
    pub fn begin_partition(&mut self, head: &PartitionHead) -> Result<()> {
        let DecoratedKey { token, key } = &head.key;
        self.check_key(token, key)?;
        let start = self.position();
        let buffered = self.buffer.len();
        let version = self.descriptor.version;
        let started = self.buffer.fill(partition_start_len_max(key), |out| {
            encode_partition_start(version, key, &head.deletion, out)
        });
        if let Err(reason) = started {
            return Err(self.unstorable(reason));
        }
        if let Some(cells) = &mut self.cells {
            cells.begin_partition();
        }
        let static_row = head.static_row.as_ref();
        let has_static_row = match static_row.is_some() || self.encoder.has_statics() {
            true => self.add_static(static_row, start, buffered)?,
            false => false,
        };
        self.stats.partition_deletion(&head.deletion);
        self.index.begin_partition();
        self.span.begin_partition();
        self.keys.begin(token, key);
        self.open = Some(OpenPartition {
            deletion: head.deletion,
            start,
            head_length: self.position() - start,
            is_blank: head.deletion.is_live() && !has_static_row,
            previous_start: 0,
        });
        Ok(())
    }

    #[inline(always)]
    fn check_key(&self, token: &Token, key: &[u8]) -> Result<()> {
        if self.open.is_some() {
            return Err(self.refuse("a partition begins before the previous one is finished"));
        }
        if self.partitions > 0 && !self.keys.before.is_before(token, key) {
            return Err(self.refuse("partition keys do not ascend"));
        }
        if key.len() > usize::from(u16::MAX) {
            return Err(self.refuse("a partition key is longer than 65535 bytes"));
        }
        Ok(())
    }

    /// Adds a whole plain partition, encoded as if it had been added row by row. Returns false, and adds nothing, if the partition
    /// must be added row by row.
    ///
    /// # Errors
    /// As [`SSTableWriter::begin_partition`].
    pub fn add_plain(&mut self, token: &Token, partition: &PlainRow<'_>) -> Result<bool> {
        let at_once = partition.timestamp_micros;
        let Some(timestamp_micros) = at_once.filter(|_| !self.encoder.has_statics()) else {
            return Ok(false);
        };
        let key = partition.key;
        self.check_key(token, key)?;
        let (start, buffered) = (self.position(), self.buffer.len());
        let version = self.descriptor.version;
        let started = self.buffer.fill(partition_start_len_max(key), |out| {
            encode_partition_start(version, key, &DeletionTime::LIVE, out)
        });
        if let Err(reason) = started {
            return Err(self.unstorable(reason));
        }
        let head_length = (self.buffer.len() - buffered) as u64;
        let (stats, buffer) = (&mut self.stats, &mut self.buffer);
        let encoded = self
            .encoder
            .encode_seen(partition, timestamp_micros, head_length, stats, buffer);
        match encoded {
            Ok(Some(_)) => {}
            Ok(None) => {
                self.buffer.truncate(buffered);
                return Ok(false);
            }
            Err(reason) => return Err(self.unstorable(reason)),
        }
        let end = self.position() - start;
        self.index.begin_partition_of_row(head_length, end)?;
        self.span.begin_partition();
        self.span.add(Written::Shown(&[]), &[]);
        self.keys.begin(token, key);
        self.open = Some(OpenPartition {
            deletion: DeletionTime::LIVE,
            start,
            head_length,
            is_blank: true,
            previous_start: head_length,
        });
        self.end_partition().map(|()| true)
    }

    /// Ends the partition.
    ///
    /// # Errors
    /// As [`SSTableWriter::begin_partition`].
    pub fn finish_partition(&mut self) -> Result<()> {
        match &self.open {
            Some(open) if open.is_blank && self.span.is_empty() => {
                self.forget_head(open.start);
                Ok(())
            }
            _ => self.end_partition(),
        }
    }

    /// Ends the current partition. Requires: it is not empty.
    #[inline(never)]
    fn end_partition(&mut self) -> Result<()> {
        let Some(open) = &self.open else {
            return Err(self.refuse("a partition is finished that was not begun"));
        };
        let end = self.data.position() + self.buffer.len() as u64;
        self.deleted.end(end, self.span.last_stored());
        encode_end_of_partition(&mut self.buffer);
        let length = self.data.position() + self.buffer.len() as u64 - open.start;
        let KeyCopy { token, bytes } = &self.keys.at_hand;
        let key = bytes.as_slice();
        let ended = EndedPartition {
            token,
            key,
            deletion: &open.deletion,
            position: open.start,
            head_length: open.head_length,
            length,
            span: &self.span,
        };
        let row_index = self.index.add(&ended)?;
        if let Some(tokens) = &mut self.tokens {
            tokens.add(token, open.start, row_index)?;
        }
        if let Some(reach) = self.span.finish_partition()
            && !covers(&mut self.stats, reach)
        {
            return Err(self.refuse("a deleted range is open at the start or end of its partition"));
        }
        self.stats.end_partition(key, length);
        if self.first_key.is_none() {
            self.first_key = Some(Bytes::copy_from_slice(key));
        }
        self.open = None;
        self.keys.end();
        self.partitions += 1;
        self.flush_if_large()
    }

    /// Removes the current partition, of which only the head was appended. The head is still in the buffer: only rows cause a
    /// write of the buffer.
    #[cold]
    fn forget_head(&mut self, start: u64) {
        let kept = usize::try_from(start - self.data.position()).unwrap_or(usize::MAX);
        self.buffer.truncate(kept);
        self.open = None;
    }

    /// Number of partitions so far.
    pub fn partitions(&self) -> u64 {
        self.partitions
    }

    /// Uncompressed size of Data.db so far.
    pub fn data_bytes(&self) -> u64 {
        self.position()
    }

    /// Approximate size of Data.db on disk so far.
    pub fn stored_bytes(&self) -> u64 {
        self.data.stored_length()
    }

    /// Writes and syncs all components, TOC.txt last, and syncs the directory.
    ///
    /// # Errors
    /// Refused if there is no partition (then abandon the writer), or if a partition is not finished. Or a file cannot be written:
    /// then remove the files.
    pub fn finish(mut self) -> Result<()> {
        let Some(first) = self.first_key.take() else {
            return Err(self.refuse("it has no partition"));
        };
        if self.open.is_some() {
            return Err(self.refuse("its last partition is not finished"));
        }
        self.flush()?;
        let mut components = BTreeSet::from([Component::Statistics, Component::Toc]);
        components.extend(self.data.components());
        let mut checksums = Checksums::default();
        let data = self.data.finish_summed(&mut checksums)?;
        let (env, descriptor) = (&*self.env, &self.descriptor);
        let last_key = Bytes::copy_from_slice(self.keys.before.bytes.as_slice());
        components.extend(
            self.index
                .finish(env, descriptor, &first, &last_key, &mut checksums)?,
        );
        let (stats, cardinality) = self.stats.finish((first.clone(), last_key.clone()));
        let statistics = Statistics {
            validation: Some(Validation {
                partitioner: self.options.partitioner.class_name().to_owned(),
                bloom_filter_fp_chance: self.bloom_filter_fp_chance,
            }),
            cardinality: Some(cardinality),
            stats: self.options.complete(stats, &data),
            header: self.header,
        };
        let whole = cells::Whole {
            data_length: data.data_length,
            stored_length: data.stored_length,
            fingerprint: fingerprint_of(&statistics.stats),
        };
        if let Some(runs) = self.deleted.finish(whole) {
            // Compat: not in TOC.txt, as Tokens.db below.
            write_component(env, descriptor, &Component::Deleted, &runs)?;
        }
        if let Some(cells) = self.cells {
            cells.finish(whole)?;
        }
        if let Some(tokens) = self.tokens {
            let whole = Whole {
                first_key: &first,
                last_key: &last_key,
                data_length: data.data_length,
                stored_length: data.stored_length,
                fingerprint: fingerprint_of(&statistics.stats),
            };
            // Compat: Tokens.db is not in TOC.txt, which Cassandra's tools compare with their own list.
            tokens.finish(env, &whole)?;
        }
        let checksums = checksums.encode(Owner::of(data.stored_length, &statistics.stats));
        write_component(env, descriptor, &Component::Checksums, &checksums)?;
        let statistics = statistics.encode(descriptor.version);
        write_component(env, descriptor, &Component::Statistics, &statistics)?;
        write_component(env, descriptor, &Component::Toc, &toc::print(&components))?;
        Ok(env.sync_dir(&descriptor.directory)?)
    }

    /// Removes the written files. The transaction later removes those that cannot be removed here.
    pub fn abandon(self) {
        let (env, descriptor) = (self.env.clone(), self.descriptor.clone());
        drop(self);
        if let Err(error) = descriptor.remove_files(&*env) {
            tracing::warn!(%descriptor, %error, "cannot remove an abandoned SSTable; the next start will");
        }
    }

    #[inline]
    fn position(&self) -> u64 {
        self.data.position() + self.buffer.len() as u64
    }

    #[inline]
    fn flush_if_large(&mut self) -> Result<()> {
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    #[inline(never)]
    fn flush(&mut self) -> Result<()> {
        self.data.write(self.buffer.as_slice())?;
        self.buffer.clear();
        Ok(())
    }

    #[cold]
    fn unstorable(&self, reason: Unstorable) -> Error {
        self.refuse(&reason.to_string())
    }

    #[cold]
    fn refuse(&self, reason: &str) -> Error {
        Error::Refused(format!("{} cannot be written: {reason}", self.descriptor))
    }
}

fn check_writable(descriptor: &Descriptor) -> Result<()> {
    match (descriptor.version, descriptor.format) {
        (Version::NB | Version::OA, Format::Big) | (Version::DA, Format::Bti) => Ok(()),
        _ => Err(Error::Refused(format!(
            "{descriptor}: SSTables are written in the formats nb and oa (BIG) and da (BTI) only"
        ))),
    }
}

/// Adds the clusterings of a partition to the statistics. Returns false if a deleted range is open at one end.
#[inline(never)]
fn covers(stats: &mut MetadataCollector, reach: Reach) -> bool {
    match reach {
        Reach::Row(row) => stats.clustering(row),
        Reach::Slice(slice) if slice.start.kind.is_start() && slice.end.kind.is_end() => {
            stats.clusterings(&slice);
        }
        Reach::Slice(_) => return false,
    }
    true
}

impl std::fmt::Debug for SSTableWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SSTableWriter")
            .field("descriptor", &self.descriptor)
            .field("partitions", &self.partitions)
            .finish_non_exhaustive()
    }
}
