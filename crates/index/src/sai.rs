//! Storage-attached indexes: terms beside each memtable and each SSTable.
//!
//! A value becomes a *term*, bytes in the order of the values. A memtable has its terms with the places of their rows in a
//! sorted set; an SSTable has a file of terms with the numbers of their rows ([`crate::RowNumbersFile`] knows where those are),
//! written at flush and compaction from the rows themselves. `docs/format/sai.md` tells the file.
//!
//! A search turns a predicate into ranges of terms (`indexed`, `lookup`), finds lists of row numbers for them (`tree_file`),
//! unites the lists while they are read (`numbers`) and asks for the place of a row when it is given: nothing is read for rows
//! that a LIMIT leaves out.
//!
//! A column of vectors has no terms: its index is a [`VectorIndex`].
//!
//! | module | what |
//! | --- | --- |
//! | `options`, `sasi` | options of both classes and what Cassandra says of them |
//! | `term`, `analyzer`, `patterns` | values as terms |
//! | `indexed` | what of a row is indexed; what a predicate looks up |
//! | `lookup` | ranges of terms |
//! | `entry`, `memtable`, `memtable_search` | the terms of a memtable |
//! | `sorter` | terms in any order to terms in order, by runs in files if they are many |
//! | `tree`, `tree_writer`, `tree_file` | the file of terms |
//! | `postings`, `numbers` | lists of row numbers, and their union |
//! | `sstable` | the terms of an SSTable |
//!
//! When you change what becomes a term, change the version in `tree`, so that files are made again.

mod analyzer;
mod entry;
mod indexed;
mod lookup;
mod memtable;
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

/// Cassandra's `SASIIndex`, served by the same files.
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
    /// For terms while an SSTable is written.
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
