//! The schema of the hidden table.

use std::sync::Arc;

use ilion_schema::{ClusteringOrder, Column, TableBuilder, TableId, TableSchema};
use ilion_types::{CqlType, KeyOrder, composite_class};

use super::source::Source;
use crate::Definition;

/// Compat: `CassandraIndex.indexCfsMetadata`. The id is unique; Cassandra uses that of the base table. Neither writes it to a file.
pub(super) fn schema(definition: &Definition, source: Source) -> Arc<TableSchema> {
    let base = &definition.table;
    let name = format!("{}.{}", base.name, definition.schema.name);
    let id = TableId::of_system_table(&base.id.0.to_string(), &name);
    let (ty, order) = key_of(definition, source);
    let mut builder = TableBuilder::new(&base.keyspace, name, id)
        .partition_key(&definition.column.name, ty)
        .clustering(
            "partition_key",
            CqlType::partition_keys(definition.partitioner),
            ClusteringOrder::Asc,
        );
    let is_kept = |column: &&Column| source != Source::Clustering(usize::from(column.position));
    for column in base.clustering().filter(is_kept) {
        builder = builder.clustering(&column.name, column.ty.clone(), column.order);
    }
    if source == Source::Elements {
        builder = builder.clustering(
            "cell_path",
            path_type(&definition.column.ty),
            ClusteringOrder::Asc,
        );
    }
    builder.key_order = Some(order);
    builder.options = base.options.clone();
    let options = &mut builder.options;
    options.gc_grace_secs = 0;
    options.default_time_to_live_secs = 0;
    options.memtable_flush_period_ms = 0;
    builder.build()
}

/// The type and order of the indexed values.
fn key_of(definition: &Definition, source: Source) -> (CqlType, KeyOrder) {
    let column = &definition.column;
    let ascending = |ty: CqlType| (ty.clone(), KeyOrder::of(ty, false));
    match source {
        Source::PartitionKey(_) | Source::Whole => ascending(column.ty.clone()),
        // Compat: for a DESC column, the type is reversed, and so is the order of the partitions.
        Source::Clustering(_) => (
            column.ty.clone(),
            KeyOrder::of(column.ty.clone(), column.order == ClusteringOrder::Desc),
        ),
        Source::Paths => ascending(path_type(&column.ty)),
        Source::Elements => ascending(element_type(&column.ty)),
        Source::Entries => {
            let types = vec![path_type(&column.ty), element_type(&column.ty)];
            let class = composite_class(&types);
            (CqlType::Custom(class.into()), KeyOrder::of_composite(types))
        }
    }
}

/// The type of the paths of a collection's cells.
pub(super) fn path_type(ty: &CqlType) -> CqlType {
    match ty {
        CqlType::Set { element, .. } => CqlType::clone(element),
        CqlType::Map { key, .. } => CqlType::clone(key),
        _ => CqlType::TimeUuid,
    }
}

/// The type of the values of a collection's cells.
pub(super) fn element_type(ty: &CqlType) -> CqlType {
    match ty {
        CqlType::List { element, .. } => CqlType::clone(element),
        CqlType::Map { value, .. } => CqlType::clone(value),
        _ => CqlType::Empty,
    }
}
