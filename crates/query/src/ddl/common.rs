//! Code that the schema statements share: their keyspace and their properties.

use ilion_cql::ast::{Properties, PropertyValue, QualifiedName};

use crate::Error;
use crate::context::PlanContext;

/// The keyspace of an object: that in the statement, else the client's.
pub(super) fn keyspace(name: &QualifiedName, context: &PlanContext<'_>) -> Result<String, Error> {
    context.keyspace_of(name).map(str::to_owned)
}

/// Properties by their names in lower case.
pub(super) fn properties(ast: &Properties) -> ilion_schema::Properties {
    let value = |value: &PropertyValue| match value {
        PropertyValue::Text(text) => ilion_schema::PropertyValue::Text(text.clone()),
        PropertyValue::Map(pairs) => ilion_schema::PropertyValue::Map(pairs.iter().cloned().collect()),
    };
    ilion_schema::Properties(
        ast.0
            .iter()
            .map(|(name, given)| (name.to_ascii_lowercase(), value(given)))
            .collect(),
    )
}
