//! From statements to plans.
//!
//! Compat: `ModificationStatement`, `UpdateStatement` and `DeleteStatement` of Cassandra 5.0.

use std::sync::Arc;

use ilion_cql::ast;
use ilion_schema::{TableKind, TableSchema};
use ilion_types::CqlType;

use super::condition::Condition;
use super::json::JsonSource;
use super::modify::{Kind, ModifyPlan, Target};
use super::operation::{Operation, OperationPlanner, Operations};
use super::target::target_of_values;
use super::timing::Timing;
use crate::Error;
use crate::context::PlanContext;
use crate::restrictions::relation::existing;
use crate::restrictions::{RestrictionUse, Restrictions};
use crate::term::Term;

pub(super) fn insert(ast: &ast::Insert, context: &PlanContext<'_>) -> Result<ModifyPlan, Error> {
    let table = context.table(&ast.table)?;
    let timing = Timing::plan(&ast.using, &table, context)?;
    let condition = if ast.if_not_exists {
        Condition::NotExists
    } else {
        Condition::None
    };
    if table.is_counter() {
        return Err(Error::invalid(
            "INSERT statements are not allowed on counter tables, use UPDATE instead",
        ));
    }
    let (target, operations) = match &ast.source {
        ast::InsertSource::Values { columns, values } => {
            insert_values(&table, columns, values, &condition, context)?
        }
        ast::InsertSource::Json { value, default_unset } => {
            let source = JsonSource::plan(value, *default_unset, &table, context)?;
            (Target::Json(source), Operations::default())
        }
    };
    checked(table, Kind::Insert, target, operations, timing, condition)
}

fn insert_values(
    table: &Arc<TableSchema>,
    names: &[ast::Identifier],
    values: &[ast::Term],
    condition: &Condition,
    context: &PlanContext<'_>,
) -> Result<(Target, Operations), Error> {
    if names.is_empty() {
        return Err(Error::invalid("No columns provided to INSERT"));
    }
    if names.len() != values.len() {
        return Err(Error::invalid("Unmatched column names/values"));
    }
    if names
        .iter()
        .enumerate()
        .any(|(index, name)| names[..index].contains(name))
    {
        return Err(Error::invalid("The column names contains duplicates"));
    }
    let planner = OperationPlanner { table, context };
    let mut in_key = Vec::new();
    let mut operations = Vec::new();
    for (name, value) in names.iter().zip(values) {
        let column = existing(table, name)?;
        if column.is_primary_key() {
            in_key.push((column, value));
        } else {
            operations.push(planner.set(column, value)?);
        }
    }
    // Compat: values of the key are planned last, so if another value does not fit either, the error names that one.
    let mut keys = Vec::with_capacity(in_key.len());
    for (column, value) in in_key {
        keys.push((column, Term::plan(value, &planner.receiver(column), context)?));
    }
    let operations = Operations::new(operations);
    let target = target_of_values(table, keys, &operations, condition)?;
    if let Some(column) = table
        .regulars()
        .next()
        .filter(|value| table.is_compact() && operations.is_empty() && value.ty != CqlType::Empty)
    {
        return Err(Error::Invalid(format!(
            "Column {} is mandatory for this COMPACT STORAGE table",
            column.name
        )));
    }
    Ok((target, operations))
}

pub(super) fn update(ast: &ast::Update, context: &PlanContext<'_>) -> Result<ModifyPlan, Error> {
    let table = context.table(&ast.table)?;
    let timing = Timing::plan(&ast.using, &table, context)?;
    let condition = Condition::plan(&ast.condition, &table, context)?;
    let planner = OperationPlanner {
        table: &table,
        context,
    };
    let mut operations = Vec::with_capacity(ast.assignments.len());
    for assignment in &ast.assignments {
        let column = existing(&table, &assignment.column)?;
        if column.is_primary_key() {
            return Err(Error::Invalid(format!(
                "PRIMARY KEY part {} found in SET part",
                column.name
            )));
        }
        operations.push(planner.assign(column, &assignment.operation)?);
    }
    let operations = Operations::new(operations);
    let use_for = RestrictionUse::Update {
        only_statics: only_statics(&operations, &condition),
    };
    let restrictions = Restrictions::plan(&table, &ast.relations, use_for, context)?;
    let target = Target::Where(Box::new(restrictions));
    checked(table, Kind::Update, target, operations, timing, condition)
}

