//! Schema statements: from the syntax tree to an [`ilion_schema::SchemaChange`], and from its effects to the client's events.
//!
//! The rules of the schema are in `ilion_schema`. Here names get their keyspaces, types are looked up, and features that Ilion
//! does not have are refused by name.

mod common;
mod function;
mod index;
mod keyspace;
mod table;
mod unsupported;
mod view;

use std::collections::HashSet;

use ilion_cql::ast::{self, AlterType, CreateType, DropObject, Statement, TypeChange};
use ilion_schema::{Diff, Schema, SchemaChange, TableOptions, Transition, TypeAlteration};

use crate::context::{Execution, PlanContext};
use crate::guardrails::{check_change, check_given, without_ignored};
use crate::type_name::{field_type, resolve_type};
use crate::{Error, Executed, Outcome};

use common::{keyspace, properties};

/// A planned schema statement.
#[derive(Debug)]
pub(crate) struct SchemaPlan {
    change: SchemaChange,
}

impl SchemaPlan {
    /// Resolves a schema statement.
    pub fn plan(statement: &Statement, context: &PlanContext<'_>) -> Result<Self, Error> {
        change_of(statement, context).map(|change| Self { change })
    }

    /// The change that the statement makes.
    pub fn change(&self) -> &SchemaChange {
        &self.change
    }

    /// Executes the statement. Before the change is made, `foresee` gets the differences that it will make.
    ///
    /// The engine applies the change again, under its own lock. `foresee` must run before that: it removes prepared statements from a
    /// table, and this write may wait for memory. Under the lock, other schema changes and finished builds of indexes would wait with it.
    pub fn execute(
        &self,
        execution: &Execution<'_>,
        foresee: impl FnOnce(Vec<Diff>),
    ) -> Result<Executed, Error> {
        check_given(&self.change, execution)?;
        let change = without_ignored(&self.change, execution);
        let change = keyspace::of_data_center(change, execution)?;
        let change = table::with_default_compaction(change, execution);
        check_change(&change, execution)?;
        // If the change cannot be applied here, the engine refuses it, or drops an object that cannot be decoded.
        if let Ok(applied) = execution.schema.apply(&change, execution.store.now_micros()) {
            index::check(&applied, execution)?;
            foresee(applied.diffs);
        }
        let alter = || {
            let altered = execution.store.alter_schema(&change);
            altered.map_err(|refused| refused.of_statement())
        };
        let applied = match execution.views {
            Some(views) => views.change_schema(&change, &alter)?,
            None => alter()?,
        };
        if let Some(applied) = &applied {
            warn_of_replication(&self.change, &applied.schema, execution);
            warn_of_options(&applied.diffs, execution);
        }
        let event = applied.and_then(|applied| applied.event(&self.change));
        Ok(Executed::of(Outcome::SchemaChange(event.into_iter().collect())))
    }
}

/// Compat: warnings of `SimpleStrategy` and `NetworkTopologyStrategy.maybeWarnOnOptions`.
fn warn_of_replication(change: &SchemaChange, schema: &Schema, execution: &Execution<'_>) {
    warn_of_each_factor(change, schema, execution);
    let SchemaChange::AlterKeyspace { name, .. } = change else {
        return;
    };
    let copies = |schema: &Schema| -> u64 {
        let options = schema
            .keyspace(name)
            .map(|keyspace| &keyspace.replication.options);
        let factors = options.into_iter().flatten();
        factors.filter_map(|(_, factor)| factor.parse::<u64>().ok()).sum()
    };
    if copies(execution.schema) < copies(schema) {
        execution.warn(
            "When increasing replication factor you need to run a full (-full) repair to distribute the data.".to_owned(),
        );
    }
}

fn warn_of_each_factor(change: &SchemaChange, schema: &Schema, execution: &Execution<'_>) {
    let (SchemaChange::CreateKeyspace { name, .. } | SchemaChange::AlterKeyspace { name, .. }) = change
    else {
        return;
    };
    let Some(keyspace) = schema.keyspace(name) else {
        return;
    };
    let nodes = nodes_of(execution);
    let factors = keyspace.replication.options.iter();
    for (option, factor) in factors.filter(|(option, _)| *option != "class") {
        if factor.parse::<usize>().is_ok_and(|factor| factor > nodes) {
            let place = match option.as_str() {
                "replication_factor" => String::new(),
                datacenter => format!(" for datacenter {datacenter}"),
            };
            execution.warn(format!(
                "Your replication factor {factor} for keyspace {name} is higher than the number of nodes {nodes}{place}"
            ));
        }
    }
}

/// Number of nodes with a token, at least 1. It also stands for the number in each data center, so some keyspaces get no warning that
/// Cassandra gives.
fn nodes_of(execution: &Execution<'_>) -> usize {
    let ranges = execution.store.cluster(None).ranges;
    let owners: HashSet<&String> = ranges.iter().flat_map(|(_, owners)| owners).collect();
    owners.len().max(1)
}

/// Warns of options that a table keeps, but that have no effect in Ilion yet.
fn warn_of_options(diffs: &[Diff], execution: &Execution<'_>) {
    for diff in diffs {
        let (old, new) = match diff {
            Diff::Table(Transition::Created(new)) => (TableOptions::default(), &new.options),
            Diff::Table(Transition::Updated { old, new }) => (old.options.clone(), &new.options),
            _ => continue,
        };
        let overlapping = |options: &TableOptions| {
            let kept = options.compaction.get("provide_overlapping_tombstones");
            kept.is_some_and(|kept| !kept.eq_ignore_ascii_case("none"))
        };
        if overlapping(new) && !overlapping(&old) {
            execution.warn(
                "provide_overlapping_tombstones is kept in the schema, but compactions do not look at other SSTables so far"
                    .to_owned(),
            );
        }
        if new.cdc && !old.cdc && !execution.query_options.has_capture {
            execution.warn(
                "cdc is kept in the schema, but cdc_enabled is false: no changes are captured".to_owned(),
            );
        }
    }
}

