//! Writes a cell map while its SSTable is written: a block is encoded when it has all its entries, so memory does not grow
//! with them, but for sixteen bytes a block. Without entries there is no file.

use std::path::PathBuf;
use std::sync::Arc;

use ilion_codec::Writer;
use ilion_env::Env;

use super::BLOCK_ENTRIES;
use super::tail::Tail;
use crate::Result;
use ilion_pages::PagesWriter;

/// The SSTable whose rows have been added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole {
    /// Uncompressed bytes of Data.db.
    pub(crate) data_length: u64,
    /// Bytes of Data.db on disk.
    pub(crate) stored_length: u64,
    /// See [`crate::tokens::fingerprint_of`].
    pub(crate) fingerprint: u32,
}

/// A cell map being written. Without [`CellMapWriter::finish`] it leaves a file that is none.
pub(crate) struct CellMapWriter {
    env: Arc<dyn Env>,
    path: PathBuf,
    /// Created for the first entry.
    pages: Option<PagesWriter>,
    /// Gaps and lengths of the block at hand.
    index: Writer,
    /// Entries of the block at hand.
    entries: Writer,
    last_position: u64,
    count: u64,
    bases: Vec<u64>,
    block_ats: Vec<u64>,
}

impl CellMapWriter {
    /// Nothing is written yet.
    pub(crate) fn new(env: Arc<dyn Env>, path: PathBuf) -> Self {
        Self {
            env,
            path,
            pages: None,
            index: Writer::new(),
            entries: Writer::new(),
            last_position: 0,
            count: 0,
            bases: Vec::new(),
            block_ats: Vec::new(),
        }
    }

    /// The next entry, above all before: the bytes at `position` of Data.db, and the parts of the row that begins there.
    pub(crate) fn add(&mut self, position: u64, head: &[&[u8]], parts: &[u8]) -> Result<()> {
        if self.count.is_multiple_of(BLOCK_ENTRIES) {
            self.end_block()?;
            self.bases.push(position);
            self.last_position = position;
        }
        let start = self.entries.len();
        self.entries
            .uvint(head.iter().map(|bytes| bytes.len() as u64).sum());
        head.iter().for_each(|bytes| self.entries.bytes(bytes));
        self.entries.bytes(parts);
        self.index.uvint(position - self.last_position);
        self.index.uvint((self.entries.len() - start) as u64);
        self.last_position = position;
        self.count += 1;
        Ok(())
    }

    fn end_block(&mut self) -> Result<()> {
        if self.entries.is_empty() {
            return Ok(());
        }
        let pages = match &mut self.pages {
            Some(pages) => pages,
            // What a crash or another program left under its name goes.
            none => none.insert(PagesWriter::new(self.env.create_or_truncate(&self.path)?)),
        };
        self.block_ats.push(pages.position());
        pages.buffer().extend_from_slice(self.index.as_slice());
        pages.buffer().extend_from_slice(self.entries.as_slice());
        self.index.clear();
        self.entries.clear();
        Ok(pages.flush_if_large()?)
    }

    /// Writes what is left and makes it durable. False if there was nothing to write.
    pub(crate) fn finish(mut self, whole: Whole) -> Result<bool> {
        self.end_block()?;
        let Some(mut pages) = self.pages else {
            return Ok(false);
        };
        pages.align();
        let directory_at = pages.position();
        let numbers = self.bases.iter().chain(&self.block_ats);
        pages
            .buffer()
            .extend(numbers.flat_map(|number| number.to_le_bytes()));
        let tail = Tail {
            entry_count: self.count,
            data_length: whole.data_length,
            stored_length: whole.stored_length,
            fingerprint: whole.fingerprint,
            body_length: pages.position(),
            directory_at,
        };
        pages.finish(&tail.encode())?;
        Ok(true)
    }
}
