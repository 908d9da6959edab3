//! A statement ready to be executed.

use std::sync::Arc;

use ilion_cql::ast::{Modification, QualifiedName, Statement};
use ilion_schema::{Column, TableKind, TableSchema, is_system_keyspace};

use crate::access::AccessPlan;
use crate::batch::BatchPlan;
use crate::consistency;
use crate::context::{Execution, PlanContext};
use crate::ddl::SchemaPlan;
use crate::describe::DescribePlan;
use crate::explain::ExplainPlan;
use crate::guardrails;
use crate::protect::{check_change, check_derived, check_truncate};
use crate::select::SelectPlan;
use crate::write::ModifyPlan;
use crate::{ColumnSpec, Consistency, Error, ExecuteOptions, Executed, Outcome, StatementWeight};

/// A statement ready to be executed.
#[derive(Debug)]
pub(crate) enum Plan {
    Select(Box<SelectPlan>),
    Explain(Box<ExplainPlan>),
    Modify(Box<ModifyPlan>),
    Batch(Box<BatchPlan>),
    /// Sets the session's keyspace.
    Use(String),
    /// Removes all data of a table.
    Truncate(Arc<TableSchema>),
    Schema(Box<SchemaPlan>),
    /// About roles and permissions.
    Access(Box<AccessPlan>),
    Describe(Box<DescribePlan>),
}

impl Plan {
    /// The INSERT, UPDATE or DELETE that a member of a protocol batch must be.
    ///
    /// # Errors
    /// The plan is of another kind of statement.
    pub fn modification(&self) -> Result<&ModifyPlan, Error> {
        match self {
            Self::Modify(modification) => Ok(modification),
            _ => Err(Error::invalid(
                "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed.",
            )),
        }
    }

    /// Resolves a statement against the schema.
    pub fn of(statement: &Statement, context: &PlanContext<'_>) -> Result<Self, Error> {
        Ok(match statement {
            Statement::Select(select) => Self::Select(Box::new(SelectPlan::plan(select, context)?)),
            Statement::Explain(explain) => Self::Explain(Box::new(ExplainPlan::plan(explain, context)?)),
            Statement::Insert(insert) => modify(Modification::Insert(insert.clone()), context)?,
            Statement::Update(update) => modify(Modification::Update(update.clone()), context)?,
            Statement::Delete(delete) => modify(Modification::Delete(delete.clone()), context)?,
            Statement::Batch(batch) => Self::Batch(Box::new(BatchPlan::plan(batch, context)?)),
            Statement::Use(keyspace) => Self::Use(keyspace.clone()),
            Statement::Truncate(name) => Self::Truncate(truncated_table(name, context)?),
            Statement::Describe(describe) => Self::Describe(Box::new(DescribePlan::plan(describe, context))),
            other => match AccessPlan::of(other, context.keyspace) {
                Some(plan) => Self::Access(Box::new(plan)),
                None => Self::Schema(Box::new(SchemaPlan::plan(other, context)?)),
            },
        })
    }

    /// The result's columns, if they are always the same.
    pub fn result_columns(&self) -> Option<Arc<[ColumnSpec]>> {
        match self {
            Self::Select(select) => Some(select.columns().clone()),
            Self::Explain(explain) => Some(explain.columns().clone()),
            // Compat: the columns of a conditional statement's answer are not known when it is prepared: they depend on whether
            // it is applied.
            _ => None,
        }
    }

    /// The table of the statement, or of all members of a batch; `None` if there is none or several.
    pub fn only_table(&self) -> Option<&Arc<TableSchema>> {
        match self {
            Self::Batch(batch) => batch.only_table(),
            other => other.table(),
        }
    }

    /// The markers that form the partition key, in key order; empty if they do not cover all of it. If several markers have a column as
    /// their receiver, as in `IN (?, ?)` and in batches, the last one counts.
    ///
    /// Compat: `VariableSpecifications.getPartitionKeyBindVariableIndexes`.
    pub fn partition_key_indexes(&self, receivers: &[ColumnSpec]) -> Vec<u16> {
        let Some(table) = self.only_table() else {
            return Vec::new();
        };
        let position = |column: &Column| {
            let is_of_column = |receiver: &ColumnSpec| *receiver.name == *column.name;
            let position = receivers.iter().rposition(is_of_column);
            u16::try_from(position?).ok()
        };
        let positions: Option<Vec<u16>> = table.partition_key().map(position).collect();
        positions.unwrap_or_default()
    }

    /// The consistency level of its reads. A write reads at the serial level.
    pub fn read_level(&self, options: &ExecuteOptions) -> Consistency {
        match self {
            Self::Select(_) | Self::Explain(_) => options.consistency,
            _ => options.serial_consistency.unwrap_or(Consistency::SERIAL),
        }
    }

    /// Whether an execution reads little or may take long.
    pub fn weight(&self) -> StatementWeight {
        match self {
            Self::Select(select) => select.weight(),
            // Conditions and counters read few rows, by key. In a cluster they wait for the log, as other writes do.
            Self::Modify(_) | Self::Batch(_) | Self::Use(_) => StatementWeight::Point,
            _ => StatementWeight::Heavy,
        }
    }

