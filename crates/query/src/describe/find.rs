//! The schema objects that a DESCRIBE selects.

use std::sync::Arc;

use ilion_cql::ast::{DescribeTarget, QualifiedName};
use ilion_schema::describe::{
    Element, ElementKind, Internals, describe_aggregate, describe_function, describe_index,
    describe_keyspace, describe_keyspace_elements, describe_table_elements, describe_type, describe_view,
    describe_view_elements, name_order,
};
use ilion_schema::{Keyspace, Schema, TableKind, is_system_keyspace};
use ilion_types::CqlType;

use super::rows::DescribedRow;
use crate::Error;

/// The names of all objects of a kind: in the session's keyspace, or in all keyspaces if it has none.
pub(super) fn listing(
    target: &DescribeTarget,
    session: Option<&str>,
    schema: &Schema,
) -> Result<Vec<DescribedRow>, Error> {
    if *target == DescribeTarget::Keyspaces {
        let names = schema.keyspaces.keys();
        return Ok(names
            .map(|name| DescribedRow::of_name(name, ElementKind::Keyspace, name))
            .collect());
    }
    let keyspaces: Vec<&Arc<Keyspace>> = match session {
        None => schema.keyspaces.values().collect(),
        Some(name) => vec![keyspace_named(name, schema)?],
    };
    Ok(keyspaces
        .into_iter()
        .flat_map(|keyspace| {
            let (kind, mut names) = names(target, keyspace);
            names.sort_by_cached_key(|name| name_order(name));
            let rows = names.into_iter();
            rows.map(move |name| DescribedRow::of_name(&keyspace.name, kind, &name))
        })
        .collect())
}

fn names(target: &DescribeTarget, keyspace: &Keyspace) -> (ElementKind, Vec<String>) {
    match target {
        DescribeTarget::Types => (ElementKind::Type, keyspace.types.keys().cloned().collect()),
        DescribeTarget::Functions => (ElementKind::Function, function_names(keyspace)),
        DescribeTarget::Aggregates => (ElementKind::Aggregate, aggregate_names(keyspace)),
        _ => {
            let tables = keyspace.tables.values();
            let tables = tables.filter(|table| table.kind != TableKind::View);
            (
                ElementKind::Table,
                tables.map(|table| table.name.clone()).collect(),
            )
        }
    }
}

fn function_names(keyspace: &Keyspace) -> Vec<String> {
    let functions = keyspace.functions.iter();
    let mut names: Vec<String> = functions
        .map(|function| signature(&function.name, function.argument_types()))
        .collect();
    names.sort_by_cached_key(|name| name_order(name));
    names
}

fn aggregate_names(keyspace: &Keyspace) -> Vec<String> {
    let aggregates = keyspace.aggregates.iter();
    let mut names: Vec<String> = aggregates
        .map(|aggregate| signature(&aggregate.name, aggregate.argument_types.iter()))
        .collect();
    names.sort_by_cached_key(|name| name_order(name));
    names
}

fn signature<'t>(name: &str, types: impl Iterator<Item = &'t CqlType>) -> String {
    let types: Vec<String> = types.map(ToString::to_string).collect();
    format!("{name}({})", types.join(", "))
}

/// The selected objects with their CREATE statements.
pub(super) fn elements(
    target: &DescribeTarget,
    session: Option<&str>,
    internals: Internals,
    schema: &Schema,
) -> Result<Vec<DescribedRow>, Error> {
    let here = |name: Option<&str>| {
        let name = name.or(session);
        keyspace_named(name.ok_or_else(no_keyspace)?, schema)
    };
    let owner = |name: &QualifiedName| here(name.keyspace.as_deref());
    let (keyspace, found) = match target {
        DescribeTarget::Keyspace(name) => {
            let keyspace = here(name.as_deref())?;
            (keyspace, describe_keyspace_elements(keyspace, internals))
        }
        DescribeTarget::OnlyKeyspace(name) => {
            let keyspace = here(name.as_deref())?;
            (keyspace, vec![only_keyspace(keyspace)])
        }
        DescribeTarget::Table(name) => (owner(name)?, table(owner(name)?, &name.name, internals)?),
        DescribeTarget::Index(name) => (owner(name)?, index(owner(name)?, &name.name)?),
        DescribeTarget::View(name) => (owner(name)?, view(owner(name)?, &name.name, internals)?),
        DescribeTarget::Type(name) => (owner(name)?, user_type(owner(name)?, &name.name)?),
        DescribeTarget::Function(name) => (owner(name)?, functions(owner(name)?, &name.name)?),
        DescribeTarget::Aggregate(name) => (owner(name)?, aggregates(owner(name)?, &name.name)?),
        DescribeTarget::Any(name) => any(name, session, internals, schema)?,
        DescribeTarget::FullSchema => return Ok(whole_schema(schema, |_| true, internals)),
        _ => {
            return Ok(whole_schema(schema, |name| !is_system_keyspace(name), internals));
        }
    };
    Ok(rows(keyspace, found))
}

fn rows(keyspace: &Keyspace, elements: Vec<Element>) -> Vec<DescribedRow> {
    elements
        .into_iter()
        .map(|element| DescribedRow::of_element(&keyspace.name, element))
        .collect()
}

