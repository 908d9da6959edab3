//! What an index is of.

use std::sync::Arc;

use ilion_rows::Row;
use ilion_schema::{Column, ColumnId, ColumnKind, IndexPart, IndexSchema, TableSchema};
use ilion_types::Partitioner;

/// An index definition, resolved against its table.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The index as the schema has it: name, kind, options.
    pub schema: Arc<IndexSchema>,
    /// Its table as it was when the index was opened. An ALTER opens it anew.
    pub table: Arc<TableSchema>,
    /// The indexed column.
    pub column: Column,
    /// Which part of a collection is indexed.
    pub part: IndexPart,
    /// How the keys of its table become tokens.
    pub partitioner: Partitioner,
}

impl Definition {
    /// Resolves an index of a table; `None` if its target is no column of it.
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

    /// The same on a node with this partitioner.
    #[must_use]
    pub fn under(mut self, partitioner: Partitioner) -> Self {
        self.partitioner = self.table.partitioner(partitioner);
        self
    }

    /// True if the rows to index are static rows.
    pub fn is_of_static(&self) -> bool {
        self.column.kind == ColumnKind::Static
    }

    /// True if the row is of the kind that the index looks at: static, or not.
    pub fn looks_at(&self, row: &Row) -> bool {
        let is_static = row.clustering.is_empty() && self.table.clustering().len() > 0;
        is_static == self.is_of_static()
    }

    /// The column if its cells have the indexed values; `None` if it is part of the key.
    pub fn column_of_cells(&self) -> Option<ColumnId> {
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
