//! The definition of an index, resolved against its table.

use std::sync::Arc;

use ilion_rows::Row;
use ilion_schema::{Column, ColumnId, ColumnKind, IndexPart, IndexSchema, TableSchema};
use ilion_types::Partitioner;

/// An index definition, resolved against its table.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The index in the schema: name, kind, options.
    pub schema: Arc<IndexSchema>,
    /// The table at the time the index was opened. An ALTER reopens the index.
    pub table: Arc<TableSchema>,
    /// The indexed column.
    pub column: Column,
    /// Which part of a collection is indexed.
    pub part: IndexPart,
    /// Computes the tokens of the table's keys.
    pub partitioner: Partitioner,
}

impl Definition {
    /// Resolves an index of a table; `None` if its target is not a column of the table.
    pub fn of(schema: &Arc<IndexSchema>, table: &Arc<TableSchema>) -> Option<Self> {
        let (name, part) = schema.target()?;
        Some(Self {
            schema: schema.clone(),
            table: table.clone(),
            column: table.column_named(&name)?.clone(),
            part,
            partitioner: table.partitioner(Partitioner::default()),
        })
    }

    /// The same definition on a node with this partitioner.
    #[must_use]
    pub fn under(mut self, partitioner: Partitioner) -> Self {
        self.partitioner = self.table.partitioner(partitioner);
        self
    }

    /// True if the index covers static rows.
    pub(crate) fn is_of_static(&self) -> bool {
        self.column.kind == ColumnKind::Static
    }

    /// True if the index covers this row: it covers static rows if the indexed column is static, else all other rows.
    pub(crate) fn looks_at(&self, row: &Row) -> bool {
        let is_static = row.clustering.is_empty() && self.table.clustering().len() > 0;
        is_static == self.is_of_static()
    }

    /// The indexed column if its cells have the indexed values; `None` if it is part of the primary key.
    pub(crate) fn column_of_cells(&self) -> Option<ColumnId> {
        let is_of_key = matches!(
            self.column.kind,
            ColumnKind::PartitionKey | ColumnKind::Clustering
        );
        (!is_of_key).then_some(self.column.id)
    }

    /// An option by its name.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.schema.options.get(name).map(String::as_str)
    }
}
