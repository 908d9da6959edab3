//! The last check of a change: the next start can read its result.
//!
//! A change is one record of the log, and the next start reads it from rows of `system_schema`. So before it is logged, the
//! objects that it creates or alters are encoded as rows and decoded again, and must be equal. The limits of names and types,
//! which come from the formats of rows and files, are checked before that, since their messages are clearer.
//!
//! Only the differences are checked, and the user types that they use: a change costs no more in a large keyspace.

use std::sync::Arc;

use ilion_types::{CqlType, TYPE_CLASS_LEN_MAX, UserType};

use super::Applied;
use crate::error::{config, invalid};
use crate::rows::{decode_schema, encode_keyspace};
use crate::table::normalized;
use crate::{Column, Diff, Error, Keyspace, TableSchema, Transition};

/// Longest name in the schema: names are keys in `system_schema`, and a component of a clustering has a 16-bit length.
const NAME_LEN_MAX: usize = 65_535;

/// Largest size of a table's types in the header of each of its SSTables, in bytes.
const TABLE_CLASSES_LEN_MAX: usize = 16 << 20;

impl Applied {
    /// Checks that the next start can read the result of this change.
    pub(super) fn check_readable(&self) -> Result<(), Error> {
        self.diffs.iter().try_for_each(check_limits)?;
        for keyspace in self.changed_parts() {
            let rows = encode_keyspace(&keyspace);
            let read = decode_schema(rows).map_err(|error| unreadable(&error.to_string()))?;
            let read = read.keyspaces.get(&keyspace.name);
            if read.map(|read| normalized_parts(read)) != Some(normalized_parts(&keyspace)) {
                return Err(unreadable("it would come back as something else"));
            }
        }
        Ok(())
    }

    /// The keyspaces of the created and altered objects. Each contains only these objects, and those that decoding them needs.
    fn changed_parts(&self) -> Vec<Keyspace> {
        let mut parts: Vec<Keyspace> = Vec::new();
        for diff in self.diffs.iter().filter(|diff| !diff.is_drop()) {
            let Some(owner) = self.schema.keyspace(diff.keyspace()) else {
                continue;
            };
            if !parts.iter().any(|part| part.name == owner.name) {
                parts.push(Keyspace::new(
                    owner.name.clone(),
                    owner.replication.clone(),
                    owner.durable_writes,
                ));
            }
            let part = parts.iter_mut().find(|part| part.name == owner.name);
            part.into_iter().for_each(|part| add(part, owner, diff));
        }
        parts
    }
}

fn add(part: &mut Keyspace, owner: &Keyspace, diff: &Diff) {
    match diff {
        Diff::Keyspace(_) => {}
        Diff::Type(it) => add_type(part, owner, it.object()),
        Diff::Table(it) => add_table(part, owner, &it.object().name),
        Diff::View(_, it) => add_table(part, owner, &it.object().name),
        Diff::Function(_, it) => {
            let function = it.object();
            function.types().for_each(|ty| add_types_in(part, owner, ty));
            part.functions.push(function.clone());
        }
        Diff::Aggregate(_, it) => {
            let aggregate = it.object();
            aggregate.types().for_each(|ty| add_types_in(part, owner, ty));
            part.aggregates.push(aggregate.clone());
        }
        Diff::Trigger(_, it) => part.triggers.push(it.object().clone()),
        Diff::Index(_, it) => {
            let index = it.object();
            part.indexes.insert(index.name.clone(), index.clone());
        }
    }
}

fn add_table(part: &mut Keyspace, owner: &Keyspace, name: &str) {
    if let Some(table) = owner.tables.get(name) {
        let columns = table.every_column().into_iter().flat_map(Column::types);
        let dropped = table.dropped.values().map(|column| &column.ty);
        columns
            .chain(dropped)
            .for_each(|ty| add_types_in(part, owner, ty));
        part.tables.insert(name.to_owned(), table.clone());
    }
    if let Some(view) = owner.views.get(name) {
        part.views.insert(name.to_owned(), view.clone());
        // The base table is needed, too: its key decides whether the view has strict liveness.
        if !part.tables.contains_key(&view.base_table) {
            add_table(part, owner, &view.base_table);
        }
    }
}

