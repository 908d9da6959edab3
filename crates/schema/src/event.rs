//! The event of a change for clients: one per statement, in the form of the protocol's SCHEMA_CHANGE.
//!
//! Compat: `AlterSchemaStatement.schemaChangeEvent` of Cassandra 5.0: a change of an index or trigger is a change of its table,
//! and a view is a table.

use crate::{Applied, ChangeKind, Diff, FunctionSchema, SchemaChange, Transition};

/// An event of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaEvent {
    pub kind: ChangeKind,
    /// The keyspace.
    pub keyspace: String,
    /// The changed object.
    pub target: EventTarget,
}

/// The object that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventTarget {
    /// The keyspace itself.
    Keyspace,
    /// A table or view.
    Table(String),
    /// A user type.
    Type(String),
    /// A function: its name and argument types.
    Function(String, Vec<String>),
    /// An aggregate: its name and argument types.
    Aggregate(String, Vec<String>),
}

impl Applied {
    /// The event of the statement; `None` if nothing changed.
    pub fn event(&self, change: &SchemaChange) -> Option<SchemaEvent> {
        if self.diffs.is_empty() {
            return None;
        }
        let event = |kind, keyspace: &str, target| {
            Some(SchemaEvent {
                kind,
                keyspace: keyspace.to_owned(),
                target,
            })
        };
        let table =
            |kind, keyspace: &str, name: &str| event(kind, keyspace, EventTarget::Table(name.to_owned()));
        let ty = |kind, keyspace: &str, name: &str| event(kind, keyspace, EventTarget::Type(name.to_owned()));
        use ChangeKind::{Created, Dropped, Updated};
        match change {
            SchemaChange::CreateKeyspace { name, .. } => event(Created, name, EventTarget::Keyspace),
            SchemaChange::AlterKeyspace { name, .. } => event(Updated, name, EventTarget::Keyspace),
            SchemaChange::DropKeyspace { name, .. } => event(Dropped, name, EventTarget::Keyspace),
            SchemaChange::CreateTable(create) => table(Created, &create.keyspace, &create.name),
            SchemaChange::CopyTable(copy) => table(Created, &copy.keyspace, &copy.name),
            SchemaChange::AlterTable {
                keyspace,
                table: name,
                ..
            }
            | SchemaChange::AlterView {
                keyspace, view: name, ..
            }
            | SchemaChange::CreateTrigger {
                keyspace,
                table: name,
                ..
            }
            | SchemaChange::DropTrigger {
                keyspace,
                table: name,
                ..
            } => table(Updated, keyspace, name),
            SchemaChange::DropTable(drop) | SchemaChange::DropView(drop) => {
                table(Dropped, &drop.keyspace, &drop.name)
            }
            SchemaChange::CreateType { keyspace, name, .. } => ty(Created, keyspace, name),
            SchemaChange::AlterType { keyspace, name, .. } => ty(Updated, keyspace, name),
            SchemaChange::DropType(drop) => ty(Dropped, &drop.keyspace, &drop.name),
            SchemaChange::CreateIndex(create) => table(Updated, &create.keyspace, &create.table),
            SchemaChange::CreateView(create) => table(Created, &create.keyspace, &create.name),
            SchemaChange::DropIndex(_)
            | SchemaChange::CreateFunction(_)
            | SchemaChange::DropFunction(_)
            | SchemaChange::CreateAggregate(_)
            | SchemaChange::DropAggregate(_) => self.diffs.iter().find_map(event_of_diff),
        }
    }
}

fn event_of_diff(diff: &Diff) -> Option<SchemaEvent> {
    let (kind, keyspace, target) = match diff {
        Diff::Index(keyspace, index) => (
            ChangeKind::Updated,
            keyspace,
            EventTarget::Table(index.object().table.clone()),
        ),
        Diff::Function(keyspace, function) => (function.kind(), keyspace, function_target(function)),
        Diff::Aggregate(keyspace, aggregate) => {
            let object = aggregate.object();
            let types = object.argument_types.iter().map(ToString::to_string).collect();
            (
                aggregate.kind(),
                keyspace,
                EventTarget::Aggregate(object.name.clone(), types),
            )
        }
        _ => return None,
    };
    Some(SchemaEvent {
        kind,
        keyspace: keyspace.clone(),
        target,
    })
}

fn function_target(function: &Transition<FunctionSchema>) -> EventTarget {
    let object = function.object();
    EventTarget::Function(
        object.name.clone(),
        object.argument_types().map(ToString::to_string).collect(),
    )
}
