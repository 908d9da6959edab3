//! A statement ready to be executed.

use std::sync::Arc;

use ilion_cql::ast::{Modification, Statement};

use crate::context::{Execution, PlanContext};
use crate::select::SelectPlan;
use crate::write::ModifyPlan;
use crate::{ColumnSpec, Error, Executed, Outcome, StatementWeight};

/// A statement ready to be executed.
#[derive(Debug)]
pub(crate) enum Plan {
    Select(Box<SelectPlan>),
    Modify(Box<ModifyPlan>),
    /// The client's keyspace becomes this one.
    Use(String),
}

impl Plan {
    /// Resolves a statement against the schema.
    pub fn of(statement: &Statement, context: &PlanContext<'_>) -> Result<Self, Error> {
        match statement {
            Statement::Select(select) => {
                SelectPlan::plan(select, context).map(|plan| Self::Select(Box::new(plan)))
            }
            Statement::Insert(insert) => modify(Modification::Insert(insert.clone()), context),
            Statement::Update(update) => modify(Modification::Update(update.clone()), context),
            Statement::Delete(delete) => modify(Modification::Delete(delete.clone()), context),
            Statement::Use(keyspace) => Ok(Self::Use(keyspace.clone())),
            _ => Err(Error::ServerError("this statement is not built yet".into())),
        }
    }

    /// The columns of the rows that it answers; nothing for statements without rows.
    pub fn result_columns(&self) -> Option<Arc<[ColumnSpec]>> {
        match self {
            Self::Select(select) => Some(select.columns().clone()),
            Self::Modify(modify) => modify.result_columns(),
            Self::Use(_) => None,
        }
    }

    /// Which markers make the partition key.
    pub fn partition_key_markers(&self) -> Vec<u16> {
        match self {
            Self::Select(select) => select.partition_key_markers(),
            Self::Modify(modify) => modify.partition_key_markers(),
            Self::Use(_) => Vec::new(),
        }
    }

    /// What executing may cost.
    pub fn weight(&self) -> StatementWeight {
        match self {
            Self::Select(select) => select.weight(),
            Self::Modify(modify) if modify.is_conditional() || modify.is_counter() => StatementWeight::Heavy,
            Self::Modify(_) | Self::Use(_) => StatementWeight::Point,
        }
    }

    /// Carries it out.
    pub fn execute(&self, execution: &Execution<'_>) -> Result<Executed, Error> {
        match self {
            Self::Select(select) => Ok(Executed::of(Outcome::Rows(select.execute(execution)?))),
            Self::Modify(modify) => modify.execute(execution),
            Self::Use(keyspace) => Ok(Executed::of(Outcome::SetKeyspace(keyspace.clone()))),
        }
    }
}

fn modify(ast: Modification, context: &PlanContext<'_>) -> Result<Plan, Error> {
    ModifyPlan::plan(&ast, context).map(|plan| Plan::Modify(Box::new(plan)))
}
