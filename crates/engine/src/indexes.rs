//! Secondary indexes: what they are asked.

use std::sync::Arc;

use ilion_index::{Candidates, Estimate, IndexClasses, Predicate, Ranked, SecondaryIndex};
use ilion_schema::{TableId, TableSchema};

use crate::{Engine, Error, Result};

/// An index of a table.
#[derive(Clone)]
pub struct OpenIndex {
    /// The index.
    pub index: Arc<dyn SecondaryIndex>,
    /// It has everything that the table has. Before, it is not asked.
    pub is_built: bool,
}

/// A build of an index that goes on or waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexBuildFacts {
    /// Keyspace of the table.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// The index.
    pub index: String,
    /// Bytes of the table that were read for it.
    pub done_bytes: u64,
    /// Bytes of the table that are to be read.
    pub total_bytes: u64,
}

impl Engine {
    /// The kinds of indexes that there are.
    pub fn index_classes(&self) -> &IndexClasses {
        &self.shared.options.index_classes
    }

    /// The indexes of a table.
    pub fn indexes_of(&self, _table: TableId) -> Vec<OpenIndex> {
        Vec::new()
    }

    /// Rows of the table that may match, of all its sources at one moment. What the search learns of stale entries
    /// ([`Candidates::met`]) is removed when it is dropped.
    ///
    /// # Errors
    /// There is no such index, it is not built, it does not serve the predicate, or a source cannot be read.
    pub fn index_search(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        _predicate: &Predicate,
    ) -> Result<Box<dyn Candidates>> {
        Err(no_such_index(table, index))
    }

    /// How many rows [`Self::index_search`] may give.
    ///
    /// # Errors
    /// As for [`Self::index_search`].
    pub fn index_estimate(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        _predicate: &Predicate,
    ) -> Result<Estimate> {
        Err(no_such_index(table, index))
    }

    /// Rows of the table by nearness of their vectors, the nearest first as far as the sources know. The same row may come
    /// from several sources.
    ///
    /// # Errors
    /// As for [`Self::index_search`]; the index does not rank.
    pub fn index_nearest(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        _vector: &[f32],
    ) -> Result<Box<dyn Ranked>> {
        Err(no_such_index(table, index))
    }

    /// Makes an index anew from its table, and returns when it is built. It is not asked meanwhile.
    ///
    /// # Errors
    /// There is no such index, writes are refused, or the table cannot be read.
    pub fn rebuild_index(&self, table: &Arc<TableSchema>, index: &str) -> Result<()> {
        Err(no_such_index(table, index))
    }

    /// The builds of indexes that go on or wait.
    pub fn index_builds(&self) -> Vec<IndexBuildFacts> {
        Vec::new()
    }
}

fn no_such_index(table: &TableSchema, index: &str) -> Error {
    Error::Refused(format!(
        "table {}.{} has no index {index}",
        table.keyspace, table.name
    ))
}
