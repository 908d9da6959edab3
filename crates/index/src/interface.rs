//! What an index has to do, and what the engine does with it.

use std::path::PathBuf;
use std::sync::Arc;

use ilion_env::Env;
use ilion_rows::{DecoratedKey, Entry, EntryPlace, KeyRange, Mutation, PlainRow, ReadError, Row, RowChange};
use ilion_schema::{ColumnId, TableSchema};

use crate::{Candidate, Candidates, Definition, EntryMark, Place, Predicate, Ranked};

/// Why an index could not be made, written or opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The definition is not possible. Told to the client as an invalid request.
    #[error("{0}")]
    Invalid(String),
    /// The options are not possible. Told to the client as an error of configuration, as Cassandra does.
    #[error("{0}")]
    Config(String),
    /// A component of an attached index is damaged, of another version or absent: it is made again.
    #[error("the index component {} cannot be used: {reason}", file.display())]
    Unusable {
        /// Which file.
        file: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The operating system refused.
    #[error(transparent)]
    Env(#[from] ilion_env::Error),
    /// The data below could not be read.
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

/// A kind of index. Registered with the engine under its class names.
pub trait IndexClass: Send + Sync {
    /// The names that `USING` knows it by, compared without regard to case; the full one first.
    fn names(&self) -> &[&str];

    /// Checks a definition for CREATE INDEX: type of the column, part of the collection, options. Pure.
    ///
    /// # Errors
    /// [`Error::Invalid`] with what the client is told.
    fn validate(&self, definition: &Definition) -> Result<(), Error>;

    /// Makes the index. Called at CREATE INDEX, at the start and after each ALTER of the table; does no I/O.
    ///
    /// # Errors
    /// The definition is not possible.
    fn open(&self, definition: Definition) -> Result<Arc<dyn SecondaryIndex>, Error>;
}

/// One index of one table.
pub trait SecondaryIndex: Send + Sync {
    /// What it is of.
    fn definition(&self) -> &Definition;

    /// True if a search for the predicate is possible. Whoever asks checks the rows found, whatever the index says.
    fn serves(&self, predicate: &Predicate) -> bool;

    /// Whether a value passes a predicate as this index understands it; `None`: as CQL compares, which is all that an index
    /// without an analyzer knows. The value is the column's, or one element, key or value of a collection. Pure.
    fn passes(&self, _predicate: &Predicate, _value: &[u8]) -> Option<bool> {
        None
    }

    /// The column to which its entries go back, with the key of the row: there may be no other in what it is shown of a row before a change,
    /// and of one that is written to an SSTable. Nothing: it looks at more, or at whether a row lives.
    fn watches(&self) -> Option<ColumnId> {
        None
    }

    /// True if it can find the nearest vectors ([`SSTableIndex::nearest`]).
    fn ranks(&self) -> bool {
        false
    }

    /// False: [`Self::check`] refuses nothing, and is not asked.
    fn refuses(&self) -> bool {
        true
    }

    /// Refuses a mutation of its table whose values it could not hold, before anything is written. Pure.
    ///
    /// # Errors
    /// [`Error::Invalid`] with what the client is told.
    fn check(&self, _mutation: &Mutation) -> Result<(), Error> {
        Ok(())
    }

    /// Where it keeps its entries.
    fn storage(&self) -> Storage<'_>;
}

/// Where an index keeps its entries.
pub enum Storage<'i> {
    /// In a hidden table.
    HiddenTable(&'i dyn HiddenTable),
    /// Beside memtables and SSTables.
    Attached(&'i dyn Attached),
}

/// When a row changes, told if it matters.
pub trait When {
    /// By the clock.
    fn now_secs(&self) -> u32;

    /// Greater than the timestamp of every entry that the index had before, wherever the clock stands.
    fn entry_micros(&self) -> i64;
}

/// How many rows a search may give, for planning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Rows.
    pub rows: u64,
    /// Files that may be read for it.
    pub files: u64,
}

/// An index in a hidden table: value -> primary keys.
pub trait HiddenTable: Send + Sync {
    /// The hidden table. Its name is `<table>.<index>`, its directory `.<index>` in that of the table, as Cassandra has it.
    fn table(&self) -> &Arc<TableSchema>;

    /// Tells the entries that a change of a row of this partition adds and removes, those of one place together if they are few.
    /// Rows that the index does not look at change nothing. Called for each row that is written.
    fn each_entry(
        &self,
        key: &DecoratedKey,
        change: RowChange<'_>,
        when: &dyn When,
        take: &mut dyn FnMut(&EntryPlace<'_>, &[Entry<'_>]),
    );

    /// The same as mutations of the hidden table.
    fn entries(&self, key: &DecoratedKey, change: RowChange<'_>, when: &dyn When) -> Vec<Mutation> {
        let mut mutations = Vec::new();
        self.each_entry(key, change, when, &mut |place, entries| {
            let entries = entries.iter();
            mutations.extend(entries.map(|entry| entry.to_mutation(place, self.table())));
        });
        mutations
    }

    /// The partitions of the hidden table that have what is asked for, in ranges of few partitions; `None` if it does not serve
    /// the predicate.
    fn lookup(&self, predicate: &Predicate) -> Option<Vec<KeyRange>>;

    /// The candidate of an entry that lives. An entry that does not decode is damage.
    ///
    /// # Errors
    /// The entry does not decode.
    fn candidate(&self, value: &DecoratedKey, entry: &Row) -> Result<Candidate, ReadError>;

    /// The row of the hidden table just before which the entries of a place stand, to begin or go on there.
    fn seek(&self, place: &Place) -> ilion_rows::Bound;

    /// True if a row (nothing: it does not live) does not have the value of the entry any more.
    fn is_stale(&self, entry: &EntryMark, row: Option<&Row>) -> bool;

    /// Removes an entry, with the entry's own timestamp.
    fn removal(&self, entry: &EntryMark, now_secs: u32) -> Mutation;
}

/// An index beside memtables and SSTables.
pub trait Attached: Send + Sync {
    /// For a memtable that begins empty.
    fn begin_memtable(&self) -> Arc<dyn MemtableIndex>;

    /// For an SSTable that is being written, by flush, compaction or build. `base` is the path of its components up to the
    /// last hyphen (`.../nb-1-big-`); names of files begin with it, and go on with `Index+<index name>`.
    ///
    /// # Errors
    /// A file cannot be made.
    fn begin_sstable(&self, env: &Arc<dyn Env>, base: &str) -> Result<Box<dyn SSTableIndexWriter>, Error>;

    /// For an SSTable that is there, whose rows have these numbers. Reads little: start-up waits for it.
    ///
    /// # Errors
    /// [`Error::Unusable`] if it has to be built.
    fn open_sstable(
        &self,
        env: &Arc<dyn Env>,
        base: &str,
        rows: Arc<dyn RowNumbers>,
    ) -> Result<Arc<dyn SSTableIndex>, Error>;
}

/// The rows of an SSTable by number, static rows among them, in table order. All attached indexes of an SSTable share it.
pub trait RowNumbers: Send + Sync {
    /// How many rows there are.
    fn len(&self) -> u32;

    /// True if there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where a row is.
    ///
    /// # Errors
    /// The file cannot be read, or there is no such row.
    fn place(&self, number: u32) -> Result<Place, ReadError>;

    /// The first row at a place or after it; [`Self::len`] if there is none.
    ///
    /// # Errors
    /// The file cannot be read.
    fn number_from(&self, place: &Place) -> Result<u32, ReadError>;
}

/// The entries of one memtable.
pub trait MemtableIndex: Send + Sync {
    /// Takes in a change of a row of the partition. Called under the lock of the memtable's shard, by many threads at once.
    /// Key and rows are slices of what the client sent: whoever keeps them copies them. `scratch` is memory to use. Returns by how many bytes
    /// it grew.
    fn apply(&self, key: &DecoratedKey, change: RowChange<'_>, scratch: &mut Vec<u8>) -> isize;

    /// How many rows [`Self::search`] may give.
    fn estimate(&self, predicate: &Predicate) -> Estimate;

    /// Rows that may match. Writes go on meanwhile: what was applied before the call is found.
    fn search(&self, predicate: &Predicate) -> Box<dyn Candidates>;

    /// Rows by nearness of their vectors; `None` if the index does not rank.
    fn nearest(&self, vector: &[f32]) -> Option<Box<dyn Ranked>>;
}

/// Writes the entries of one SSTable, told its rows in order.
pub trait SSTableIndexWriter: Send {
    /// A row of the partition, static or not, tombstones and all; `number` counts the rows of the SSTable from 0. Columns that no index
    /// of the table watches may be left out.
    ///
    /// # Errors
    /// A file cannot be written.
    fn add(&mut self, number: u32, key: &DecoratedKey, row: &Row) -> Result<(), Error>;

    /// A row that is all of its partition, where it lies; it has its token. False if it is to be added as any row is: nothing was added
    /// then.
    ///
    /// # Errors
    /// As for [`Self::add`].
    fn add_plain(&mut self, _number: u32, _row: &PlainRow<'_>) -> Result<bool, Error> {
        Ok(false)
    }

    /// Completes and syncs the components. The directory is synced by the caller.
    ///
    /// # Errors
    /// A file cannot be written.
    fn finish(self: Box<Self>) -> Result<(), Error>;

    /// Removes what was written.
    fn abandon(self: Box<Self>);
}

/// The entries of one SSTable.
pub trait SSTableIndex: Send + Sync {
    /// How many rows [`Self::search`] may give.
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

    /// Begins to compare it with the rows of its SSTable; `None` if its files are those that the same rows would make once more.
    ///
    /// # Errors
    /// A file cannot be read. Damage is no error, but a difference.
    fn begin_comparison(self: Arc<Self>) -> Result<Option<Box<dyn Comparison>>, ReadError> {
        Ok(None)
    }

    /// Bytes of its files.
    fn size_bytes(&self) -> u64;

    /// What it holds, for whoever looks after it. Known without I/O.
    fn contents(&self) -> IndexContents {
        IndexContents::default()
    }
}

/// Compares the index of an SSTable with its rows.
pub trait Comparison: Send {
    /// A row, as [`SSTableIndexWriter::add`] is told.
    fn add(&mut self, number: u32, key: &DecoratedKey, row: &Row);

    /// True if the index has what the rows say and nothing else.
    fn is_same(self: Box<Self>) -> bool;
}

/// What the index of an SSTable holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexContents {
    /// Terms that differ.
    pub terms: u64,
    /// Terms of rows: a row counts for each of its terms.
    pub cells: u64,
    /// Rows of the SSTable, indexed or not.
    pub rows: u64,
}
