//! Secondary indexes: the interface that an index plugs into, and the indexes that Ilion brings.
//!
//! An [`IndexClass`] is registered under the class names that `CREATE CUSTOM INDEX ... USING` knows it by. It validates a
//! [`Definition`] and makes a [`SecondaryIndex`] of it, which keeps its entries in one of two ways ([`Storage`]):
//!
//! * **a hidden table** ([`HiddenTable`]): value -> primary keys, a table like any other (Cassandra's 2i). The entries
//!   that a write implies are applied with it, memtable to memtable; they are not logged, since a replay of the data makes them
//!   again; the hidden table is flushed before the table it belongs to.
//! * **attached** ([`Attached`]): a [`MemtableIndex`] beside each memtable and components beside each SSTable
//!   (Cassandra's SAI), written at flush and compaction by an [`SSTableIndexWriter`], made again if missing.
//!
//! Three laws hold for both. **A write never reads a file**: what an index learns of the past is the old row in the same
//! memtable. **Candidates are complete, not exact**: a search gives every row that matches, and may give some that match no more
//! (their old value was not in the memtable, a range deletion covers them, they expired); whoever asks reads the row and
//! checks it. **Candidates come in table order** ([`Place`]), so that those of several sources are united and those of several
//! predicates intersected by merging, and a page goes on where the last one ended.
//!
//! | module | what |
//! | --- | --- |
//! | `definition` | [`Definition`]: which column of which table, with which options |
//! | `predicate` | [`Predicate`]: what an index can be asked |
//! | `candidate` | [`Candidate`], [`Candidates`]: what it answers |
//! | `combine` | unions and intersections of candidates |
//! | `interface` | the traits |
//! | `registry` | [`IndexClasses`]: classes by name |
//! | `table_index` | [`TableIndexClass`]: the index in a hidden table |
//! | `vectors` | the index of a column of vectors, which [`Sai`] makes: the nearest ones |
//! | `row_numbers` | [`RowNumbersWriter`], [`RowNumbersFile`]: which row of an SSTable has which number |
//! | `sai` | [`Sai`], [`Sasi`]: terms beside memtables and SSTables |
//! | `paged` | component files with checked pages |

mod candidate;
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
