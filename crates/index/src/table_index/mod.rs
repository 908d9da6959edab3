//! The table index (Cassandra's 2i): a hidden table whose partitions are the indexed values, and whose rows are the primary
//! keys of the rows with this value.
//!
//! ```text
//! partition key: the value                 ordered by its type, not by a hash
//! clustering:    partition_key             the base's partition key, ordered by its token
//!                the base's clusterings    but the indexed one; null if the row is static
//!                cell_path                 if values of a collection are indexed: which element
//! no other columns: an entry is the liveness of its row
//! ```
//!
//! An entry of a cell has the cell's timestamp and TTL, so it reconciles like the cell: the removal of an entry, with the
//! timestamp of its cell, hides no entry of a newer cell. Entries of key columns stand for rows, which many cells keep alive.
//! They have timestamps of the index's own, above all earlier ones, and do not expire. They are removed only after a read has
//! found that the row is gone. Cassandra gives them the newest timestamp and the TTL of the row, and so loses rows when only a
//! part of them expires.
//!
//! Compat: `CassandraIndex`, `CassandraIndexFunctions` and the classes of `index.internal.composites`. Schema and file layout
//! are the same, so either program can open a directory of the other.
//!
//! | module | contents |
//! | --- | --- |
//! | `source` | the source of indexed values |
//! | `hidden` | the schema of the hidden table |
//! | `entry` | entries that a change of a row adds and removes |
//! | `search` | partitions to read, candidates, stale entries |

mod entry;
mod hidden;
mod search;
mod source;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use ilion_rows::{Bound, DecoratedKey, Entry, EntryPlace, KeyRange, Mutation, ReadError, Row};
use ilion_schema::{ColumnId, TableSchema};

use crate::{
    Candidate, Definition, EntryMark, Error, HiddenTable, IndexClass, Place, Predicate, RowChange,
    SecondaryIndex, Storage, When,
};
use source::Source;

/// Cassandra refuses values of this length and longer ones.
const VALUE_LEN_LIMIT: usize = 65535;

/// The class of indexes that CREATE INDEX makes if no class is given.
#[derive(Clone, Copy, Debug, Default)]
pub struct TableIndexClass;

impl IndexClass for TableIndexClass {
    fn names(&self) -> &[&str] {
        &[
            "org.apache.cassandra.index.internal.CassandraIndex",
            "legacy_local_table",
        ]
    }

    fn validate(&self, definition: &Definition) -> Result<(), Error> {
        Source::of(definition).map(|_| ())
    }

    fn open(&self, definition: Definition) -> Result<Arc<dyn SecondaryIndex>, Error> {
        Ok(Arc::new(TableIndex::of(definition)?))
    }
}

/// An index in a hidden table.
struct TableIndex {
    definition: Definition,
    source: Source,
    hidden: Arc<TableSchema>,
}

impl TableIndex {
    fn of(definition: Definition) -> Result<Self, Error> {
        let source = Source::of(&definition)?;
        Ok(Self {
            hidden: hidden::schema(&definition, source),
            source,
            definition,
        })
    }

    /// The key of a value in the hidden table.
    fn value_key(&self, value: bytes::Bytes) -> DecoratedKey {
        DecoratedKey::new(self.hidden.partitioner(self.definition.partitioner), value)
    }
}

impl SecondaryIndex for TableIndex {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn serves(&self, predicate: &Predicate) -> bool {
        self.values_of(predicate).is_some()
    }

    fn check(&self, mutation: &Mutation) -> Result<(), Error> {
        let longest = self.longest_value(mutation);
        if longest < VALUE_LEN_LIMIT {
            return Ok(());
        }
        let (table, index) = (&self.definition.table, &self.definition.schema.name);
        Err(Error::Invalid(format!(
            "Cannot index value of size {longest} for index {index} on {}.{}({}) (maximum allowed size={VALUE_LEN_LIMIT})",
            table.keyspace, table.name, self.definition.column.name
        )))
    }

    fn watches(&self) -> Option<ColumnId> {
        self.definition.column_of_cells()
    }

    fn storage(&self) -> Storage<'_> {
        Storage::HiddenTable(self)
    }
}

impl HiddenTable for TableIndex {
    fn table(&self) -> &Arc<TableSchema> {
        &self.hidden
    }

    fn each_entry(
        &self,
        key: &DecoratedKey,
        change: RowChange<'_>,
        when: &dyn When,
        take: &mut dyn FnMut(&EntryPlace<'_>, &[Entry<'_>]),
    ) {
        self.entries_of(key, change, when, take);
    }

    fn lookup(&self, predicate: &Predicate) -> Option<Vec<KeyRange>> {
        self.ranges_of(predicate)
    }

    fn candidate(&self, value: &DecoratedKey, entry: &Row) -> Result<Candidate, ReadError> {
        self.candidate_of(value, entry)
    }

    fn seek(&self, place: &Place) -> Bound {
        self.bound_before(place)
    }

    fn is_stale(&self, entry: &EntryMark, row: Option<&Row>) -> bool {
        self.is_entry_stale(entry, row)
    }

    fn removal(&self, entry: &EntryMark, now_secs: u32) -> Mutation {
        self.removal_of(entry, now_secs)
    }
}
