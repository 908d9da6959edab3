//! A text that was parsed and planned, with the facts that planning found.

use std::sync::Arc;

use ilion_auth::Resource;
use ilion_cql::ast::{Batch, Modification, QualifiedName, Statement};
use ilion_env::trace;

use crate::access::{Needs, needs_of};
use crate::context::PlanContext;
use crate::plan::Plan;
use crate::{ColumnSpec, Error, QueryOptions, Shape, Store};

/// Compat: `FBUtilities.MAX_UNSIGNED_SHORT`, since the protocol counts values in 16 bits.
const MARKERS_MAX: usize = 65_535;

/// A text, planned against one schema.
#[derive(Debug)]
pub(crate) struct Planned {
    pub plan: Plan,
    /// The source text, from which the statement is planned again after a schema change.
    pub text: String,
    /// The shape that the text shares with texts that differ only in values.
    pub shape: Arc<Shape>,
    /// The keyspace of unqualified names in the text.
    pub keyspace: Option<String>,
    /// The schema's epoch when the text was planned.
    pub schema_epoch: u64,
    /// The specs of the bind markers.
    pub variables: Vec<ColumnSpec>,
    /// The markers that form the partition key, in key order; empty if they do not cover all of it.
    pub partition_key_indexes: Vec<u16>,
    /// The result's columns, if they are always the same.
    pub result_columns: Option<Arc<[ColumnSpec]>>,
    /// True if every table name has its keyspace, so that the session's keyspace does not matter.
    pub is_qualified: bool,
    /// User-defined functions and aggregates that the statement may call, by keyspace and name.
    pub functions: Vec<(String, String)>,
    /// The permissions that a client needs to execute the statement.
    pub needs: Needs,
    /// The tables whose values the statement masks for roles without UNMASK; empty if clients do not log in.
    pub masked: Vec<Resource>,
    /// The error of a guardrail, for clients that are not superusers.
    pub forbidden: Option<Error>,
}

impl Planned {
    /// Parses and plans a text.
    pub fn of(
        text: &str,
        keyspace: Option<&str>,
        store: &dyn Store,
        options: &QueryOptions,
    ) -> Result<Self, Error> {
        let parsed = ilion_cql::parse(text)?;
        if parsed.markers.len() > MARKERS_MAX {
            return Err(Error::invalid(format!(
                "Too many markers(?). {} markers exceed the allowed maximum of {MARKERS_MAX}",
                parsed.markers.len()
            )));
        }
        trace::note(|| "Preparing statement");
        let schema = store.schema();
        let context = PlanContext::new(store, &schema, options, keyspace, &parsed.markers);
        let plan = Plan::of(&parsed.statement, &context)?;
        let (needs, masked) = match options.access.requires_login() {
            true => (needs_of(&plan, context.executed(), &schema), masked_tables(&plan)),
            false => (Needs::none(), Vec::new()),
        };
        let receivers = context.receivers()?;
        Ok(Self {
            result_columns: plan.result_columns(),
            partition_key_indexes: plan.partition_key_indexes(&receivers),
            variables: context.variables(receivers),
            shape: Arc::new(shape_of(text, &plan, keyspace)),
            plan,
            text: text.to_owned(),
            keyspace: keyspace.map(str::to_owned),
            schema_epoch: schema.epoch,
            is_qualified: is_qualified(&parsed.statement),
            functions: context.functions(),
            needs,
            masked,
            forbidden: context.forbidden(),
        })
    }

    /// True if the same text is likely to come again: a SELECT, or a write with bind markers.
    pub fn is_worth_keeping(&self) -> bool {
        match self.plan {
            Plan::Select(_) => true,
            Plan::Modify(_) | Plan::Batch(_) => !self.variables.is_empty(),
            _ => false,
        }
    }
}

fn masked_tables(plan: &Plan) -> Vec<Resource> {
    let masked = plan.masked_tables();
    masked
        .map(|table| Resource::table(&table.keyspace, &table.name))
        .collect()
}

fn shape_of(text: &str, plan: &Plan, keyspace: Option<&str>) -> Shape {
    match plan.only_table() {
        None => Shape::of(text, keyspace),
        Some(table) => {
            let shape = Shape::of(text, Some(&table.keyspace));
            match plan {
                Plan::Select(select) if select.is_by_key() => shape.on(&table.name, true),
                Plan::Select(_) => shape.on(&table.name, true).scanning(),
                _ => shape.on(&table.name, false),
            }
        }
    }
}

/// Compat: `QualifiedStatement.isFullyQualified`; false for statements without a table.
fn is_qualified(statement: &Statement) -> bool {
    match statement {
        Statement::Select(select) => has_keyspace(&select.table),
        Statement::Explain(explain) => has_keyspace(&explain.select.table),
        Statement::Insert(insert) => has_keyspace(&insert.table),
        Statement::Update(update) => has_keyspace(&update.table),
        Statement::Delete(delete) => has_keyspace(&delete.table),
        Statement::Batch(Batch { modifications, .. }) => {
            modifications.iter().all(|member| has_keyspace(table_of(member)))
        }
        Statement::Truncate(table) => has_keyspace(table),
        _ => false,
    }
}

fn has_keyspace(name: &QualifiedName) -> bool {
    name.keyspace.is_some()
}

fn table_of(modification: &Modification) -> &QualifiedName {
    match modification {
        Modification::Insert(insert) => &insert.table,
        Modification::Update(update) => &update.table,
        Modification::Delete(delete) => &delete.table,
    }
}
