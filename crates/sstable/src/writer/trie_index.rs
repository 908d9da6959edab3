//! Writes Partitions.db and Rows.db, the partition index of the format BTI; the layout is in `reader::partition_trie` and
//! `reader::row_trie`.
//!
//! A key is written only when the next one is known, since the length of its stored prefix depends on both neighbours.

use ilion_codec::{Append as _, Writer};
use ilion_env::Env;
use ilion_schema::TableSchema;

use super::component_writer::ComponentWriter;
use super::ended_partition::EndedPartition;
use super::row_trie::RowTrieBuilder;
use super::trie_builder::TrieBuilder;
use super::trie_draft::{PayloadBytes, sized_int_len};
use super::written::Written;
use crate::bloom::KeyHash;
use crate::checksums::Checksums;
use crate::comparable::comparable_key;
use crate::row::format::times::encode_partition_deletion;
use crate::{Component, Descriptor, Result, Version};

/// Compat: added to the length of a position in the payload bits; shows that a hash precedes the position.
const BITS_WITH_HASH: u8 = 7;

/// A key that is not in the trie yet.
#[derive(Debug)]
struct Waiting {
    key: Vec<u8>,
    payload: PayloadBytes,
    /// Length of the prefix that distinguishes the key from the previous one.
    len: usize,
}

pub(super) struct TrieIndexWriter {
    version: Version,
    partitions: ComponentWriter,
    trie: TrieBuilder,
    waiting: Option<Waiting>,
    key_count: u64,
    rows: ComponentWriter,
    row_trie: RowTrieBuilder,
}

impl TrieIndexWriter {
    pub(super) fn create(
        env: &dyn Env,
        descriptor: &Descriptor,
        table: &TableSchema,
        block_bytes: u32,
    ) -> Result<Self> {
        Ok(Self {
            version: descriptor.version,
            partitions: ComponentWriter::create(env, descriptor, &Component::Partitions)?,
            trie: TrieBuilder::new(),
            waiting: None,
            key_count: 0,
            rows: ComponentWriter::create(env, descriptor, &Component::Rows)?,
            row_trie: RowTrieBuilder::new(descriptor.version, table, block_bytes),
        })
    }

    pub(super) fn begin_partition(&mut self) {
        self.row_trie.begin_partition();
    }

    #[inline]
    pub(super) fn add_unfiltered(&mut self, written: Written<'_>, start: u64, end: u64) -> Result<()> {
        self.row_trie.add(written, start, end, &mut self.rows)
    }

    pub(super) fn add(&mut self, partition: &EndedPartition<'_>) -> Result<Option<u64>> {
        let end_of_rows = partition.length - 1;
        let index = self
            .row_trie
            .finish(partition.span, end_of_rows, &mut self.rows)?;
        let mut deletion = Writer::new();
        let index = index
            .filter(|_| encode_partition_deletion(self.version, partition.deletion, &mut deletion).is_ok());
        let target = match index {
            None => !partition.position.cast_signed(),
            Some((root, blocks)) => {
                let position = self.rows.position();
                let out = self.rows.buffer();
                out.bytes16(partition.key);
                let base = position + 2 + partition.key.len() as u64;
                out.uvint(partition.position);
                out.svint(root.cast_signed() - base.cast_signed());
                out.uvint(blocks);
                out.bytes(deletion.as_slice());
                self.rows.flush_if_large()?;
                position.cast_signed()
            }
        };
        self.add_key(partition, target)?;
        Ok(u64::try_from(target).ok())
    }

    fn add_key(&mut self, partition: &EndedPartition<'_>, target: i64) -> Result<()> {
        let hash = KeyHash::of(partition.key).low_byte();
        let payload = PayloadBytes::new(BITS_WITH_HASH + sized_int_len(target));
        let mut next = Waiting {
            key: comparable_key(partition.token, partition.key),
            payload: payload.with(&[hash]).with_sized_int(target),
            len: 0,
        };
        self.key_count += 1;
        if let Some(before) = self.waiting.take() {
            let same = before.key.iter().zip(&next.key).take_while(|(a, b)| a == b);
            next.len = same.count() + 1;
            self.write(&before, next.len);
            self.partitions.flush_if_large()?;
        }
        self.waiting = Some(next);
        Ok(())
    }

    /// Writes a key. `len` is the length of the prefix that distinguishes it from the next key.
    fn write(&mut self, waiting: &Waiting, len: usize) {
        let prefix = &waiting.key[..len.max(waiting.len).min(waiting.key.len())];
        self.trie.add(prefix, waiting.payload, &mut self.partitions);
    }

    pub(super) fn finish(
        mut self,
        first_key: &[u8],
        last_key: &[u8],
        checksums: &mut Checksums,
    ) -> Result<Vec<Component>> {
        if let Some(last) = self.waiting.take() {
            self.write(&last, 0);
        }
        let root = self.trie.finish(&mut self.partitions);
        let keys_at = self.partitions.position();
        let out = self.partitions.buffer();
        out.bytes16(first_key);
        out.bytes16(last_key);
        out.u64(keys_at);
        out.u64(self.key_count);
        out.u64(root);
        self.partitions.finish(checksums)?;
        self.rows.finish(checksums)?;
        Ok(vec![Component::Partitions, Component::Rows])
    }
}
