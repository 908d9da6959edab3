//! The spec of a term in a write.

use std::sync::Arc;

use ilion_schema::TableSchema;
use ilion_types::CqlType;

use crate::ColumnSpec;

/// The spec of a term that is called `name` in messages.
pub(super) fn spec(table: &TableSchema, name: &str, ty: CqlType) -> ColumnSpec {
    ColumnSpec {
        keyspace: Arc::from(table.keyspace.as_str()),
        table: Arc::from(table.name.as_str()),
        name: Arc::from(name),
        ty,
    }
}