    /// The table, if the statement has exactly one.
    pub fn table(&self) -> Option<&Arc<TableSchema>> {
        match self {
            Self::Select(select) => Some(select.table()),
            Self::Explain(explain) => Some(explain.select().table()),
            Self::Modify(modify) => Some(modify.table()),
            Self::Truncate(table) => Some(table),
            _ => None,
        }
    }

    /// The tables whose values the statement masks for roles without UNMASK.
    pub fn masked_tables(&self) -> impl Iterator<Item = &Arc<TableSchema>> {
        let select = match self {
            Self::Select(select) => Some(&**select),
            Self::Explain(explain) => Some(explain.select()),
            _ => None,
        };
        let changes = match self {
            Self::Modify(modify) => std::slice::from_ref(&**modify),
            Self::Batch(batch) => batch.members(),
            _ => &[],
        };
        let selected = select.into_iter().filter(|select| select.has_masks());
        let changed = changes.iter().filter(|modify| modify.has_masks());
        selected
            .map(SelectPlan::table)
            .chain(changed.map(ModifyPlan::table))
    }

    /// All tables of the statement; of a batch, those of its members.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableSchema>> {
        let members = match self {
            Self::Batch(batch) => batch.members(),
            _ => &[],
        };
        self.table()
            .into_iter()
            .chain(members.iter().map(ModifyPlan::table))
    }

    pub fn execute(&self, execution: &Execution<'_>) -> Result<Executed, Error> {
        match self {
            Self::Select(select) => {
                check_read(select, execution)?;
                Ok(Executed::of(Outcome::Rows(select.execute(execution)?)))
            }
            Self::Explain(explain) => {
                check_read(explain.select(), execution)?;
                explain.execute(execution)
            }
            Self::Modify(modify) => {
                check_consistency(modify, execution)?;
                modify.execute(execution)
            }
            Self::Batch(batch) => batch.execute(execution),
            Self::Use(keyspace) => use_keyspace(keyspace, execution),
            Self::Truncate(table) => truncate(table, execution),
            Self::Schema(change) => change.execute(execution, drop),
            Self::Describe(describe) => describe.execute(execution),
            // The processor executes these statements, since it knows the client.
            Self::Access(_) => Err(Error::ServerError(
                "a statement about roles has no client".to_owned(),
            )),
        }
    }
}

/// Checks the level of a read.
fn check_read(select: &SelectPlan, execution: &Execution<'_>) -> Result<(), Error> {
    consistency::check_read(execution.options)?;
    if !is_system_keyspace(&select.table().keyspace) {
        guardrails::check_read_level(execution.options.consistency, execution)?;
        guardrails::check_intersection(select.is_mutable_intersection(), execution)?;
    }
    Ok(())
}

fn modify(ast: Modification, context: &PlanContext<'_>) -> Result<Plan, Error> {
    let plan = ModifyPlan::plan(&ast, context)?;
    check_change(plan.table())?;
    Ok(Plan::Modify(Box::new(plan)))
}

/// Checks the levels of a write.
fn check_consistency(modify: &ModifyPlan, execution: &Execution<'_>) -> Result<(), Error> {
    let options = execution.options;
    if modify.is_conditional() {
        consistency::check_condition(options)
    } else if modify.is_counter() {
        consistency::check_counter(options, modify.table())
    } else {
        consistency::check_write(options)
    }
}

fn use_keyspace(keyspace: &str, execution: &Execution<'_>) -> Result<Executed, Error> {
    if !execution.query_options.guardrails.use_statements_enabled {
        return Err(Error::invalid(
            "USE statements prohibited. (see use_statements_enabled in the settings)",
        ));
    }
    if execution.schema.keyspace(keyspace).is_none() {
        return Err(Error::invalid(format!("Keyspace '{keyspace}' does not exist")));
    }
    Ok(Executed::of(Outcome::SetKeyspace(keyspace.to_owned())))
}

fn truncated_table(name: &QualifiedName, context: &PlanContext<'_>) -> Result<Arc<TableSchema>, Error> {
    let table = context.table(name)?;
    match table.kind {
        TableKind::Regular => {
            check_truncate(&table)?;
            check_derived(&table, context)?;
            Ok(table)
        }
        TableKind::View => Err(Error::invalid(
            "Cannot TRUNCATE materialized view directly; must truncate base table instead",
        )),
        TableKind::Virtual if context.store.is_clearable(table.id) => Ok(table),
        TableKind::Virtual => Err(Error::Invalid(format!(
            "Truncation is not supported by table {}.{}",
            table.keyspace, table.name
        ))),
    }
}

fn truncate(table: &TableSchema, execution: &Execution<'_>) -> Result<Executed, Error> {
    guardrails::check_removal(execution)?;
    if let Some(views) = execution.views {
        views.truncate(table.id)?;
        return Ok(Executed::of(Outcome::Void));
    }
    execution
        .store
        .truncate(table.id)
        .map_err(|refused| match refused.of_statement() {
            Error::ServerError(message) => Error::Truncate(format!("Error during truncate: {message}")),
            other => other,
        })?;
    Ok(Executed::of(Outcome::Void))
}
