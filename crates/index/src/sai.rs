//! Storage-attached indexes: terms of each memtable and each SSTable.
//!
//! A value becomes a *term*: bytes in the order of the values. A memtable has its terms with the places of their rows in sorted
//! runs. An SSTable has a file of terms with the numbers of their rows ([`crate::RowNumbersFile`] has the places). The file is
//! written at flush and compaction from the rows themselves; `docs/format/sai.md` describes it.
//!
//! A search turns a predicate into ranges of terms (`indexed`, `lookup`), finds lists of row numbers for them (`tree_file`),
//! and unites the lists while they are read (`numbers`). The place of a row is only read when the row is returned, so rows
//! beyond a LIMIT cost no read.
//!
//! A column of vectors has no terms: its index is a [`VectorIndex`].
//!
//! | module | contents |
//! | --- | --- |
//! | `options`, `sasi` | options of both classes, and Cassandra's messages about them |
//! | `term`, `analyzer`, `patterns` | terms of values |
//! | `indexed` | the terms of a row, and the terms that a predicate needs |
//! | `lookup` | ranges of terms |
//! | `entry`, `memtable`, `memtable_runs`, `memtable_search` | the terms of a memtable |
//! | `sorter` | sorts terms, with runs in files if they are many |
//! | `tree`, `tree_writer`, `tree_file`, `coded_terms` | the file of terms |
//! | `postings`, `numbers` | lists of row numbers, and their union |
//! | `sstable` | the terms of an SSTable |
//!
//! When you change how values become terms, change the version in `tree`, so that files are built again.

mod analyzer;
mod coded_terms;
mod entry;
mod indexed;
mod lookup;
mod memtable;
mod memtable_runs;
mod memtable_search;
mod numbers;
mod options;
mod patterns;
mod postings;
mod sasi;
mod sorter;
mod sstable;
mod term;
#[cfg(test)]
mod tests;
mod tree;
mod tree_file;
mod tree_writer;

use std::sync::Arc;

use ilion_env::Env;
use ilion_schema::ColumnId;

use entry::Layout;
use indexed::Indexed;
use memtable::MemtableTerms;
use patterns::Patterns;

use crate::vectors::VectorIndex;
use crate::{
    Attached, Definition, Error, IndexClass, MemtableIndex, Predicate, RowNumbers, SSTableIndex,
    SSTableIndexWriter, SecondaryIndex, Storage,
};

/// Cassandra's `StorageAttachedIndex`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sai;

impl IndexClass for Sai {
    fn names(&self) -> &[&str] {
        &[
            "org.apache.cassandra.index.sai.StorageAttachedIndex",
            "StorageAttachedIndex",
            "sai",
        ]
    }

    fn validate(&self, definition: &Definition) -> Result<(), Error> {
        options::check(definition)?;
        if VectorIndex::is_of(definition) {
            VectorIndex::of(definition.clone())?;
        }
        Ok(())
    }

    fn open(&self, definition: Definition) -> Result<Arc<dyn SecondaryIndex>, Error> {
        let analyzer = options::check(&definition)?;
        if VectorIndex::is_of(&definition) {
            return Ok(Arc::new(VectorIndex::of(definition)?));
        }
        let indexed = Indexed::of(&definition, analyzer, Patterns::None);
        Ok(Arc::new(SaiIndex::new(definition, indexed)))
    }
}

/// Cassandra's `SASIIndex`, with the same files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sasi;

impl IndexClass for Sasi {
    fn names(&self) -> &[&str] {
        &["org.apache.cassandra.index.sasi.SASIIndex", "SASIIndex"]
    }

    fn validate(&self, definition: &Definition) -> Result<(), Error> {
        sasi::check(definition).map(drop)
    }

    fn open(&self, definition: Definition) -> Result<Arc<dyn SecondaryIndex>, Error> {
        let options = sasi::check(&definition)?;
        let indexed = Indexed::of_sasi(&definition, &options);
        Ok(Arc::new(SaiIndex {
            memory_bytes: options.memory_bytes,
            ..SaiIndex::new(definition, indexed)
        }))
    }
}

/// One index of a table.
struct SaiIndex {
    definition: Definition,
    indexed: Arc<Indexed>,
    layout: Layout,
    /// Memory for terms while an SSTable is written.
    memory_bytes: usize,
}

impl SaiIndex {
    fn new(definition: Definition, indexed: Indexed) -> Self {
        Self {
            layout: Layout::of(&definition.table),
            definition,
            indexed: Arc::new(indexed),
            memory_bytes: sorter::MEMORY_BYTES,
        }
    }
}

impl SecondaryIndex for SaiIndex {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn serves(&self, predicate: &Predicate) -> bool {
        self.indexed.lookup(predicate).is_some()
    }

    fn passes(&self, predicate: &Predicate, value: &[u8]) -> Option<bool> {
        self.indexed.passes(predicate, value)
    }

    fn refuses(&self) -> bool {
        false
    }

    fn watches(&self) -> Option<ColumnId> {
        self.definition.column_of_cells()
    }

    fn storage(&self) -> Storage<'_> {
        Storage::Attached(self)
    }
}

impl Attached for SaiIndex {
    fn begin_memtable(&self) -> Arc<dyn MemtableIndex> {
        Arc::new(MemtableTerms::new(self.indexed.clone(), self.layout.clone()))
    }

    fn begin_sstable(&self, env: &Arc<dyn Env>, base: &str) -> Result<Box<dyn SSTableIndexWriter>, Error> {
        Ok(Box::new(sstable::Writer::new(
            env,
            base,
            &self.definition.schema.name,
            &self.indexed,
            self.layout.has_clusterings(),
            self.memory_bytes,
        )))
    }

    fn open_sstable(
        &self,
        env: &Arc<dyn Env>,
        base: &str,
        rows: Arc<dyn RowNumbers>,
    ) -> Result<Arc<dyn SSTableIndex>, Error> {
        let name = &self.definition.schema.name;
        Ok(Arc::new(sstable::Terms::open(
            env,
            base,
            name,
            &self.indexed,
            rows,
        )?))
    }
}