pub(super) fn delete(ast: &ast::Delete, context: &PlanContext<'_>) -> Result<ModifyPlan, Error> {
    let table = context.table(&ast.table)?;
    let timing = Timing::plan(&ast.using, &table, context)?;
    let condition = Condition::plan(&ast.condition, &table, context)?;
    let planner = OperationPlanner {
        table: &table,
        context,
    };
    let operations: Vec<Operation> = ast
        .targets
        .iter()
        .map(|part| planner.delete(part))
        .collect::<Result<_, _>>()?;
    let operations = Operations::new(operations);
    let use_for = RestrictionUse::Delete {
        only_statics: !operations.is_empty() && only_statics(&operations, &condition),
    };
    let restrictions = Restrictions::plan(&table, &ast.relations, use_for, context)?;
    check_delete(&table, &restrictions, &operations, &condition)?;
    let target = Target::Where(Box::new(restrictions));
    checked(table, Kind::Delete, target, operations, timing, condition)
}

/// True if all operations and conditions are on static columns.
fn only_statics(operations: &Operations, condition: &Condition) -> bool {
    operations.regular.is_empty()
        && !condition.is_on_regular()
        && (!operations.statics.is_empty() || condition.is_on_statics())
}

fn check_delete(
    table: &TableSchema,
    restrictions: &Restrictions,
    operations: &Operations,
    condition: &Condition,
) -> Result<(), Error> {
    if !condition.is_none() && !restrictions.is_one_row() {
        const WANTED: &str =
            "DELETE statements must restrict all PRIMARY KEY columns with equality relations in order to";
        if restrictions.has_key_in() || restrictions.has_clustering_in() {
            // The execution refuses the statement, with another message.
            return Ok(());
        }
        // A DELETE without columns deletes whole rows.
        if !operations.regular.is_empty() || operations.is_empty() {
            return Err(Error::Invalid(format!("{WANTED} delete non static columns")));
        }
        if !only_statics(operations, condition) {
            return Err(Error::Invalid(format!(
                "{WANTED} use IF condition on non static columns"
            )));
        }
    }
    let deletes_ranges = table.clustering().len() > 0 && !restrictions.gives_rows();
    if deletes_ranges && !operations.regular.is_empty() {
        return Err(Error::invalid(
            "Range deletions are not supported for specific columns",
        ));
    }
    Ok(())
}

/// The plan of a statement, after the checks that INSERT, UPDATE and DELETE share.
fn checked(
    table: Arc<TableSchema>,
    kind: Kind,
    target: Target,
    operations: Operations,
    timing: Timing,
    condition: Condition,
) -> Result<ModifyPlan, Error> {
    let plan = ModifyPlan {
        table,
        kind,
        target,
        operations,
        timing,
        condition,
        has_views: false,
        masks: None,
    };
    let refuse_if = |refused: bool, message: &str| {
        if refused {
            Err(Error::invalid(message))
        } else {
            Ok(())
        }
    };
    let (table, timing) = (&plan.table, &plan.timing);
    let conditional = plan.is_conditional();
    refuse_if(
        conditional && table.is_counter(),
        "Conditional updates are not supported on counter tables",
    )?;
    refuse_if(
        conditional && timing.has_timestamp(),
        "Cannot provide custom timestamp for conditional updates",
    )?;
    refuse_if(
        table.is_counter() && timing.has_timestamp(),
        "Cannot provide custom timestamp for counter updates",
    )?;
    refuse_if(
        table.is_counter() && timing.has_ttl(),
        "Cannot provide custom TTL for counter updates",
    )?;
    refuse_if(
        table.kind == TableKind::View,
        "Cannot directly modify a materialized view",
    )?;
    Ok(plan)
}

/// Checks a statement on a virtual table, which is computed when it is read. Some of these tables can be updated.
///
/// Compat: messages of `ModificationStatement`.
pub(super) fn check_virtual(plan: &ModifyPlan, context: &PlanContext<'_>) -> Result<(), Error> {
    let table = &plan.table;
    if table.kind != TableKind::Virtual {
        return Ok(());
    }
    let refuse_if = |refused: bool, what: &str| match refused {
        true => Err(Error::Invalid(format!(
            "{what} by table {}.{}",
            table.keyspace, table.name
        ))),
        false => Ok(()),
    };
    refuse_if(
        !context.store.is_settable(table.id),
        "Modification is not supported",
    )?;
    refuse_if(plan.kind == Kind::Delete, "Deletion is not supported")?;
    refuse_if(plan.is_conditional(), "Conditional updates are not supported")?;
    refuse_if(plan.has_timestamp(), "Custom timestamp is not supported")?;
    refuse_if(plan.timing.has_ttl(), "Expiring columns are not supported")
}
