//! All objects of a keyspace or a table, in the order of DESCRIBE: an object comes after those that it uses.

use std::collections::BTreeSet;
use std::sync::Arc;

use ilion_types::UserType;

use super::{
    Internals, describe_aggregate, describe_function, describe_index, describe_keyspace, describe_table,
    describe_type, describe_view,
};
use crate::{Keyspace, TableKind, TableSchema};

/// One row of DESCRIBE's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    pub kind: ElementKind,
    /// The name, not quoted. After the name of a function come its argument types.
    pub name: String,
    /// The statement that creates the object.
    pub create_statement: String,
}

/// The kinds of objects in DESCRIBE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementKind {
    /// `keyspace`
    Keyspace,
    /// `type`
    Type,
    /// `function`
    Function,
    /// `aggregate`
    Aggregate,
    /// `table`
    Table,
    /// `index`
    Index,
    /// `materialized_view`
    View,
}

impl ElementKind {
    /// The word in the answer's `type` column.
    pub fn name(self) -> &'static str {
        match self {
            Self::Keyspace => "keyspace",
            Self::Type => "type",
            Self::Function => "function",
            Self::Aggregate => "aggregate",
            Self::Table => "table",
            Self::Index => "index",
            Self::View => "materialized_view",
        }
    }
}

/// The keyspace and everything in it.
pub fn describe_keyspace_elements(keyspace: &Keyspace, internals: Internals) -> Vec<Element> {
    let name = keyspace.name.as_str();
    let mut elements = vec![element(ElementKind::Keyspace, name, describe_keyspace(keyspace))];
    elements.extend(
        sorted_types(keyspace)
            .into_iter()
            .map(|definition| element(ElementKind::Type, &definition.name, describe_type(definition))),
    );
    elements.extend(keyspace.functions.iter().map(|function| {
        let signature = signature(&function.name, function.argument_types());
        element(
            ElementKind::Function,
            &signature,
            describe_function(name, function),
        )
    }));
    elements.extend(keyspace.aggregates.iter().map(|aggregate| {
        let signature = signature(&aggregate.name, aggregate.argument_types.iter());
        element(
            ElementKind::Aggregate,
            &signature,
            describe_aggregate(name, aggregate),
        )
    }));
    let tables = keyspace.tables.values();
    let mut tables: Vec<_> = tables.filter(|table| table.kind != TableKind::View).collect();
    tables.sort_by_cached_key(|table| name_order(&table.name));
    for table in tables {
        elements.extend(describe_table_elements(keyspace, table, internals));
        elements.extend(describe_view_elements(keyspace, table, internals));
    }
    elements
}

/// The sort key of a name: its case is ignored (`SchemaElement.NAME_COMPARATOR`).
pub fn name_order(name: &str) -> String {
    name.to_lowercase()
}

/// A table and its indexes, or a view.
pub fn describe_table_elements(
    keyspace: &Keyspace,
    table: &TableSchema,
    internals: Internals,
) -> Vec<Element> {
    if let Some(view) = keyspace.views.get(&table.name) {
        return vec![element(
            ElementKind::View,
            &view.name,
            describe_view(view, table, internals),
        )];
    }
    let mut elements = vec![element(
        ElementKind::Table,
        &table.name,
        describe_table(table, internals),
    )];
    elements.extend(keyspace.indexes_of(&table.name).map(|index| {
        element(
            ElementKind::Index,
            &index.name,
            describe_index(&keyspace.name, index),
        )
    }));
    elements
}

/// The materialized views of a table.
pub fn describe_view_elements(keyspace: &Keyspace, base: &TableSchema, internals: Internals) -> Vec<Element> {
    keyspace
        .views_of(&base.name)
        .filter_map(|view| Some((view, keyspace.tables.get(&view.name)?)))
        .map(|(view, table)| {
            element(
                ElementKind::View,
                &view.name,
                describe_view(view, table, internals),
            )
        })
        .collect()
}

fn element(kind: ElementKind, name: &str, create_statement: String) -> Element {
    Element {
        kind,
        name: name.to_owned(),
        create_statement,
    }
}

fn signature<'a>(name: &str, types: impl Iterator<Item = &'a ilion_types::CqlType>) -> String {
    format!(
        "{name}({})",
        types.map(ToString::to_string).collect::<Vec<_>>().join(", ")
    )
}

/// The user types by name, but each type after the types that it uses.
pub fn sorted_types(keyspace: &Keyspace) -> Vec<&Arc<UserType>> {
    fn visit<'a>(
        keyspace: &'a Keyspace,
        definition: &'a Arc<UserType>,
        seen: &mut BTreeSet<&'a str>,
        sorted: &mut Vec<&'a Arc<UserType>>,
    ) {
        if !seen.insert(&definition.name) {
            return;
        }
        let uses = |other: &UserType| {
            definition
                .fields
                .iter()
                .any(|(_, ty)| ty.references_udt(&keyspace.name, &other.name))
        };
        for other in keyspace.types.values().filter(|other| uses(other)) {
            visit(keyspace, other, seen, sorted);
        }
        sorted.push(definition);
    }
    let (mut seen, mut sorted) = (BTreeSet::new(), Vec::new());
    for definition in keyspace.types.values() {
        visit(keyspace, definition, &mut seen, &mut sorted);
    }
    sorted
}
