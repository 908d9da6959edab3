//! Dynamic data masking: what roles without UNMASK see instead of the values of masked columns.
//!
//! | module | what |
//! | --- | --- |
//! | `define` | `MASKED WITH` of a statement to the mask of a column |
//! | `masker` | the function of a mask, and its application to a value |
//!
//! A SELECT of a table with masks is planned twice: as roles with UNMASK see it, and with a [`Masker`] around each masked
//! column. `Sight` selects the plan of an execution. So functions and aggregates get masked values, while restrictions,
//! groups, order and pages work on stored ones.
//!
//! Compat: `ColumnMask`, `SimpleSelector` and `SelectStatement` of Cassandra 5.0. Cassandra does not mask the answers of
//! conditional statements; Ilion does.

mod define;
mod masker;

use std::sync::Arc;

use ilion_cql::ast::{Relation, Subject};
use ilion_schema::{Column, ColumnId, TableSchema};

use crate::context::PlanContext;

pub(crate) use define::{MaskedColumn, check_enabled, define};
pub(crate) use masker::Masker;

/// The masks of a table.
#[derive(Clone, Debug)]
pub(crate) struct Masks(Arc<[(ColumnId, Arc<Masker>)]>);

impl Masks {
    /// The masks that apply to a table; `None` if it has none, or if masking is not enabled.
    pub fn of(table: &TableSchema, context: &PlanContext<'_>) -> Option<Self> {
        if !table.has_masks() || !context.options.dynamic_data_masking_enabled {
            return None;
        }
        let masked = table.every_column().into_iter().filter_map(|column| {
            let mask = column.mask.as_ref()?;
            Some((column.id, Arc::new(Masker::of(mask, column, table, context))))
        });
        Some(Self(masked.collect()))
    }

    /// The mask of a column, if it has one.
    pub fn of_column(&self, column: ColumnId) -> Option<&Arc<Masker>> {
        let mut masks = self.0.iter();
        masks.find(|(id, _)| *id == column).map(|(_, masker)| masker)
    }
}

/// The names of masked columns that relations or the order by nearness restrict, in the order of their names. Columns count as
/// masked even while masking is not enabled.
///
/// Compat: `SelectStatement.authorize`.
pub(crate) fn masked_in<'a>(
    table: &TableSchema,
    relations: &'a [Relation],
    ordered_by: Option<&'a Column>,
) -> Vec<String> {
    if !table.has_masks() {
        return Vec::new();
    }
    let mut names: Vec<&str> = ordered_by.iter().map(|column| column.name.as_str()).collect();
    relations
        .iter()
        .for_each(|relation| restricted(relation, &mut names));
    let is_masked = |name: &&str| {
        let column = table.column_named(name);
        column.is_some_and(|column| column.mask.is_some())
    };
    names.retain(is_masked);
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(str::to_owned).collect()
}

fn restricted<'a>(relation: &'a Relation, names: &mut Vec<&'a str>) {
    match &relation.subject {
        Subject::Column(name) | Subject::Element { column: name, .. } => names.push(name),
        Subject::Columns(columns) | Subject::Token(columns) => {
            names.extend(columns.iter().map(String::as_str));
        }
        Subject::AnyOf(branches) => {
            let relations = branches.iter().flatten();
            relations.for_each(|relation| restricted(relation, names));
        }
        // `expr(index, ..)` is refused anyway.
        Subject::Index(_) => {}
    }
}
