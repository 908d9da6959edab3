//! A view resolved against its base table.

use std::cell::RefCell;
use std::sync::Arc;

use ilion_cql::ast::{Operator, Relation, Statement};
use ilion_schema::{Column, ColumnId, ColumnKind, Keyspace, Schema, TableSchema, ViewSchema};
use ilion_types::Partitioner;

use crate::context::{Execution, PlanContext, Sight};
use crate::restrictions::{RowFilter, row_filter};
use crate::term::functions::function_calls;
use crate::{Error, ExecuteOptions, QueryOptions, Store};

/// Where a column of a view's primary key comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Component of the base's partition key.
    PartitionKey(usize),
    /// Clustering column of the base.
    Clustering(usize),
    /// The column of the base that is not in the base's primary key; a view has at most one.
    Regular(ColumnId),
}

/// A column of both view and base, outside of the view's key.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub base: ColumnId,
    pub view: Column,
}

/// A view in the form that writes need.
#[derive(Debug)]
pub(super) struct ViewPlan {
    pub base: Arc<TableSchema>,
    pub view: Arc<TableSchema>,
    pub partitioner: Partitioner,
    pub partition_key: Vec<Source>,
    pub clustering: Vec<Source>,
    /// The column of the view's key that is not in the base's key, by its id in the base: an entry lives as long as that cell.
    pub extra: Option<ColumnId>,
    /// Sorted by the column id of the view.
    pub shared: Vec<Shared>,
    /// Regular columns of the base that the view does not have: they keep a row alive in the view, too.
    pub unselected: Vec<ColumnId>,
    pub filter: RowFilter,
}

impl ViewPlan {
    pub(super) fn of(
        keyspace: &Keyspace,
        view: &ViewSchema,
        schema: &Arc<Schema>,
        store: &dyn Store,
        options: &QueryOptions,
    ) -> Result<Self, Error> {
        let table = |name: &str| {
            let found = keyspace.tables.get(name).cloned();
            found.ok_or_else(|| Error::ServerError(format!("table {}.{name} is gone", keyspace.name)))
        };
        let (base, view_table) = (table(&view.base_table)?, table(&view.name)?);
        let filter = filter_of(&base, &view.where_clause, schema, store, options)?;
        plan(base, view_table, filter, store.partitioner())
    }
}

fn plan(
    base: Arc<TableSchema>,
    view: Arc<TableSchema>,
    filter: RowFilter,
    partitioner: Partitioner,
) -> Result<ViewPlan, Error> {
    let base_column = |column: &Column| {
        base.column_named(&column.name).ok_or_else(|| {
            Error::ServerError(format!(
                "view {}.{} has a column {} that its base table has not",
                view.keyspace, view.name, column.name
            ))
        })
    };
    let source = |column: &Column| {
        let column = base_column(column)?;
        let position = usize::from(column.position);
        Ok(match column.kind {
            ColumnKind::PartitionKey => Source::PartitionKey(position),
            ColumnKind::Clustering => Source::Clustering(position),
            ColumnKind::Static | ColumnKind::Regular => Source::Regular(column.id),
        })
    };
    let sources = |columns: Vec<&Column>| columns.into_iter().map(source).collect::<Result<Vec<_>, Error>>();
    let partition_key = sources(view.partition_key().collect())?;
    let clustering = sources(view.clustering().collect())?;
    let extra = partition_key
        .iter()
        .chain(&clustering)
        .find_map(|source| match source {
            Source::Regular(column) => Some(*column),
            _ => None,
        });
    let mut shared = view
        .regulars()
        .map(|column| {
            Ok(Shared {
                base: base_column(column)?.id,
                view: column.clone(),
            })
        })
        .collect::<Result<Vec<_>, Error>>()?;
    shared.sort_by_key(|shared| shared.view.id);
    let unselected = base
        .regulars()
        .filter(|column| view.column_named(&column.name).is_none())
        .map(|column| column.id)
        .collect();
    Ok(ViewPlan {
        partitioner: view.partitioner(partitioner),
        partition_key,
        clustering,
        extra,
        shared,
        unselected,
        filter,
        base,
        view,
    })
}

/// The checks of a view's WHERE on rows of the base.
fn filter_of(
    base: &Arc<TableSchema>,
    clause: &str,
    schema: &Arc<Schema>,
    store: &dyn Store,
    options: &QueryOptions,
) -> Result<RowFilter, Error> {
    let relations = relations_of(clause)?;
    let context = PlanContext::new(store, schema, options, Some(&base.keyspace), &[]);
    let (execute_options, warnings) = (ExecuteOptions::default(), RefCell::default());
    let calls = function_calls(options, None);
    let execution = Execution {
        store,
        schema,
        values: &[],
        options: &execute_options,
        query_options: options,
        now_secs: 0,
        warnings: &warnings,
        calls: &calls,
        patience: None,
        views: None,
        sight: Sight::Clear,
    };
    row_filter(base, &restricting(&relations), &context, &execution)
}

/// The relations of a WHERE clause.
fn relations_of(clause: &str) -> Result<Vec<Relation>, Error> {
    if clause.is_empty() {
        return Ok(Vec::new());
    }
    let parsed = ilion_cql::parse(&format!("SELECT * FROM base WHERE {clause} ALLOW FILTERING"))?;
    match parsed.statement {
        Statement::Select(select) => Ok(select.relations),
        _ => Err(Error::ServerError(format!("not a WHERE clause: {clause}"))),
    }
}

/// The relations without `IS NOT NULL`, which is always true for key columns.
pub(crate) fn restricting(relations: &[Relation]) -> Vec<Relation> {
    relations
        .iter()
        .filter(|relation| relation.operator != Operator::IsNotNull)
        .cloned()
        .collect()
}
