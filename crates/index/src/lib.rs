//! Secondary indexes: the interface for kinds of indexes, and Ilion's own kinds.
//!
//! An [`IndexClass`] is registered under its class names for `CREATE CUSTOM INDEX ... USING`. It validates a [`Definition`] and
//! opens a [`SecondaryIndex`], which stores its entries in one of two ways ([`Storage`]):
//!
//! * **in a hidden table** ([`HiddenTable`]), which maps values to primary keys (Cassandra's 2i). The entries of a write are
//!   applied together with it, memtable to memtable. They are not logged, since a replay of the data makes them again. The
//!   hidden table is flushed before its base table.
//! * **attached** ([`Attached`]): a [`MemtableIndex`] for each memtable, and components of each SSTable (Cassandra's SAI),
//!   which an [`SSTableIndexWriter`] writes at flush and compaction. They are built again if missing.
//!
//! Three laws hold for both. **A write never reads a file**: an index sees only the old row in the same memtable. **Candidates
//! are complete, not exact**: a search returns every row that matches, and may return rows that no longer match (their old
//! value was not in the memtable, a range deletion covers them, they expired). The caller reads the row and checks it.
//! **Candidates come in table order** ([`Place`]). So merging unites the candidates of several sources and intersects those of
//! several predicates, and a page continues where the last one ended.
//!
//! | module | contents |
//! | --- | --- |
//! | `definition` | [`Definition`]: the indexed column of a table, with options |
//! | `predicate` | [`Predicate`]: the searches of an index |
//! | `candidate` | [`Candidate`], [`Candidates`]: their results |
//! | `clustering_bytes` | clusterings in files |
//! | `combine` | unions and intersections of candidates |
//! | `interface` | the traits |
//! | `registry` | [`IndexClasses`]: index classes by name |
//! | `table_index` | [`TableIndexClass`]: the index in a hidden table |
//! | `vectors` | the index of a vector column, which [`Sai`] opens: nearest vectors |
//! | `row_numbers` | [`RowNumbersWriter`], [`RowNumbersFile`]: the rows of an SSTable by number |
//! | `sai` | [`Sai`], [`Sasi`]: terms attached to memtables and SSTables |
//! | `paged` | component files with checked pages |

mod candidate;
mod clustering_bytes;
mod combine;
mod definition;
mod interface;
mod paged;
mod predicate;
mod registry;
mod row_numbers;
mod sai;
mod table_index;
mod vectors;

pub use candidate::{Candidate, Candidates, EntryMark, NoCandidates, Place, Ranked, RowPart};
pub use combine::{Intersection, Union};
pub use definition::Definition;
pub use ilion_rows::{Before, RowChange};
pub use interface::{
    Attached, Comparison, Error, Estimate, HiddenTable, IndexClass, IndexContents, MemtableIndex, RowNumbers,
    SSTableIndex, SSTableIndexWriter, SecondaryIndex, Storage, When,
};
pub use predicate::{Limit, Predicate};
pub use registry::IndexClasses;
pub use row_numbers::{RowNumbersFile, RowNumbersWriter};
pub use sai::{Sai, Sasi};
pub use table_index::TableIndexClass;
