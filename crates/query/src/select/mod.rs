//! SELECT: planned once, executed page by page.
//!
//! | module | what |
//! | --- | --- |
//! | `selection`, `selected_columns`, `rows_out` | the columns of the result |
//! | `compile`, `access`, `compound`, `selector_term` | selectors to expressions |
//! | `expression`, `cell_facts`, `collection_parts`, `aggregate` | expressions and their values |
//! | `row_view` | a row in the form of CQL |
//! | `plain` | plain rows, straight from the bytes of a source to those of the answer or to aggregates |
//! | `nearest` | `ORDER BY .. ANN OF` |
//! | `order`, `group_by`, `limits`, `rules` | the other clauses |
//! | `scan`, `segments`, `candidates` | reading partitions and rows: all, or those that an index found |
//! | `explain` | EXPLAIN |
//! | `execute`, `paging` | building a page; paging states |

mod access;
mod aggregate;
mod candidates;
mod cell_facts;
mod collection_parts;
mod compile;
mod compile_aggregate;
mod compound;
mod execute;
mod explain;
mod expression;
mod group_by;
mod limits;
mod nearest;
mod order;
mod paging;
mod plain;
pub(crate) mod row_view;
mod rows_out;
mod rules;
mod scan;
mod segments;
mod selected_columns;
mod selection;
mod selector_term;
mod user_aggregate;
mod wanted_elements;

use std::sync::Arc;

use ilion_cql::ast;
use ilion_rows::ClusteringFilter;
use ilion_schema::{Column, ColumnId, ColumnKind, TableSchema};

use self::compile::Compiler;
use self::group_by::GroupBy;
use self::limits::LimitTerms;
use self::nearest::Nearest;
use self::order::Order;
use self::plain::{PlainArguments, PlainSelection};
use self::selection::Selection;
use self::wanted_elements::ElementKeys;
use crate::context::{Execution, PlanContext, Sight};
use crate::masking::{Masks, masked_in};
use crate::restrictions::relation::existing;
use crate::restrictions::{RestrictionUse, Restrictions};
use crate::{ColumnSpec, Error, StatementWeight};

pub(crate) use self::row_view::{RowView, key_components};

/// True if, beside the partition key, only static columns are selected, and at least one.
fn has_only_statics(selected: &[Column]) -> bool {
    let of_partition = [ColumnKind::PartitionKey, ColumnKind::Static];
    selected.iter().all(|column| of_partition.contains(&column.kind))
        && selected.iter().any(|column| column.kind == ColumnKind::Static)
}

/// Static and regular columns that are selected or checked; `None` selects all.
fn data_columns(
    ast: &ast::Select,
    selected: &[Column],
    restrictions: &Restrictions,
    nearest: Option<&Nearest>,
) -> Option<Arc<[ColumnId]>> {
    if ast.selection == ast::Selection::All {
        return None;
    }
    let mut columns: Vec<ColumnId> = selected
        .iter()
        .chain(restrictions.checked_columns())
        .chain(nearest.map(|nearest| &nearest.column))
        .filter(|column| !column.is_primary_key())
        .map(|column| column.id)
        .collect();
    columns.sort();
    columns.dedup();
    Some(columns.into())
}

/// True if `columns`, which ascend, include all static and regular columns.
fn is_all(columns: &[ColumnId], table: &TableSchema) -> bool {
    columns.len() == table.statics().chain(table.regulars()).count()
}

/// A planned SELECT.
#[derive(Debug)]
pub(crate) struct SelectPlan {
    table: Arc<TableSchema>,
    columns: Arc<[ColumnSpec]>,
    answer: Answer,
    /// The answer for roles without UNMASK; `None` if no masks apply.
    masked: Option<Box<Answer>>,
    /// The names of masked columns in WHERE.
    masked_restricted: Vec<String>,
    restrictions: Restrictions,
    order: Order,
    nearest: Option<Nearest>,
    group_by: Option<GroupBy>,
    limits: LimitTerms,
    is_distinct: bool,
    /// The filter of point reads in tables without clustering: the same for all executions.
    all_rows: ClusteringFilter,
    /// Columns that are read in part.
    element_keys: Vec<ElementKeys>,
}

/// How an answer is made from rows: its columns, and the shortcuts for plain rows.
#[derive(Debug)]
struct Answer {
    selection: Selection,
    /// How plain rows are answered; `None` if the plan cannot use them.
    plain: Option<PlainSelection>,
    /// How plain rows after the first of a group are added to it; `None` if the plan cannot use them.
    plain_arguments: Option<PlainArguments>,
}

