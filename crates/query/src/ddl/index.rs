//! CREATE INDEX: finds the class of the index and lets it check the definition.

use std::sync::Arc;

use ilion_cql::ast::{CreateIndex, IndexTargetKind};
use ilion_index::{Definition, Error as IndexError};
use ilion_schema::{Applied, Diff, IndexPart, IndexSchema, IndexTarget, Schema, SchemaChange, Transition};
use ilion_types::CqlType;

use super::common::{keyspace, properties};
use crate::Error;
use crate::context::{Execution, PlanContext};

const SASI: [&str; 2] = ["SASIIndex", "org.apache.cassandra.index.sasi.SASIIndex"];
const SASI_DISABLED: &str = "SASI indexes are disabled. Enable in cassandra.yaml to use.";
const NEEDS_CLASS: &str = "Must specify index implementation via USING";

pub(super) fn create(create: &CreateIndex, context: &PlanContext<'_>) -> Result<SchemaChange, Error> {
    let class = match &create.using {
        Some(class) => class.clone(),
        None if context.options.default_secondary_index_enabled => {
            context.options.default_secondary_index.to_ascii_lowercase()
        }
        None => return Err(Error::invalid(NEEDS_CLASS)),
    };
    if is_sasi(&class) && !context.options.sasi_indexes_enabled {
        return Err(Error::invalid(SASI_DISABLED));
    }
    let targets = create.targets.iter().map(|target| IndexTarget {
        column: target.column.clone(),
        part: match target.kind {
            IndexTargetKind::Simple => IndexPart::Simple,
            IndexTargetKind::Values => IndexPart::Values,
            IndexTargetKind::Keys => IndexPart::Keys,
            IndexTargetKind::Entries => IndexPart::Entries,
            IndexTargetKind::Full => IndexPart::Full,
        },
    });
    Ok(SchemaChange::CreateIndex(Box::new(ilion_schema::CreateIndex {
        keyspace: keyspace(&create.table, context)?,
        table: create.table.name.clone(),
        name: create.name.clone(),
        if_not_exists: create.if_not_exists,
        is_custom: create.is_custom,
        class: Some(class),
        targets: targets.collect(),
        properties: properties(&create.properties),
    })))
}

fn is_sasi(class: &str) -> bool {
    SASI.iter().any(|known| known.eq_ignore_ascii_case(class))
}

/// Lets the class of a new index check it. Its warnings go to the client.
///
/// Compat: this comes after all checks of the schema itself.
///
/// # Errors
/// The class does not exist, or refuses the index.
pub(super) fn check(applied: &Applied, execution: &Execution<'_>) -> Result<(), Error> {
    let mut created = applied.diffs.iter().filter_map(|diff| match diff {
        Diff::Index(keyspace, Transition::Created(index)) => Some((keyspace, index)),
        _ => None,
    });
    created.try_for_each(|(keyspace, index)| check_class(keyspace, index, &applied.schema, execution))
}

fn check_class(
    keyspace: &str,
    index: &Arc<IndexSchema>,
    schema: &Schema,
    execution: &Execution<'_>,
) -> Result<(), Error> {
    let table = schema.table(keyspace, &index.table);
    let Some(definition) = table.and_then(|table| Definition::of(index, table)) else {
        return Err(Error::invalid("The index is on no column"));
    };
    let Some(found) = execution.store.index_classes().of(index).cloned() else {
        return Err(match index.class_name() {
            Some(class) => Error::Config(format!("Unable to find custom indexer class '{class}'")),
            None => Error::invalid("There are no secondary indexes here"),
        });
    };
    found.validate(&definition).map_err(|refused| match refused {
        IndexError::Invalid(message) => Error::Invalid(message),
        IndexError::Config(message) => Error::Config(message),
        other => Error::ServerError(other.to_string()),
    })?;
    warn(&definition, execution);
    Ok(())
}

/// Compat: the warning about ordering by nearness, when such an index is created.
fn warn(definition: &Definition, execution: &Execution<'_>) {
    if definition.schema.is_storage_attached() && matches!(definition.column.ty, CqlType::Vector { .. }) {
        execution.warn(
            "SAI ANN indexes on vector columns don't support SELECT queries with paging, without LIMIT, with PER PARTITION \
             LIMIT, GROUP BY or aggregation, or with filters on columns without a SAI index."
                .to_owned(),
        );
    }
}
