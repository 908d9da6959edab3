//! The terms of one SSTable: written together with its rows, searched by row number.

use std::path::PathBuf;
use std::sync::Arc;

use ilion_env::Env;
use ilion_rows::{DecoratedKey, PlainRow, ReadError, Row};

use super::indexed::Indexed;
use super::numbers::{Found, Numbers};
use super::sorter::Sorter;
use super::term::cut;
use super::tree_file::TreeFile;
use super::tree_writer::TreeWriter;
use crate::paged::unusable;
use crate::{
    Candidate, Candidates, Error, Estimate, IndexContents, NoCandidates, Place, Predicate, Ranked,
    RowNumbers, RowPart, SSTableIndex, SSTableIndexWriter,
};

/// The file of an index; `base` is the start of the SSTable's component paths.
pub(super) fn path_of(base: &str, index: &str) -> PathBuf {
    PathBuf::from(format!("{base}Index+{index}+Terms.db"))
}

/// Collects the terms of the rows, and writes them sorted.
pub(super) struct Writer {
    env: Arc<dyn Env>,
    path: PathBuf,
    indexed: Arc<Indexed>,
    has_clusterings: bool,
    sorter: Sorter,
    /// If partitions are indexed: the key of the last row.
    key: Option<DecoratedKey>,
    rows: u32,
    buffer: Vec<u8>,
}

impl Writer {
    pub(super) fn new(
        env: &Arc<dyn Env>,
        base: &str,
        name: &str,
        indexed: &Arc<Indexed>,
        has_clusterings: bool,
        memory_bytes: usize,
    ) -> Self {
        Self {
            env: env.clone(),
            path: path_of(base, name),
            indexed: indexed.clone(),
            has_clusterings,
            sorter: Sorter::new(env, format!("{base}Index+{name}"), memory_bytes),
            key: None,
            rows: 0,
            buffer: Vec::new(),
        }
    }
}

impl SSTableIndexWriter for Writer {
    fn add(&mut self, number: u32, key: &DecoratedKey, row: &Row) -> Result<(), Error> {
        self.rows = number.saturating_add(1);
        let is_static = self.has_clusterings && row.clustering.is_empty();
        if let Some(column) = self.indexed.only_cell() {
            let cell = row.cell(column).filter(|cell| !cell.is_tombstone());
            return match cell.filter(|_| is_static == self.indexed.is_of_static()) {
                Some(cell) => {
                    self.buffer.clear();
                    self.indexed.encode_term(cell.value, &mut self.buffer);
                    self.sorter.add(cut(&self.buffer), number)
                }
                None => Ok(()),
            };
        }
        if self.indexed.is_of_partitions() && self.key.as_ref() == Some(key) {
            return Ok(());
        }
        let (sorter, mut is_indexed) = (&mut self.sorter, false);
        self.indexed
            .each_term(key, row, is_static, &mut self.buffer, &mut |term| {
                is_indexed = true;
                sorter.add(term, number)
            })?;
        if is_indexed && self.indexed.is_of_partitions() {
            self.key = Some(key.clone());
        }
        Ok(())
    }

    fn add_plain(&mut self, number: u32, row: &PlainRow<'_>) -> Result<bool, Error> {
        let Some(column) = self.indexed.only_cell() else {
            return Ok(false);
        };
        self.rows = number.saturating_add(1);
        if let Some(value) = row.cell(column).filter(|_| !self.indexed.is_of_static()) {
            self.buffer.clear();
            self.indexed.encode_term(value, &mut self.buffer);
            self.sorter.add(cut(&self.buffer), number)?;
        }
        Ok(true)
    }

    fn finish(self: Box<Self>) -> Result<(), Error> {
        let Self {
            env,
            path,
            indexed,
            mut sorter,
            rows,
            ..
        } = *self;
        let mut tree = TreeWriter::create(&env, path, rows)?;
        match sorter.drain(&mut |term, numbers| tree.add(term, numbers)) {
            Ok(()) => tree.finish(indexed.words().as_bytes()),
            Err(error) => {
                tree.abandon();
                Err(error)
            }
        }
    }

