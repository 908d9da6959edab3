//! Writes a token map together with its SSTable. Each block is encoded when it is complete; only sixteen bytes per block stay in
//! memory.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use ilion_env::Env;
use ilion_types::{Partitioner, Token};

use super::BLOCK_PARTITIONS;
use super::block::BlockDraft;
use super::order::{ComparableToken, Order, code_of_bytes, common_len};
use super::tail::Tail;
use crate::Result;
use ilion_pages::PagesWriter;

/// The complete SSTable.
#[derive(Clone, Debug)]
pub(crate) struct Whole<'k> {
    pub(crate) first_key: &'k [u8],
    pub(crate) last_key: &'k [u8],
    /// Uncompressed size of Data.db.
    pub(crate) data_length: u64,
    /// Size of Data.db on disk.
    pub(crate) stored_length: u64,
    /// See [`super::fingerprint_of`].
    pub(crate) fingerprint: u32,
}

/// Writes a token map. Until [`TokenMapWriter::finish`], the file is not valid.
pub(crate) struct TokenMapWriter {
    pages: PagesWriter,
    path: PathBuf,
    order: Order,
    draft: BlockDraft,
    heads: Vec<u64>,
    block_ats: Vec<u64>,
    separators: Vec<u8>,
    separator_ends: Vec<u64>,
    /// The last key of the block before.
    key_before: Vec<u8>,
    /// Number of partitions of the complete blocks.
    partitions: u64,
    /// True if a block could not be stored: then no map is written.
    is_given_up: bool,
}

impl TokenMapWriter {
    /// Creates the file; replaces a file that a crash or another program left.
    pub(crate) fn create(env: &dyn Env, path: &Path, partitioner: Partitioner) -> Result<Self> {
        Ok(Self {
            pages: PagesWriter::new(env.create_or_truncate(path)?),
            path: path.to_path_buf(),
            order: Order::of(partitioner),
            draft: BlockDraft::default(),
            heads: Vec::new(),
            block_ats: Vec::new(),
            separators: Vec::new(),
            separator_ends: Vec::new(),
            key_before: Vec::new(),
            partitions: 0,
            is_given_up: false,
        })
    }

    /// Adds a partition; keys ascend. `row_index` is the position of the partition's entry in Index.db or Rows.db, if it has a row index.
    #[inline]
    pub(crate) fn add(&mut self, token: &Token, position: u64, row_index: Option<u64>) -> Result<()> {
        self.draft.add(ComparableToken::of(token), position, row_index);
        match self.draft.len() {
            BLOCK_PARTITIONS => self.end_block(),
            _ => Ok(()),
        }
    }

    #[inline(never)]
    fn end_block(&mut self) -> Result<()> {
        self.partitions += self.draft.len() as u64;
        self.block_ats.push(self.pages.position());
        self.is_given_up |= self.draft.encode(self.pages.buffer()).is_none();
        if self.order == Order::Bytes {
            let first = self.draft.first_key();
            let common = common_len(first, &self.key_before);
            let separator = &first[..first.len().min(common + 1)];
            self.heads.push(code_of_bytes(separator));
            self.separators.extend_from_slice(separator);
            self.separator_ends.push(self.separators.len() as u64);
            self.key_before.clear();
            self.key_before.extend_from_slice(self.draft.last_key());
        } else {
            self.heads.extend(self.draft.first_code());
        }
        self.draft.clear();
        Ok(self.pages.flush_if_large()?)
    }

    /// Writes the rest, and syncs. Returns false, and removes the file, if there are no partitions, or a number does not fit the format.
    pub(crate) fn finish(mut self, env: &dyn Env, whole: &Whole<'_>) -> Result<bool> {
        if self.draft.len() > 0 {
            self.end_block()?;
        }
        if self.is_given_up || self.partitions == 0 {
            env.remove_file(&self.path)?;
            return Ok(false);
        }
        self.pages.align();
        let directory_at = self.pages.position();
        let ends = &self.separator_ends;
        let numbers = self.heads.iter().chain(&self.block_ats).chain(ends);
        let directory = self.pages.buffer();
        directory.extend(numbers.flat_map(|number| number.to_le_bytes()));
        directory.extend_from_slice(&self.separators);
        let body_length = self.pages.position();
        let tail = Tail {
            first_key: Bytes::copy_from_slice(whole.first_key),
            last_key: Bytes::copy_from_slice(whole.last_key),
            partition_count: self.partitions,
            data_length: whole.data_length,
            stored_length: whole.stored_length,
            fingerprint: whole.fingerprint,
            body_length,
            directory_at,
        };
        self.pages.finish(&tail.encode(self.order))?;
        Ok(true)
    }
}