/// Adds the user types in a type, recursively.
fn add_types_in(part: &mut Keyspace, owner: &Keyspace, ty: &CqlType) {
    match ty {
        CqlType::Udt { definition, .. } => {
            if let Some(known) = owner.types.get(&definition.name) {
                add_type(part, owner, known);
            }
        }
        ty => ty
            .inner_types()
            .for_each(|inner| add_types_in(part, owner, inner)),
    }
}

fn add_type(part: &mut Keyspace, owner: &Keyspace, definition: &Arc<UserType>) {
    if part.types.contains_key(&definition.name) {
        return;
    }
    part.types.insert(definition.name.clone(), definition.clone());
    let fields = definition.fields.iter();
    fields.for_each(|(_, ty)| add_types_in(part, owner, ty));
}

/// The keyspace with the column ids that it would get at a start.
fn normalized_parts(keyspace: &Keyspace) -> Keyspace {
    let mut keyspace = keyspace.clone();
    for table in keyspace.tables.values_mut() {
        *table = normalized(table);
    }
    keyspace.sort_functions();
    keyspace
        .triggers
        .sort_by(|a, b| (&a.table, &a.name).cmp(&(&b.table, &b.name)));
    keyspace
}

fn unreadable(why: &str) -> Error {
    Error::Invalid(format!(
        "The change cannot be stored: after a restart it could not be read back from system_schema ({why})"
    ))
}

fn check_limits(diff: &Diff) -> Result<(), Error> {
    match diff {
        Diff::Table(Transition::Created(table) | Transition::Updated { new: table, .. }) => {
            check_table(table)
        }
        Diff::Type(Transition::Created(new) | Transition::Updated { new, .. }) => {
            check_name(&new.name)?;
            new.fields.iter().try_for_each(|(name, _)| check_name(name))?;
            let new = CqlType::Udt {
                definition: new.clone(),
                frozen: true,
            };
            check_type(&new).map(drop)
        }
        Diff::Function(_, Transition::Created(new) | Transition::Updated { new, .. }) => {
            check_name(&new.name)?;
            new.types().try_for_each(|ty| check_type(ty).map(drop))
        }
        Diff::Aggregate(_, Transition::Created(new) | Transition::Updated { new, .. }) => {
            check_name(&new.name)?;
            new.types().try_for_each(|ty| check_type(ty).map(drop))
        }
        Diff::Trigger(_, Transition::Created(new) | Transition::Updated { new, .. }) => check_name(&new.name),
        _ => Ok(()),
    }
}

fn check_table(table: &Arc<TableSchema>) -> Result<(), Error> {
    let mut rest = TABLE_CLASSES_LEN_MAX;
    for column in table.every_column() {
        check_name(&column.name)?;
        let len = check_type(&column.ty)?;
        let Some(left) = rest.checked_sub(len + column.name.len()) else {
            return invalid(format!(
                "The types of all columns of {}.{} take more than {TABLE_CLASSES_LEN_MAX} bytes, with all types inside \
                 written out",
                table.keyspace, table.name
            ));
        };
        rest = left;
    }
    let mut dropped = table.dropped.values();
    dropped.try_for_each(|column| check_type(&column.ty).map(drop))
}

/// Checks that a type can be read back; returns the approximate length of its class string.
fn check_type(ty: &CqlType) -> Result<usize, Error> {
    let len = ty
        .class_len_within(TYPE_CLASS_LEN_MAX)
        .map_err(|refused| Error::Invalid(refused.to_string()))?;
    match ty.unknown_class() {
        None => Ok(len),
        Some(class) => config(format!("Unable to find abstract-type class '{class}'")),
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    if name.len() <= NAME_LEN_MAX {
        return Ok(());
    }
    invalid(format!(
        "Name must not be more than {NAME_LEN_MAX} bytes long (got {} bytes for \"{}...\")",
        name.len(),
        name.chars().take(32).collect::<String>()
    ))
}
