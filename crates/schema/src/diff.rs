//! The differences between two schemas: what the engine creates and drops, and what the server reports to clients.
//!
//! Pure and general: it compares values and does not know which statement made them. Parts that both schemas share are skipped by
//! comparing pointers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ilion_types::{CqlType, UserType};

use crate::{
    AggregateSchema, FunctionSchema, IndexSchema, Keyspace, Schema, TableSchema, TriggerSchema, ViewSchema,
};

/// One object before and after.
#[derive(Clone, Debug, PartialEq)]
pub enum Transition<T> {
    /// The object was created.
    Created(Arc<T>),
    /// The object changed.
    Updated {
        /// The object before the change.
        old: Arc<T>,
        /// The object after the change.
        new: Arc<T>,
    },
    /// The object was dropped.
    Dropped(Arc<T>),
}

impl<T> Transition<T> {
    /// The object after the change; before it, if it was dropped.
    pub fn object(&self) -> &Arc<T> {
        match self {
            Self::Created(object) | Self::Updated { new: object, .. } | Self::Dropped(object) => object,
        }
    }

    pub fn kind(&self) -> ChangeKind {
        match self {
            Self::Created(_) => ChangeKind::Created,
            Self::Updated { .. } => ChangeKind::Updated,
            Self::Dropped(_) => ChangeKind::Dropped,
        }
    }
}

/// The kind of a change (the protocol's SCHEMA_CHANGE).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// `CREATED`
    Created,
    /// `UPDATED`
    Updated,
    /// `DROPPED`
    Dropped,
}

/// One difference. A dropped or created keyspace also has a difference for each object in it.
#[derive(Clone, Debug, PartialEq)]
pub enum Diff {
    /// The options of a keyspace; the objects in it have their own differences.
    Keyspace(Transition<Keyspace>),
    /// A table, or the table of a view.
    Table(Transition<TableSchema>),
    /// A view's definition.
    View(String, Transition<ViewSchema>),
    /// A user type.
    Type(Transition<UserType>),
    /// A function of this keyspace.
    Function(String, Transition<FunctionSchema>),
    /// An aggregate of this keyspace.
    Aggregate(String, Transition<AggregateSchema>),
    /// An index of this keyspace.
    Index(String, Transition<IndexSchema>),
    /// A trigger of this keyspace.
    Trigger(String, Transition<TriggerSchema>),
}

impl Diff {
    pub fn kind(&self) -> ChangeKind {
        match self {
            Self::Keyspace(it) => it.kind(),
            Self::Table(it) => it.kind(),
            Self::View(_, it) => it.kind(),
            Self::Type(it) => it.kind(),
            Self::Function(_, it) => it.kind(),
            Self::Aggregate(_, it) => it.kind(),
            Self::Index(_, it) => it.kind(),
            Self::Trigger(_, it) => it.kind(),
        }
    }

    /// The keyspace of the object, or the keyspace itself.
    pub(crate) fn keyspace(&self) -> &str {
        match self {
            Self::Keyspace(it) => &it.object().name,
            Self::Table(it) => &it.object().keyspace,
            Self::Type(it) => &it.object().keyspace,
            Self::View(keyspace, _)
            | Self::Function(keyspace, _)
            | Self::Aggregate(keyspace, _)
            | Self::Index(keyspace, _)
            | Self::Trigger(keyspace, _) => keyspace,
        }
    }

    pub(crate) fn is_drop(&self) -> bool {
        self.kind() == ChangeKind::Dropped
    }
}

/// All differences. In a keyspace, drops come first: each object before those that it uses (indexes before their table, tables
/// before their types, all before the keyspace). Creations come in the opposite order.
pub fn diff(old: &Schema, new: &Schema) -> Vec<Diff> {
    let mut diffs = Vec::new();
    let names: BTreeSet<&String> = old.keyspaces.keys().chain(new.keyspaces.keys()).collect();
    for name in names {
        match (old.keyspaces.get(name), new.keyspaces.get(name)) {
            (Some(old), Some(new)) if Arc::ptr_eq(old, new) => {}
            (Some(old), Some(new)) => {
                if old.replication != new.replication || old.durable_writes != new.durable_writes {
                    diffs.push(Diff::Keyspace(Transition::Updated {
                        old: old.clone(),
                        new: new.clone(),
                    }));
                }
                contents(old, new, &mut diffs);
            }
            (None, Some(new)) => {
                diffs.push(Diff::Keyspace(Transition::Created(new.clone())));
                contents(&emptied(new), new, &mut diffs);
            }
            (Some(old), None) => {
                contents(old, &emptied(old), &mut diffs);
                diffs.push(Diff::Keyspace(Transition::Dropped(old.clone())));
            }
            (None, None) => {}
        }
    }
    diffs
}