fn whole_schema(schema: &Schema, wanted: impl Fn(&str) -> bool, internals: Internals) -> Vec<DescribedRow> {
    schema
        .keyspaces
        .values()
        .filter(|keyspace| wanted(&keyspace.name))
        .flat_map(|keyspace| rows(keyspace, describe_keyspace_elements(keyspace, internals)))
        .collect()
}

/// The first keyspace, table, index or view of this name, in this order.
fn any<'s>(
    name: &QualifiedName,
    session: Option<&str>,
    internals: Internals,
    schema: &'s Schema,
) -> Result<(&'s Arc<Keyspace>, Vec<Element>), Error> {
    let QualifiedName { keyspace, name } = name;
    if keyspace.is_none()
        && let Some(found) = schema.keyspace(name)
    {
        return Ok((found, describe_keyspace_elements(found, internals)));
    }
    let owner = keyspace_named(keyspace.as_deref().or(session).unwrap_or(name), schema)?;
    let found = if owner.views.contains_key(name) {
        view(owner, name, internals)?
    } else if owner.tables.contains_key(name) {
        table(owner, name, internals)?
    } else if owner.indexes.contains_key(name) {
        index(owner, name)?
    } else {
        return Err(Error::invalid(format!(
            "'{name}' not found in keyspace '{}'",
            owner.name
        )));
    };
    Ok((owner, found))
}

fn keyspace_named<'s>(name: &str, schema: &'s Schema) -> Result<&'s Arc<Keyspace>, Error> {
    schema
        .keyspace(name)
        .ok_or_else(|| Error::invalid(format!("'{name}' not found in keyspaces")))
}

fn no_keyspace() -> Error {
    Error::invalid("No keyspace specified and no current keyspace")
}

fn only_keyspace(keyspace: &Keyspace) -> Element {
    Element {
        kind: ElementKind::Keyspace,
        name: keyspace.name.clone(),
        create_statement: describe_keyspace(keyspace),
    }
}

fn table(keyspace: &Keyspace, name: &str, internals: Internals) -> Result<Vec<Element>, Error> {
    match keyspace.tables.get(name) {
        Some(table) if table.kind != TableKind::View => {
            let mut found = describe_table_elements(keyspace, table, internals);
            found.extend(describe_view_elements(keyspace, table, internals));
            Ok(found)
        }
        _ => Err(Error::invalid(format!(
            "Table '{name}' not found in keyspace '{}'",
            keyspace.name
        ))),
    }
}

fn index(keyspace: &Keyspace, name: &str) -> Result<Vec<Element>, Error> {
    match keyspace.indexes.get(name) {
        Some(index) => Ok(vec![Element {
            kind: ElementKind::Index,
            name: name.to_owned(),
            create_statement: describe_index(&keyspace.name, index),
        }]),
        None => Err(Error::invalid(format!(
            "Table for existing index '{name}' not found in '{}'",
            keyspace.name
        ))),
    }
}

fn view(keyspace: &Keyspace, name: &str, internals: Internals) -> Result<Vec<Element>, Error> {
    match (keyspace.views.get(name), keyspace.tables.get(name)) {
        (Some(view), Some(table)) => Ok(vec![Element {
            kind: ElementKind::View,
            name: name.to_owned(),
            create_statement: describe_view(view, table, internals),
        }]),
        _ => Err(not_found("Materialized view", name, keyspace)),
    }
}

fn user_type(keyspace: &Keyspace, name: &str) -> Result<Vec<Element>, Error> {
    match keyspace.types.get(name) {
        Some(definition) => Ok(vec![Element {
            kind: ElementKind::Type,
            name: name.to_owned(),
            create_statement: describe_type(definition),
        }]),
        None => Err(not_found("User defined type", name, keyspace)),
    }
}

fn functions(keyspace: &Keyspace, name: &str) -> Result<Vec<Element>, Error> {
    let functions = keyspace.functions.iter().filter(|function| function.name == name);
    let found = functions.map(|function| Element {
        kind: ElementKind::Function,
        name: signature(name, function.argument_types()),
        create_statement: describe_function(&keyspace.name, function),
    });
    some_by_name(found.collect(), "User defined function", name, keyspace)
}

fn aggregates(keyspace: &Keyspace, name: &str) -> Result<Vec<Element>, Error> {
    let aggregates = keyspace
        .aggregates
        .iter()
        .filter(|aggregate| aggregate.name == name);
    let found = aggregates.map(|aggregate| Element {
        kind: ElementKind::Aggregate,
        name: signature(name, aggregate.argument_types.iter()),
        create_statement: describe_aggregate(&keyspace.name, aggregate),
    });
    some_by_name(found.collect(), "User defined aggregate", name, keyspace)
}

fn some_by_name(
    mut found: Vec<Element>,
    what: &str,
    name: &str,
    keyspace: &Keyspace,
) -> Result<Vec<Element>, Error> {
    if found.is_empty() {
        return Err(not_found(what, name, keyspace));
    }
    found.sort_by_cached_key(|element| name_order(&element.name));
    Ok(found)
}

fn not_found(what: &str, name: &str, keyspace: &Keyspace) -> Error {
    Error::invalid(format!("{what} '{name}' not found in '{}'", keyspace.name))
}
