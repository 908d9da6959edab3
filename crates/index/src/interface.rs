//! The interface between an index and the engine.

use std::path::PathBuf;
use std::sync::Arc;

use ilion_env::Env;
use ilion_rows::{DecoratedKey, Entry, EntryPlace, KeyRange, Mutation, PlainRow, ReadError, Row, RowChange};
use ilion_schema::{ColumnId, TableSchema};

use crate::{Candidate, Candidates, Definition, EntryMark, Place, Predicate, Ranked};

/// Why an index could not be created, written or opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The definition is not possible. The client gets an invalid request.
    #[error("{0}")]
    Invalid(String),
    /// The options are not possible. The client gets an error of configuration, as from Cassandra.
    #[error("{0}")]
    Config(String),
    /// A component of an attached index is damaged, missing, or has another version: the caller builds it again.
    #[error("the index component {} cannot be used: {reason}", file.display())]
    Unusable {
        /// The file.
        file: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The operating system returned an error.
    #[error(transparent)]
    Env(#[from] ilion_env::Error),
    /// The indexed data could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl From<ilion_pages::Error> for Error {
    fn from(error: ilion_pages::Error) -> Self {
        match error {
            ilion_pages::Error::Corrupt { file, expected, .. } => Self::Unusable {
                file,
                reason: format!("expected {expected}"),
            },
            ilion_pages::Error::Env(error) => Self::Env(error),
        }
    }
}

/// A kind of index, registered with the engine under its class names.
pub trait IndexClass: Send + Sync {
    /// The names for `USING`, compared without case; the full name comes first.
    fn names(&self) -> &[&str];

    /// Validates a definition for CREATE INDEX: type of the column, part of the collection, options. Pure.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the message for the client.
    fn validate(&self, definition: &Definition) -> Result<(), Error>;

    /// Opens the index. Called at CREATE INDEX, at the start, and after each ALTER of the table; does no I/O.
    ///
    /// # Errors
    /// The definition is not possible.
    fn open(&self, definition: Definition) -> Result<Arc<dyn SecondaryIndex>, Error>;
}

/// One index of one table.
pub trait SecondaryIndex: Send + Sync {
    /// The definition of the index.
    fn definition(&self) -> &Definition;

    /// True if the index can search for the predicate. The caller checks all rows found, whatever this returns.
    fn serves(&self, predicate: &Predicate) -> bool;

    /// Whether a value matches a predicate by the rules of this index's analyzer. `None`, the default, means CQL's comparison.
    /// The value is that of the column, or an element, key or value of a collection. Pure.
    fn passes(&self, _predicate: &Predicate, _value: &[u8]) -> Option<bool> {
        None
    }

    /// The only column that the entries depend on, besides the key. If set, the old row of a change, and a row that is written
    /// to an SSTable, may have only this column. `None` if the index needs more columns, or must know whether the row is live.
    fn watches(&self) -> Option<ColumnId> {
        None
    }

    /// True if the index can find nearest vectors ([`SSTableIndex::nearest`]).
    fn ranks(&self) -> bool {
        false
    }

    /// True if [`Self::check`] may fail; if false, it is not called.
    fn refuses(&self) -> bool {
        true
    }

    /// Refuses a mutation of the table with values that the index cannot store, before the write. Pure. Values that were written, or logged
    /// in a cluster, before the index existed come without this check: the index skips those that it cannot store.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the message for the client.
    fn check(&self, _mutation: &Mutation) -> Result<(), Error> {
        Ok(())
    }

    /// Where the index stores its entries.
    fn storage(&self) -> Storage<'_>;
}

/// Where an index stores its entries.
pub enum Storage<'i> {
    /// In a hidden table.
    HiddenTable(&'i dyn HiddenTable),
    /// Attached to memtables and SSTables.
    Attached(&'i dyn Attached),
}

/// The time of a change, computed only if it is needed.
pub trait When {
    /// The wall clock.
    fn now_secs(&self) -> u32;

    /// A timestamp above those of all earlier entries of the index, even if the clock was set back.
    fn entry_micros(&self) -> i64;
}

/// An estimate of a search, for planning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Number of rows.
    pub rows: u64,
    /// Number of files that may be read.
    pub files: u64,
}

/// An index in a hidden table, which maps values to primary keys.
pub trait HiddenTable: Send + Sync {
    /// The hidden table. As in Cassandra, its name is `<table>.<index>`, and its directory is `.<index>` in that of the table.
    fn table(&self) -> &Arc<TableSchema>;

    /// Calls `take` with the entries that a change of a row adds and removes, the few entries of one place together. Rows that
    /// the index does not cover have no entries. Called for each written row.
    fn each_entry(
        &self,
        key: &DecoratedKey,
        change: RowChange<'_>,
        when: &dyn When,
        take: &mut dyn FnMut(&EntryPlace<'_>, &[Entry<'_>]),
    );

    /// The entries of `each_entry` as mutations of the hidden table.
    fn entries(&self, key: &DecoratedKey, change: RowChange<'_>, when: &dyn When) -> Vec<Mutation> {
        let mut mutations = Vec::new();
        self.each_entry(key, change, when, &mut |place, entries| {
            let entries = entries.iter();
            mutations.extend(entries.map(|entry| entry.to_mutation(place, self.table())));
        });
        mutations
    }

    /// The partitions of the hidden table that may have results, in small ranges; `None` if the index does not serve the
    /// predicate.
    fn lookup(&self, predicate: &Predicate) -> Option<Vec<KeyRange>>;

    /// The candidate of a live entry.
    ///
    /// # Errors
    /// The entry cannot be decoded, which means damage.
    fn candidate(&self, value: &DecoratedKey, entry: &Row) -> Result<Candidate, ReadError>;

    /// The bound just before the entries of a place, to start or continue there.
    fn seek(&self, place: &Place) -> ilion_rows::Bound;

    /// True if a row (`None` if it is not live) no longer has the value of the entry.
    fn is_stale(&self, entry: &EntryMark, row: Option<&Row>) -> bool;

    /// The removal of an entry, with the entry's own timestamp.
    fn removal(&self, entry: &EntryMark, now_secs: u32) -> Mutation;
}