impl Answer {
    fn of(
        selection: Selection,
        table: &TableSchema,
        group_by: Option<&GroupBy>,
        order: &Order,
        ast: &ast::Select,
    ) -> Self {
        let is_in_stored_order = !ast.distinct && !order.is_sorting();
        let as_they_are = selection.columns_as_they_are().filter(|_| is_in_stored_order);
        let may_add_plain = match group_by {
            None => selection.is_aggregate(),
            // Without clustering, each row is a group of its own.
            Some(group_by) => group_by.is_by_partition() && table.clustering().next().is_some(),
        };
        let arguments = selection
            .plain_arguments()
            .filter(|_| is_in_stored_order && may_add_plain);
        Self {
            plain_arguments: arguments.and_then(|arguments| PlainArguments::of(&arguments, table)),
            plain: as_they_are.and_then(|columns| PlainSelection::of(columns, table)),
            selection,
        }
    }
}

impl SelectPlan {
    /// Resolves a SELECT.
    pub fn plan(ast: &ast::Select, context: &PlanContext<'_>) -> Result<Self, Error> {
        rules::note_forbidden(ast, context);
        let table = context.table(&ast.table)?;
        let selected = selected_columns::columns_of(&ast.selection, &table)?;
        for ordering in &ast.order_by {
            existing(&table, &ordering.column)?;
        }
        let use_for = RestrictionUse::Select {
            allow_filtering: ast.allow_filtering,
            only_statics: ast.selection != ast::Selection::All && has_only_statics(&selected),
        };
        let nearest = Nearest::plan(&ast.order_by, &table, context)?;
        let ordered_by = nearest.as_ref().map(|nearest| &nearest.column);
        let restrictions = Restrictions::plan_ordered(&table, &ast.relations, use_for, ordered_by, context)?;
        let (selection, columns) = Selection::plan(ast, &table, None, context)?;
        let masks = Masks::of(&table, context);
        let masked = masks.map(|masks| Selection::plan(ast, &table, Some(&masks), context));
        let masked = masked.transpose()?;
        rules::check_distinct_limit(ast)?;
        if ast.distinct {
            rules::check_distinct_order(nearest.is_some())?;
            rules::check_distinct(&table, &selected, &restrictions, &ast.order_by)?;
        }
        let group_by = GroupBy::plan(&ast.group_by, &table, &restrictions, ast.distinct, context)?;
        rules::check_limits(ast, &selection, group_by.as_ref())?;
        let order = match &nearest {
            None => Order::plan(&ast.order_by, &table, &restrictions)?,
            Some(_) => Order::default(),
        };
        restrictions.check_filtering(context)?;
        let is_needed = |id: ColumnId| {
            let mut needed = restrictions
                .checked_columns()
                .chain(nearest.as_ref().map(|nearest| &nearest.column));
            needed.any(|column| column.id == id)
        };
        let element_keys = wanted_elements::element_keys(&ast.selection, &table, is_needed, context)?;
        let columns_wanted = data_columns(ast, &selected, &restrictions, nearest.as_ref());
        let answer = |selection| Answer::of(selection, &table, group_by.as_ref(), &order, ast);
        Ok(Self {
            answer: answer(selection),
            masked: masked.map(|(selection, _)| Box::new(answer(selection))),
            masked_restricted: masked_in(&table, &ast.relations, ordered_by),
            limits: LimitTerms::plan(ast, &Compiler::new(&table, context), context)?,
            is_distinct: ast.distinct,
            all_rows: ClusteringFilter {
                columns: columns_wanted.filter(|wanted| !element_keys.is_empty() || !is_all(wanted, &table)),
                ..ClusteringFilter::all()
            },
            element_keys,
            order,
            table,
            columns,
            restrictions,
            group_by,
            nearest,
        })
    }

    /// The table.
    pub fn table(&self) -> &Arc<TableSchema> {
        &self.table
    }

    /// True if masks apply for roles without UNMASK.
    pub fn has_masks(&self) -> bool {
        self.masked.is_some()
    }

    /// The names of masked columns in WHERE, in order.
    pub fn masked_restricted(&self) -> &[String] {
        &self.masked_restricted
    }

    /// The answer for this execution: with or without masks.
    fn answer(&self, execution: &Execution<'_>) -> &Answer {
        match (&self.masked, execution.sight) {
            (Some(masked), Sight::Masked) => masked,
            _ => &self.answer,
        }
    }

    /// True if rows are aggregated.
    fn is_aggregate(&self) -> bool {
        self.answer.selection.is_aggregate()
    }

    /// The columns of the result.
    pub fn columns(&self) -> &Arc<[ColumnSpec]> {
        &self.columns
    }

    /// The markers that form the partition key, in key order; empty if they do not cover all of it.
    /// True if rows are checked by several mutable columns, which writes may change at different times.
    pub fn is_mutable_intersection(&self) -> bool {
        self.restrictions.is_mutable_intersection()
    }

    /// True if WHERE gives the keys of the partitions.
    pub fn is_by_key(&self) -> bool {
        self.restrictions.is_by_key()
    }

    /// Whether an execution reads little or may take long.
    pub fn weight(&self) -> StatementWeight {
        if self.restrictions.is_one_row() {
            StatementWeight::Point
        } else {
            StatementWeight::Heavy
        }
    }
}
