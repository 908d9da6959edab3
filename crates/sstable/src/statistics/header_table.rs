//! The table that a serialization header describes: enough to read an SSTable of an unknown table.

use std::sync::Arc;

use ilion_schema::{ClusteringOrder, ColumnKind, TableBuilder, TableId, TableSchema};
use ilion_types::{CqlType, Error, partition_key_types};
use uuid::Uuid;

use super::header::{HeaderColumn, SerializationHeader};

impl SerializationHeader {
    /// A table with this header's types and columns. The file does not have the names of key columns, so they are called
    /// `key0`, `clustering0` and so on.
    ///
    /// # Errors
    /// The type of the partition key is invalid.
    pub fn to_table(&self, keyspace: &str, name: &str) -> Result<Arc<TableSchema>, Error> {
        let mut table = TableBuilder::new(keyspace, name, TableId(Uuid::nil()));
        for (index, ty) in partition_key_types(&self.key_type.text)?.into_iter().enumerate() {
            table = table.partition_key(format!("key{index}"), ty);
        }
        for (index, class) in self.clustering_types.iter().enumerate() {
            table = table.clustering(format!("clustering{index}"), class.ty.clone(), class.order());
        }
        table = add_columns(table, &self.statics, ColumnKind::Static);
        table = add_columns(table, &self.regulars, ColumnKind::Regular);
        let columns = self.statics.iter().chain(&self.regulars);
        if columns
            .map(|column| &column.class.ty)
            .any(|ty| *ty == CqlType::Counter)
        {
            table.flags.push("counter".to_owned());
        }
        Ok(table.build())
    }
}

fn add_columns(table: TableBuilder, columns: &[HeaderColumn], kind: ColumnKind) -> TableBuilder {
    columns.iter().fold(table, |table, column| {
        let ty = column.class.ty.clone();
        table.add(column.name.clone(), kind, ty, ClusteringOrder::Asc)
    })
}