fn change_of(statement: &Statement, context: &PlanContext<'_>) -> Result<SchemaChange, Error> {
    Ok(match statement {
        Statement::CreateKeyspace(create) => SchemaChange::CreateKeyspace {
            name: create.keyspace.clone(),
            properties: properties(&create.properties),
            if_not_exists: create.if_not_exists,
        },
        Statement::AlterKeyspace(alter) => SchemaChange::AlterKeyspace {
            name: alter.keyspace.clone(),
            properties: properties(&alter.properties),
            if_exists: alter.if_exists,
        },
        Statement::DropKeyspace(drop) => SchemaChange::DropKeyspace {
            name: drop.keyspace.clone(),
            if_exists: drop.if_exists,
        },
        Statement::CreateTable(create) => table::create(create, context)?,
        Statement::CreateTableLike(copy) => table::copy(copy, context)?,
        Statement::AlterTable(alter) => table::alter(alter, context)?,
        Statement::DropTable(drop) => SchemaChange::DropTable(drop_object(drop, context)?),
        Statement::CreateType(create) => create_type(create, context)?,
        Statement::AlterType(alter) => alter_type(alter, context)?,
        Statement::DropType(drop) => SchemaChange::DropType(drop_object(drop, context)?),
        Statement::CreateIndex(create) => index::create(create, context)?,
        Statement::DropIndex(drop) => SchemaChange::DropIndex(drop_object(drop, context)?),
        Statement::CreateView(create) => view::create(create, context)?,
        Statement::DropView(drop) => SchemaChange::DropView(drop_object(drop, context)?),
        Statement::AlterView(alter) => SchemaChange::AlterView {
            keyspace: keyspace(&alter.view, context)?,
            view: alter.view.name.clone(),
            if_exists: alter.if_exists,
            properties: properties(&alter.properties),
        },
        Statement::CreateFunction(create) => function::create(create, context)?,
        Statement::CreateAggregate(create) => function::create_aggregate(create, context)?,
        Statement::DropFunction(drop) => SchemaChange::DropFunction(drop_function(drop, context)?),
        Statement::DropAggregate(drop) => SchemaChange::DropAggregate(drop_function(drop, context)?),
        Statement::DropTrigger(drop) => SchemaChange::DropTrigger {
            keyspace: keyspace(&drop.table, context)?,
            table: drop.table.name.clone(),
            name: drop.name.clone(),
            if_exists: drop.if_exists,
        },
        other => return Err(unsupported::refusal(other)),
    })
}

fn drop_object(drop: &DropObject, context: &PlanContext<'_>) -> Result<ilion_schema::DropObject, Error> {
    Ok(ilion_schema::DropObject {
        keyspace: keyspace(&drop.name, context)?,
        name: drop.name.name.clone(),
        if_exists: drop.if_exists,
    })
}

fn drop_function(
    drop: &ast::DropFunction,
    context: &PlanContext<'_>,
) -> Result<ilion_schema::DropFunction, Error> {
    let keyspace = keyspace(&drop.name, context)?;
    let resolve = |types: &Vec<ast::CqlTypeName>| {
        let types = types.iter();
        types
            .map(|ty| resolve_type(ty, Some(&keyspace), context.schema))
            .collect()
    };
    Ok(ilion_schema::DropFunction {
        argument_types: drop.argument_types.as_ref().map(resolve).transpose()?,
        name: drop.name.name.clone(),
        if_exists: drop.if_exists,
        keyspace,
    })
}

fn create_type(create: &CreateType, context: &PlanContext<'_>) -> Result<SchemaChange, Error> {
    let keyspace = keyspace(&create.name, context)?;
    let is_there = context
        .schema
        .keyspace(&keyspace)
        .is_some_and(|owner| owner.types.contains_key(&create.name.name));
    let fields = create
        .fields
        .iter()
        // Compat: whether the type exists is checked before its fields.
        .filter(|_| !is_there)
        .map(|(name, ty)| Ok((name.clone(), field_type(ty, Some(&keyspace), context.schema)?)))
        .collect::<Result<_, Error>>()?;
    Ok(SchemaChange::CreateType {
        name: create.name.name.clone(),
        fields,
        if_not_exists: create.if_not_exists,
        keyspace,
    })
}

fn alter_type(alter: &AlterType, context: &PlanContext<'_>) -> Result<SchemaChange, Error> {
    let keyspace = keyspace(&alter.name, context)?;
    let alteration = match &alter.change {
        TypeChange::AddField {
            if_not_exists,
            field,
            type_name,
        } => TypeAlteration::AddField {
            name: field.clone(),
            ty: field_type(type_name, Some(&keyspace), context.schema)?,
            if_not_exists: *if_not_exists,
        },
        TypeChange::RenameFields { if_exists, renames } => TypeAlteration::RenameFields {
            renames: renames.clone(),
            if_exists: *if_exists,
        },
        TypeChange::AlterField { .. } => TypeAlteration::AlterFieldType,
    };
    Ok(SchemaChange::AlterType {
        name: alter.name.name.clone(),
        if_exists: alter.if_exists,
        alteration,
        keyspace,
    })
}