/// An index attached to memtables and SSTables.
pub trait Attached: Send + Sync {
    /// Starts the index of a new memtable.
    fn begin_memtable(&self) -> Arc<dyn MemtableIndex>;

    /// Starts the index of an SSTable that is being written by flush, compaction or build. `base` is the path of its components
    /// up to the last hyphen (`.../nb-1-big-`); file names continue with `Index+<index name>`.
    ///
    /// # Errors
    /// A file cannot be created.
    fn begin_sstable(&self, env: &Arc<dyn Env>, base: &str) -> Result<Box<dyn SSTableIndexWriter>, Error>;

    /// Opens the index of an SSTable whose rows have these numbers. Reads little, since the start waits for it.
    ///
    /// # Errors
    /// [`Error::Unusable`] if it must be built again.
    fn open_sstable(
        &self,
        env: &Arc<dyn Env>,
        base: &str,
        rows: Arc<dyn RowNumbers>,
    ) -> Result<Arc<dyn SSTableIndex>, Error>;
}

/// The rows of an SSTable by number, in table order, including static rows. All attached indexes of an SSTable share it.
pub trait RowNumbers: Send + Sync {
    /// Number of rows.
    fn len(&self) -> u32;

    /// True if there are no rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The place of a row.
    ///
    /// # Errors
    /// The file cannot be read, or has no such row.
    fn place(&self, number: u32) -> Result<Place, ReadError>;

    /// The number of the first row at a place or after it; [`Self::len`] if there is none.
    ///
    /// # Errors
    /// The file cannot be read.
    fn number_from(&self, place: &Place) -> Result<u32, ReadError>;
}

