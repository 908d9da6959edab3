//! Indexes of vectors: `ORDER BY column ANN OF vector`.
//!
//! A storage-attached index on a `vector<float, n>` column has a graph of nearest vectors (`ilion_vector`) for each memtable,
//! and files of such graphs for each SSTable. It serves no predicate, only nearest vectors.
//!
//! | module | contents |
//! | --- | --- |
//! | `values` | the vector of a row |
//! | `comparison` | the graphs of an SSTable compared with its rows |
//! | `memtable` | the graph of a memtable |
//! | `gathered` | the graph of rows that are being written, adopted from a memtable if they come from one |
//! | `writer`, `sstable` | the graphs of an SSTable |
//! | `ranking` | places of the nearest vectors |

mod comparison;
mod gathered;
mod memtable;
mod ranking;
mod sstable;
#[cfg(test)]
mod tests;
mod values;
mod writer;

use std::sync::{Arc, Weak};

use ilion_env::Env;
use ilion_rows::Mutation;
use ilion_schema::{ColumnId, ColumnKind};
use ilion_types::CqlType;
use ilion_vector::{MemoryGraph, Options, Similarity};
use parking_lot::Mutex;

use self::gathered::Gathered;
use self::memtable::MemtableVectors;
use self::sstable::SSTableVectors;
use self::values::Values;
use self::writer::VectorsWriter;
use crate::{
    Attached, Definition, Error, MemtableIndex, Predicate, RowNumbers, SSTableIndex, SSTableIndexWriter,
    SecondaryIndex, Storage,
};

/// An index of a vector column.
pub(crate) struct VectorIndex {
    definition: Definition,
    values: Arc<Values>,
    /// Graphs of memtables, which flushes can adopt. Held to add a graph or to copy the list.
    graphs: Mutex<Vec<Weak<MemoryGraph>>>,
}

impl VectorIndex {
    /// True if the column is a vector of any type.
    pub(crate) fn is_of(definition: &Definition) -> bool {
        matches!(definition.column.ty, CqlType::Vector { .. })
    }

    /// The vector index of a definition.
    ///
    /// # Errors
    /// [`Error::Invalid`] with Cassandra's message: the column is not a vector of floats, or the options are invalid.
    pub(crate) fn of(definition: Definition) -> Result<Self, Error> {
        let values = Arc::new(check(&definition)?);
        Ok(Self {
            definition,
            values,
            graphs: Mutex::default(),
        })
    }
}

/// Compat: `StorageAttachedIndex.validateOptions` and `IndexWriterConfig` of Cassandra 5.0.
fn check(definition: &Definition) -> Result<Values, Error> {
    let column = &definition.column;
    let (dimension, element) = match &column.ty {
        CqlType::Vector { element, dimension } => (*dimension, &**element),
        ty => return invalid(format!("CQL type {ty} cannot have vector options")),
    };
    if *element != CqlType::Float {
        return invalid("SAI ANN indexes are only allowed on vector columns with float elements");
    }
    if column.kind == ColumnKind::PartitionKey {
        return invalid("SAI ANN indexes are not possible on columns of the partition key");
    }
    let options = Options::parse(&definition.schema.name, |name| definition.option(name));
    let options = options.or_else(|error| invalid(error.to_string()))?;
    if dimension == 1 && options.similarity == Similarity::Cosine {
        return invalid("Cosine similarity is not supported for single-dimension vectors");
    }
    if dimension > ilion_vector::DIMENSION_MAX {
        return invalid(format!(
            "SAI ANN indexes are only allowed on vectors of at most {} dimensions",
            ilion_vector::DIMENSION_MAX
        ));
    }
    Ok(Values::of(definition, dimension, options))
}

fn invalid<T>(message: impl Into<String>) -> Result<T, Error> {
    Err(Error::Invalid(message.into()))
}

impl SecondaryIndex for VectorIndex {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn serves(&self, _predicate: &Predicate) -> bool {
        false
    }

    fn ranks(&self) -> bool {
        true
    }

    fn check(&self, mutation: &Mutation) -> Result<(), Error> {
        let update = &mutation.update;
        for row in update.static_row.iter().chain(&update.rows) {
            if let Some(vector) = self.values.of_row(row) {
                let checked = self.values.options.similarity.check(&vector);
                checked.or_else(|error| invalid(error.to_string()))?;
            }
        }
        Ok(())
    }

    fn watches(&self) -> Option<ColumnId> {
        self.definition.column_of_cells()
    }

    fn storage(&self) -> Storage<'_> {
        Storage::Attached(self)
    }
}

impl Attached for VectorIndex {
    fn begin_memtable(&self) -> Arc<dyn MemtableIndex> {
        let graph = Arc::new(MemoryGraph::new(self.values.options));
        let mut graphs = self.graphs.lock();
        graphs.retain(|graph| graph.strong_count() > 0);
        graphs.push(Arc::downgrade(&graph));
        Arc::new(MemtableVectors::new(self.values.clone(), graph))
    }

    fn begin_sstable(&self, env: &Arc<dyn Env>, base: &str) -> Result<Box<dyn SSTableIndexWriter>, Error> {
        let name = &self.definition.schema.name;
        let gathered = Gathered::new(self.values.options, self.graphs.lock().clone());
        let writer = VectorsWriter::new(env, base, name, &self.values, gathered, writer::SEGMENT_BYTES);
        Ok(Box::new(writer))
    }

    fn open_sstable(
        &self,
        env: &Arc<dyn Env>,
        base: &str,
        rows: Arc<dyn RowNumbers>,
    ) -> Result<Arc<dyn SSTableIndex>, Error> {
        let name = &self.definition.schema.name;
        let vectors = SSTableVectors::open(env, base, name, &self.values, rows)?;
        Ok(Arc::new(vectors))
    }
}
