//! Writes a cell map together with its SSTable. Each block is written when it is complete; only sixteen bytes per block stay in
//! memory. Without entries, no file is created.

use std::path::PathBuf;
use std::sync::Arc;

use ilion_codec::Writer;
use ilion_env::Env;

use super::BLOCK_ENTRIES;
use super::tail::Tail;
use crate::Result;
use ilion_pages::PagesWriter;

/// The complete SSTable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole {
    /// Uncompressed size of Data.db.
    pub(crate) data_length: u64,
    /// Size of Data.db on disk.
    pub(crate) stored_length: u64,
    /// See [`crate::tokens::fingerprint_of`].
    pub(crate) fingerprint: u32,
}

/// Writes a cell map. Until [`CellMapWriter::finish`], the file is not valid.
pub(crate) struct CellMapWriter {
    env: Arc<dyn Env>,
    path: PathBuf,
    /// Created for the first entry.
    pages: Option<PagesWriter>,
    /// Gaps and lengths of the current block.
    index: Writer,
    /// Entries of the current block.
    entries: Writer,
    last_position: u64,
    count: u64,
    bases: Vec<u64>,
    block_ats: Vec<u64>,
}

impl CellMapWriter {
    /// Prepares to write to `path`. The file is created by the first entry.
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

    /// Adds an entry; positions ascend. `head` is the bytes at `position` in Data.db; `parts` describes the row that starts there.
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
            // Replaces a file that a crash or another program left.
            none => none.insert(PagesWriter::new(self.env.create_or_truncate(&self.path)?)),
        };
        self.block_ats.push(pages.position());
        pages.buffer().extend_from_slice(self.index.as_slice());
        pages.buffer().extend_from_slice(self.entries.as_slice());
        self.index.clear();
        self.entries.clear();
        Ok(pages.flush_if_large()?)
    }

    /// Writes the rest, and syncs. Returns false if there are no entries, and so no file.
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