fn emptied(keyspace: &Keyspace) -> Keyspace {
    Keyspace::new(
        keyspace.name.clone(),
        keyspace.replication.clone(),
        keyspace.durable_writes,
    )
}

fn contents(old: &Keyspace, new: &Keyspace, diffs: &mut Vec<Diff>) {
    let mut all = Vec::new();
    unordered_contents(old, new, &mut all);
    let (gone, rest): (Vec<Diff>, Vec<Diff>) = all.into_iter().partition(Diff::is_drop);
    diffs.extend(gone.into_iter().rev());
    diffs.extend(rest);
}

fn unordered_contents(old: &Keyspace, new: &Keyspace, diffs: &mut Vec<Diff>) {
    let name = || new.name.clone();
    let by_text = |types: Vec<&CqlType>| types.iter().map(ToString::to_string).collect::<Vec<_>>();
    let functions = |keyspace: &Keyspace| {
        keyed(&keyspace.functions, |function: &FunctionSchema| {
            (
                function.name.clone(),
                by_text(function.argument_types().collect()),
            )
        })
    };
    let aggregates = |keyspace: &Keyspace| {
        keyed(&keyspace.aggregates, |aggregate: &AggregateSchema| {
            (
                aggregate.name.clone(),
                by_text(aggregate.argument_types.iter().collect()),
            )
        })
    };
    let triggers = |keyspace: &Keyspace| {
        keyed(&keyspace.triggers, |trigger: &TriggerSchema| {
            (trigger.table.clone(), trigger.name.clone())
        })
    };
    diffs.extend(transitions(&old.types, &new.types).map(Diff::Type));
    diffs.extend(transitions(&old.tables, &new.tables).map(Diff::Table));
    diffs.extend(transitions(&old.views, &new.views).map(|view| Diff::View(name(), view)));
    diffs.extend(transitions(&old.indexes, &new.indexes).map(|index| Diff::Index(name(), index)));
    diffs.extend(
        transitions(&functions(old), &functions(new)).map(|function| Diff::Function(name(), function)),
    );
    diffs.extend(
        transitions(&aggregates(old), &aggregates(new)).map(|aggregate| Diff::Aggregate(name(), aggregate)),
    );
    diffs.extend(transitions(&triggers(old), &triggers(new)).map(|trigger| Diff::Trigger(name(), trigger)));
}

fn keyed<K: Ord, T>(objects: &[Arc<T>], key: impl Fn(&T) -> K) -> BTreeMap<K, Arc<T>> {
    objects
        .iter()
        .map(|object| (key(object), object.clone()))
        .collect()
}

/// Drops, then updates and creations, each in the order of names. A table with the same name but another id is a different
/// table.
fn transitions<K: Ord, T: PartialEq + Identity>(
    old: &BTreeMap<K, Arc<T>>,
    new: &BTreeMap<K, Arc<T>>,
) -> impl Iterator<Item = Transition<T>> {
    let dropped = old
        .iter()
        .filter(|(key, before)| new.get(key).is_none_or(|after| !before.is_same(after)))
        .map(|(_, before)| Transition::Dropped(before.clone()));
    let changed = new.iter().filter_map(
        |(key, after)| match old.get(key).filter(|old| old.is_same(after)) {
            None => Some(Transition::Created(after.clone())),
            Some(before) if Arc::ptr_eq(before, after) || before == after => None,
            Some(before) => Some(Transition::Updated {
                old: before.clone(),
                new: after.clone(),
            }),
        },
    );
    dropped.chain(changed).collect::<Vec<_>>().into_iter()
}

/// Decides whether two objects of one name are the same object, possibly altered.
trait Identity {
    fn is_same(&self, _other: &Self) -> bool {
        true
    }
}

impl Identity for TableSchema {
    fn is_same(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Identity for ViewSchema {}
impl Identity for UserType {}
impl Identity for FunctionSchema {}
impl Identity for AggregateSchema {}
impl Identity for IndexSchema {}
impl Identity for TriggerSchema {}
