//! INSERT, UPDATE and DELETE.

use std::sync::Arc;

use ilion_cql::ast;
use ilion_rows::Mutation;
use ilion_schema::TableSchema;

use crate::context::{Execution, PlanContext};
use crate::{ColumnSpec, Error, Executed};

/// A planned INSERT, UPDATE or DELETE.
#[derive(Debug)]
pub(crate) struct ModifyPlan {
    table: Arc<TableSchema>,
}

impl ModifyPlan {
    /// Resolves a change of data.
    pub fn plan(ast: &ast::Modification, context: &PlanContext<'_>) -> Result<Self, Error> {
        let name = match ast {
            ast::Modification::Insert(insert) => &insert.table,
            ast::Modification::Update(update) => &update.table,
            ast::Modification::Delete(delete) => &delete.table,
        };
        let _ = context.table(name)?;
        Err(not_built())
    }

    /// The table.
    pub fn table(&self) -> &Arc<TableSchema> {
        &self.table
    }

    /// Which markers make the partition key, in key order; empty if they do not make all of it.
    pub fn partition_key_markers(&self) -> Vec<u16> {
        Vec::new()
    }

    /// True if it has an IF.
    pub fn is_conditional(&self) -> bool {
        false
    }

    /// True if it changes counters.
    pub fn is_counter(&self) -> bool {
        self.table.is_counter()
    }

    /// True if it says its own timestamp.
    pub fn has_timestamp(&self) -> bool {
        false
    }

    /// The columns of what a conditional change answers, as far as planning can know them; nothing for others.
    pub fn result_columns(&self) -> Option<Arc<[ColumnSpec]>> {
        None
    }

    /// Appends its mutations. `timestamp_micros` is the batch's or the request's, for statements that say none.
    pub fn mutations(
        &self,
        _execution: &Execution<'_>,
        _timestamp_micros: i64,
        _out: &mut Vec<Mutation>,
    ) -> Result<(), Error> {
        Err(not_built())
    }

    /// Carries it out alone. Conditional and counter changes read first, under the lock of their partitions.
    pub fn execute(&self, _execution: &Execution<'_>) -> Result<Executed, Error> {
        Err(not_built())
    }
}

/// A member of a batch with its own values.
pub(crate) struct BatchMember<'a> {
    pub plan: &'a ModifyPlan,
    pub execution: Execution<'a>,
}

/// Carries out a batch of which some member is conditional: all conditions hold, or nothing is written. The caller has
/// checked the rules that need no values (no counters, no timestamps).
pub(crate) fn execute_conditional_batch(
    _members: &[BatchMember<'_>],
    _timestamp_micros: i64,
) -> Result<Executed, Error> {
    Err(not_built())
}

/// Carries out a batch of counter changes.
pub(crate) fn execute_counter_batch(
    _members: &[BatchMember<'_>],
    _timestamp_micros: i64,
) -> Result<Executed, Error> {
    Err(not_built())
}

fn not_built() -> Error {
    Error::ServerError("INSERT, UPDATE and DELETE are not built yet".into())
}
