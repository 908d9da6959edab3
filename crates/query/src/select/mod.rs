//! SELECT.

mod row_view;

use std::sync::Arc;

use ilion_cql::ast;
use ilion_schema::TableSchema;

use crate::context::{Execution, PlanContext};
use crate::{ColumnSpec, Error, ResultSet, StatementWeight};

pub(crate) use self::row_view::RowView;

/// A planned SELECT.
#[derive(Debug)]
pub(crate) struct SelectPlan {
    table: Arc<TableSchema>,
    columns: Arc<[ColumnSpec]>,
}

impl SelectPlan {
    /// Resolves a SELECT.
    pub fn plan(ast: &ast::Select, context: &PlanContext<'_>) -> Result<Self, Error> {
        let _ = context.table(&ast.table)?;
        Err(Error::ServerError("SELECT is not built yet".into()))
    }

    /// The columns of its rows.
    pub fn columns(&self) -> &Arc<[ColumnSpec]> {
        &self.columns
    }

    /// The table.
    pub fn table(&self) -> &Arc<TableSchema> {
        &self.table
    }

    /// Which markers make the partition key, in key order; empty if they do not make all of it.
    pub fn partition_key_markers(&self) -> Vec<u16> {
        Vec::new()
    }

    /// What executing may cost.
    pub fn weight(&self) -> StatementWeight {
        StatementWeight::Heavy
    }

    /// One page of rows.
    pub fn execute(&self, _execution: &Execution<'_>) -> Result<ResultSet, Error> {
        Err(Error::ServerError("SELECT is not built yet".into()))
    }
}
