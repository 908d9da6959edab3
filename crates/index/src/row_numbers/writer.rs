//! Writes the row numbers of an SSTable that is being written. Memory grows by 16 bytes per 32 rows.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use ilion_env::Env;
use ilion_rows::{Clustering, DecoratedKey, Row};
use ilion_schema::TableSchema;
use ilion_types::{Partitioner, Token};

use super::block::Draft;
use super::order::order_byte;
use super::{BLOCK_ROWS, MAGIC, NAME};
use crate::Error;
use crate::paged::{PagedWriter, unusable};

/// Numbers the rows of an SSTable, and writes their keys and clusterings.
pub struct RowNumbersWriter {
    file: PagedWriter,
    path: PathBuf,
    order: u8,
    has_clustering: bool,
    draft: Draft,
    directory: Vec<u8>,
    first_key: Option<Bytes>,
    last_key: Vec<u8>,
    rows: u32,
}

impl RowNumbersWriter {
    /// Creates the file of an SSTable whose components begin with `base` (`.../nb-1-big-`).
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(
        env: &Arc<dyn Env>,
        base: &str,
        table: &TableSchema,
        partitioner: Partitioner,
    ) -> Result<Self, Error> {
        let path = PathBuf::from(format!("{base}{NAME}"));
        Ok(Self {
            file: PagedWriter::create(env, path.clone())?,
            path,
            order: order_byte(partitioner),
            has_clustering: table.clustering().len() > 0,
            draft: Draft::default(),
            directory: Vec::new(),
            first_key: None,
            last_key: Vec::new(),
            rows: 0,
        })
    }

    /// Adds the next row in table order, static rows included. Returns its number.
    ///
    /// # Errors
    /// The file cannot be written, or there are more than 2^32 - 1 rows.
    pub fn add(&mut self, key: &DecoratedKey, row: &Row) -> Result<u32, Error> {
        let is_static = self.has_clustering && row.clustering.is_empty();
        let clustering = (!is_static).then_some(&row.clustering);
        self.add_at(&key.token, &key.key, clustering)
    }

    /// Like [`Self::add`], for the only row of a partition in a table without clustering columns.
    ///
    /// # Errors
    /// Those of [`Self::add`].
    pub fn add_plain(&mut self, token: &Token, key: &[u8]) -> Result<u32, Error> {
        self.add_at(token, key, Some(&Clustering::empty()))
    }

    /// `clustering` is `None` for a static row.
    fn add_at(&mut self, token: &Token, key: &[u8], clustering: Option<&Clustering>) -> Result<u32, Error> {
        let number = self.rows;
        let Some(rows) = number.checked_add(1) else {
            return Err(unusable(&self.path, "the SSTable has more than 2^32 - 1 rows"));
        };
        let is_new = number == 0 || self.last_key != key;
        if is_new {
            self.last_key.clear();
            self.last_key.extend_from_slice(key);
            self.first_key.get_or_insert_with(|| Bytes::copy_from_slice(key));
        }
        if self.draft.len() == 0 {
            self.directory.extend_from_slice(&token.code().to_le_bytes());
            self.directory
                .extend_from_slice(&self.file.position().to_le_bytes());
        }
        self.draft.add(key, is_new, clustering);
        self.rows = rows;
        if self.draft.len() == BLOCK_ROWS {
            self.end_block()?;
        }
        Ok(number)
    }

    fn end_block(&mut self) -> Result<(), Error> {
        let block = self.draft.take();
        self.file.append(&block)
    }

    /// Completes and syncs the file. The caller syncs the directory.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> Result<(), Error> {
        if self.draft.len() > 0 {
            self.end_block()?;
        }
        self.file.align()?;
        let directory_at = self.file.position();
        self.file.append(&self.directory)?;
        let tail = Tail {
            order: self.order,
            has_clustering: self.has_clustering,
            rows: self.rows,
            directory_at,
            first_key: self.first_key.unwrap_or_default(),
            last_key: self.last_key.into(),
        };
        self.file.finish(&tail.encode(), MAGIC)
    }

    /// Removes the file.
    pub fn abandon(self) {
        self.file.abandon();
    }
}

/// The fields of the tail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tail {
    pub(super) order: u8,
    pub(super) has_clustering: bool,
    pub(super) rows: u32,
    pub(super) directory_at: u64,
    pub(super) first_key: Bytes,
    pub(super) last_key: Bytes,
}

impl Tail {
    fn encode(&self) -> Vec<u8> {
        let mut out = vec![self.order, u8::from(self.has_clustering)];
        out.extend_from_slice(&self.rows.to_le_bytes());
        out.extend_from_slice(&self.directory_at.to_le_bytes());
        for key in [&self.first_key, &self.last_key] {
            let len = u32::try_from(key.len()).unwrap_or(u32::MAX);
            out.extend_from_slice(&len.to_le_bytes());
            out.extend_from_slice(key);
        }
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (&[order, has_clustering], rest) = bytes.split_first_chunk()?;
        let (rows, rest) = rest.split_first_chunk()?;
        let (directory_at, rest) = rest.split_first_chunk()?;
        let (first_key, rest) = split_key(rest)?;
        let (last_key, rest) = split_key(rest)?;
        (rest.is_empty() && has_clustering < 2).then_some(Self {
            order,
            has_clustering: has_clustering == 1,
            rows: u32::from_le_bytes(*rows),
            directory_at: u64::from_le_bytes(*directory_at),
            first_key,
            last_key,
        })
    }
}

fn split_key(bytes: &[u8]) -> Option<(Bytes, &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    let len = usize::try_from(u32::from_le_bytes(*len)).ok()?;
    let (key, rest) = rest.split_at_checked(len)?;
    Some((Bytes::copy_from_slice(key), rest))
}
