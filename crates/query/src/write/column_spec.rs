//! What the term of a write is for.

use std::sync::Arc;

use ilion_schema::TableSchema;
use ilion_types::CqlType;

use crate::ColumnSpec;

/// What a term for something called `name` is planned for.
pub(super) fn spec(table: &TableSchema, name: &str, ty: CqlType) -> ColumnSpec {
    ColumnSpec {
        keyspace: Arc::from(table.keyspace.as_str()),
        table: Arc::from(table.name.as_str()),
        name: Arc::from(name),
        ty,
    }
}