/// The entries of one memtable.
pub trait MemtableIndex: Send + Sync {
    /// Applies a change of a row of the partition. Called under the lock of the memtable's shard, by many threads at once. Key
    /// and rows are slices of the client's request, so copy what is kept. `scratch` is a buffer to reuse. Returns the growth of
    /// memory in bytes.
    fn apply(&self, key: &DecoratedKey, change: RowChange<'_>, scratch: &mut Vec<u8>) -> isize;

    /// An estimate of [`Self::search`].
    fn estimate(&self, predicate: &Predicate) -> Estimate;

    /// Rows that may match. Writes may continue; all changes applied before the call are found.
    fn search(&self, predicate: &Predicate) -> Box<dyn Candidates>;

    /// Rows in order of nearness to `vector`; `None` if the index has no vectors.
    fn nearest(&self, vector: &[f32]) -> Option<Box<dyn Ranked>>;
}

/// Writes the index of one SSTable. Its rows are added in order.
pub trait SSTableIndexWriter: Send {
    /// Adds a row of the partition, static or not, including tombstones. `number` counts the rows of the SSTable from 0.
    /// Columns that no index of the table watches may be missing.
    ///
    /// # Errors
    /// A file cannot be written.
    fn add(&mut self, number: u32, key: &DecoratedKey, row: &Row) -> Result<(), Error>;

    /// Adds a plain row that is its whole partition; its token is set. Returns false if it was not added, and must be added
    /// with [`Self::add`].
    ///
    /// # Errors
    /// Those of [`Self::add`].
    fn add_plain(&mut self, _number: u32, _row: &PlainRow<'_>) -> Result<bool, Error> {
        Ok(false)
    }

    /// Completes and syncs the components. The caller syncs the directory.
    ///
    /// # Errors
    /// A file cannot be written.
    fn finish(self: Box<Self>) -> Result<(), Error>;

    /// Removes the written files.
    fn abandon(self: Box<Self>);
}

/// The entries of one SSTable.
pub trait SSTableIndex: Send + Sync {
    /// An estimate of [`Self::search`].
    fn estimate(&self, predicate: &Predicate) -> Estimate;

    /// Rows that may match.
    ///
    /// # Errors
    /// A file cannot be read.
    fn search(self: Arc<Self>, predicate: &Predicate) -> Result<Box<dyn Candidates>, ReadError>;

    /// Rows by nearness of their vectors; `None` if the index does not rank.
    ///
    /// # Errors
    /// A file cannot be read.
    fn nearest(self: Arc<Self>, vector: &[f32]) -> Result<Option<Box<dyn Ranked>>, ReadError>;

    /// Starts a comparison with the rows of the SSTable; `None` if the files are always equal to those that a new build makes.
    ///
    /// # Errors
    /// A file cannot be read. Damage is not an error, but a difference.
    fn begin_comparison(self: Arc<Self>) -> Result<Option<Box<dyn Comparison>>, ReadError> {
        Ok(None)
    }

    /// Size of its files in bytes.
    fn size_bytes(&self) -> u64;

    /// What it contains, for operators. Costs no I/O.
    fn contents(&self) -> IndexContents {
        IndexContents::default()
    }
}

/// Compares the index of an SSTable with the SSTable's rows.
pub trait Comparison: Send {
    /// Adds a row, as [`SSTableIndexWriter::add`] does.
    fn add(&mut self, number: u32, key: &DecoratedKey, row: &Row);

    /// True if the index has exactly the entries of these rows.
    fn is_same(self: Box<Self>) -> bool;
}

/// What the index of an SSTable contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexContents {
    /// Number of different terms.
    pub terms: u64,
    /// Number of pairs of term and row.
    pub cells: u64,
    /// Number of rows of the SSTable, indexed or not.
    pub rows: u64,
}