    fn abandon(self: Box<Self>) {
        // Nothing to do: no file has its final name yet, and the sorter removes its runs.
    }
}

/// The terms of one SSTable.
pub(super) struct Terms {
    tree: TreeFile,
    indexed: Arc<Indexed>,
    rows: Arc<dyn RowNumbers>,
}

impl Terms {
    pub(super) fn open(
        env: &Arc<dyn Env>,
        base: &str,
        name: &str,
        indexed: &Arc<Indexed>,
        rows: Arc<dyn RowNumbers>,
    ) -> Result<Self, Error> {
        let path = path_of(base, name);
        let tree = TreeFile::open(env, &path)?;
        if tree.tail.definition != indexed.words().as_bytes() {
            return Err(unusable(&path, "it belongs to another definition of the index"));
        }
        if tree.tail.sstable_rows != rows.len() {
            return Err(unusable(&path, "it belongs to other rows"));
        }
        Ok(Self {
            tree,
            indexed: indexed.clone(),
            rows,
        })
    }
}

impl SSTableIndex for Terms {
    fn estimate(&self, predicate: &Predicate) -> Estimate {
        let ranges = self.indexed.lookup(predicate).unwrap_or_default();
        let count = |range| self.tree.count(range).unwrap_or(self.tree.tail.rows);
        let rows = ranges.iter().map(count).fold(0, u64::saturating_add);
        Estimate {
            rows: rows.min(u64::from(self.rows.len())),
            files: u64::from(rows > 0),
        }
    }

    fn search(self: Arc<Self>, predicate: &Predicate) -> Result<Box<dyn Candidates>, ReadError> {
        let mut found = Found::default();
        for range in self.indexed.lookup(predicate).unwrap_or_default() {
            self.tree.find(&range, &mut found)?;
        }
        if found.numbers.is_empty() && found.lists.is_empty() {
            return Ok(Box::new(NoCandidates));
        }
        Ok(Box::new(Search {
            numbers: Numbers::of(found),
            terms: self,
            passed: None,
        }))
    }

    fn nearest(self: Arc<Self>, _vector: &[f32]) -> Result<Option<Box<dyn Ranked>>, ReadError> {
        Ok(None)
    }

    fn size_bytes(&self) -> u64 {
        self.tree.file.size_bytes()
    }

    fn contents(&self) -> IndexContents {
        IndexContents {
            terms: self.tree.tail.terms,
            cells: self.tree.tail.rows,
            rows: u64::from(self.tree.tail.sstable_rows),
        }
    }
}

/// A search. The place of a row is read only when the row is returned.
struct Search {
    terms: Arc<Terms>,
    numbers: Numbers,
    /// If partitions are indexed: the partition that a seek went into. The search does not return it again.
    passed: Option<DecoratedKey>,
}

impl Candidates for Search {
    fn next(&mut self) -> Result<Option<Candidate>, ReadError> {
        while let Some(number) = self.numbers.next(&self.terms.tree.file)? {
            let mut place = self.terms.rows.place(number)?;
            if self.terms.indexed.is_of_partitions() {
                if self.passed.as_ref() == Some(&place.key) {
                    continue;
                }
                place = Place::start_of(place.key);
            }
            return Ok(Some(Candidate { place, entry: None }));
        }
        Ok(None)
    }

    fn seek(&mut self, place: &Place) -> Result<(), ReadError> {
        if self.terms.indexed.is_of_partitions() && place.row != RowPart::Static {
            // An indexed partition has the number of one of its rows, perhaps one behind `place`.
            self.passed = Some(place.key.clone());
        }
        let number = self.terms.rows.number_from(place)?;
        self.numbers.seek(&self.terms.tree.file, number)
    }
}
