//! CREATE MATERIALIZED VIEW.
//!
//! Compat: `CreateViewStatement` of Cassandra 5.0; `ilion_schema` has the rules about columns and keys.

use std::sync::Arc;

use ilion_cql::ast::{self, Operator, Relation, Selection, Selector, Subject};
use ilion_schema::{SchemaChange, TableKind, TableSchema};

use super::common::{keyspace, properties};
use super::table::clustering_order;
use crate::Error;
use crate::context::PlanContext;
use crate::restrictions::row_filter;
use crate::term::while_planning;
use crate::views::restricting;

pub(super) fn create(create: &ast::CreateView, context: &PlanContext<'_>) -> Result<SchemaChange, Error> {
    if !context.options.materialized_views_enabled {
        return Err(Error::invalid(
            "Materialized views are disabled. Enable in cassandra.yaml to use.",
        ));
    }
    let keyspace_name = keyspace(&create.view, context)?;
    let base_keyspace = keyspace(&create.base, context)?;
    if context.has_markers() {
        return Err(Error::invalid(
            "Bind variables are not allowed in CREATE MATERIALIZED VIEW statements",
        ));
    }
    let base = context.schema.table(&base_keyspace, &create.base.name);
    // If the base is missing or itself a view, the schema refuses the statement; the columns are then not checked.
    if let Some(base) = base.filter(|base| base.kind != TableKind::View) {
        check_relations(create, base, context)?;
    }
    let columns = |is_wanted: fn(Operator) -> bool| {
        let relations = create
            .relations
            .iter()
            .filter(|relation| is_wanted(relation.operator));
        relations.flat_map(columns_of).collect::<Vec<String>>()
    };
    let clause: Vec<String> = create.relations.iter().map(ToString::to_string).collect();
    Ok(SchemaChange::CreateView(Box::new(ilion_schema::CreateView {
        name: create.view.name.clone(),
        if_not_exists: create.if_not_exists,
        base: create.base.name.clone(),
        selected: selected(&create.selection)?,
        where_clause: clause.join(" AND "),
        not_null: columns(|operator| operator == Operator::IsNotNull),
        restricted: columns(|operator| operator != Operator::IsNotNull),
        partition_key: create.primary_key.partition_key.clone(),
        clustering: create.primary_key.clustering.clone(),
        clustering_order: clustering_order(&create.clustering_order),
        properties: properties(&create.properties),
        id: None,
        keyspace: keyspace_name,
        base_keyspace,
    })))
}

fn selected(selection: &Selection) -> Result<Vec<String>, Error> {
    let Selection::Items(items) = selection else {
        return Ok(Vec::new());
    };
    items
        .iter()
        .map(|item| match (&item.selector, &item.alias) {
            (selector, Some(alias)) => Err(Error::Invalid(format!(
                "Cannot use aliases when defining a materialized view (got {selector} AS {alias})"
            ))),
            (Selector::Column(name), None) => Ok(name.clone()),
            (selector, None) => Err(Error::Invalid(format!(
                "Can only select columns by name when defining a materialized view (got {selector})"
            ))),
        })
        .collect()
}

fn columns_of(relation: &Relation) -> Vec<String> {
    match &relation.subject {
        Subject::Column(name) | Subject::Element { column: name, .. } => vec![name.clone()],
        Subject::Columns(names) | Subject::Token(names) => names.clone(),
        Subject::Index(_) | Subject::AnyOf(_) => Vec::new(),
    }
}

/// Refuses relations that cannot be checked row by row.
fn check_relations(
    create: &ast::CreateView,
    base: &Arc<TableSchema>,
    context: &PlanContext<'_>,
) -> Result<(), Error> {
    let is_index = |relation: &Relation| matches!(relation.subject, Subject::Index(_));
    if create.relations.iter().any(is_index) {
        return Err(Error::Invalid(format!(
            "WHERE clause for materialized view '{}' cannot contain custom index expressions",
            create.view.name
        )));
    }
    for name in create.relations.iter().flat_map(columns_of) {
        crate::restrictions::relation::existing(base, &name)?;
    }
    while_planning(context, |execution| {
        row_filter(base, &restricting(&create.relations), context, execution).map(|_| ())
    })
}
