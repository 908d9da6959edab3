//! CREATE, ALTER and DROP TYPE. An altered type is replaced in every column, function and type that uses it.

use std::collections::BTreeSet;
use std::sync::Arc;

use ilion_types::{CqlType, UserType};

use super::alter_table::full_name;
use super::tables::absent;
use super::{DropObject, TypeAlteration};
use crate::error::invalid;
use crate::{AggregateSchema, Error, FunctionSchema, Keyspace, Schema, TableSchema};

impl Schema {
    pub(super) fn create_type(
        &self,
        keyspace: &str,
        name: &str,
        fields: &[(String, CqlType)],
        if_not_exists: bool,
    ) -> Result<Option<Schema>, Error> {
        let owner = self.existing(keyspace)?;
        if owner.types.contains_key(name) {
            return absent(if_not_exists, || {
                format!("A user type with name '{name}' already exists")
            });
        }
        let definition = Arc::new(UserType {
            keyspace: keyspace.to_owned(),
            name: name.to_owned(),
            fields: fields.to_vec(),
        });
        // The limits are checked first, since later checks walk the type, which takes time in proportion to its size.
        let new = CqlType::Udt {
            definition: definition.clone(),
            frozen: true,
        };
        new.check_limits()
            .map_err(|refused| Error::Invalid(refused.to_string()))?;
        let mut seen = BTreeSet::new();
        for (field, ty) in fields {
            if !seen.insert(field) {
                return invalid(format!("Duplicate field name '{field}' in type '{name}'"));
            }
            check_field_type(ty)?;
        }
        Ok(Some(self.with_changed(owner, |owner| {
            owner.types.insert(name.to_owned(), definition);
        })))
    }

    pub(super) fn alter_type(
        &self,
        keyspace: &str,
        name: &str,
        if_exists: bool,
        alteration: &TypeAlteration,
    ) -> Result<Option<Schema>, Error> {
        let found = self
            .keyspace(keyspace)
            .and_then(|owner| Some((owner, owner.types.get(name)?)));
        let Some((owner, definition)) = found else {
            return absent(if_exists, || format!("Type {keyspace}.{name} doesn't exist"));
        };
        let altered = match alteration {
            TypeAlteration::AddField {
                name,
                ty,
                if_not_exists,
            } => {
                if definition.field(name).is_some() && *if_not_exists {
                    return Ok(None);
                }
                add_field(owner, definition, name, ty)?
            }
            TypeAlteration::RenameFields { renames, if_exists } => {
                rename_fields(owner, definition, renames, *if_exists)?
            }
            TypeAlteration::AlterFieldType => {
                return invalid("Altering field types is no longer supported");
            }
        };
        let altered = Arc::new(altered);
        owner.check_limits_with(&altered)?;
        Ok(Some(
            self.with_changed(owner, |owner| owner.replace_type(&altered)),
        ))
    }

    pub(super) fn drop_type(&self, drop: &DropObject) -> Result<Option<Schema>, Error> {
        let found = self
            .keyspace(&drop.keyspace)
            .filter(|keyspace| keyspace.types.contains_key(&drop.name));
        let Some(keyspace) = found else {
            return absent(drop.if_exists, || {
                format!("Type '{}.{}' doesn't exist", drop.keyspace, drop.name)
            });
        };
        for (what, users) in keyspace.users_of_type(&drop.name) {
            if !users.is_empty() {
                return invalid(format!(
                    "Cannot drop user type '{}.{}' as it is still used by {what} {}",
                    drop.keyspace,
                    drop.name,
                    users.join(", ")
                ));
            }
        }
        Ok(Some(self.with_changed(keyspace, |keyspace| {
            keyspace.types.remove(&drop.name);
        })))
    }
}

fn check_field_type(ty: &CqlType) -> Result<(), Error> {
    if *ty == CqlType::Counter {
        return invalid("A user type cannot contain counters");
    }
    if matches!(ty, CqlType::Udt { frozen: false, .. }) {
        return invalid("A user type cannot contain non-frozen UDTs");
    }
    ty.check_nesting()
        .map_err(|refused| Error::Invalid(refused.to_string()))
}

/// Keyspace and name, each quoted if necessary.
fn full_type_name(definition: &UserType) -> String {
    let quote = ilion_types::quote_name;
    format!("{}.{}", quote(&definition.keyspace), quote(&definition.name))
}

fn add_field(owner: &Keyspace, definition: &UserType, name: &str, ty: &CqlType) -> Result<UserType, Error> {
    let type_name = full_type_name(definition);
    if definition.field(name).is_some() {
        return invalid(format!(
            "Cannot add field {name} to type {type_name}: a field with name {name} already exists"
        ));
    }
    let printed = match ty {
        CqlType::Udt { definition, .. } => format!("frozen<{}>", full_type_name(definition)),
        ty => ty.to_string(),
    };
    let refused = format!("Cannot add new field {name} of type {printed} to user type {type_name} as");
    if ty.references_udt(&definition.keyspace, &definition.name) {
        return invalid(format!("{refused} it would create a circular reference"));
    }
    check_field_type(ty)?;
    let tables: Vec<String> = owner
        .tables
        .values()
        .filter(|table| {
            table
                .partition_key()
                .any(|column| column.ty.references_udt(&definition.keyspace, &definition.name))
        })
        .map(|table| full_name(table))
        .collect();
    if !tables.is_empty() {
        return invalid(format!(
            "{refused} the type is being used in partition key by the following tables: {}",
            tables.join(", ")
        ));
    }
    let is_live = |ty: &CqlType| match ty {
        CqlType::Udt {
            definition: used,
            frozen,
        } => !frozen && used.name == definition.name,
        _ => false,
    };
    let is_live_in = |table: &TableSchema| table.select_order().iter().any(|column| is_live(&column.ty));
    if ty.is_multi_cell() && owner.tables.values().any(|table| is_live_in(table)) {
        return invalid("Non-frozen UDTs with nested non-frozen collections are not supported");
    }
    let mut altered = definition.clone();
    altered.fields.push((name.to_owned(), ty.clone()));
    Ok(altered)
}

fn rename_fields(
    owner: &Keyspace,
    definition: &UserType,
    renames: &[(String, String)],
    if_exists: bool,
) -> Result<UserType, Error> {
    let type_name = full_type_name(definition);
    let dependent: Vec<String> = owner
        .aggregates
        .iter()
        .filter(|aggregate| aggregate.initcond.is_some())
        .filter(|aggregate| {
            aggregate
                .state_type
                .references_udt(&definition.keyspace, &definition.name)
        })
        .map(|aggregate| format!("{}.{}", owner.name, aggregate.name))
        .collect();
    if !dependent.is_empty() {
        return invalid(format!(
            "Cannot alter user type {type_name} as it is still used in INITCOND by aggregates {}",
            dependent.join(", ")
        ));
    }
    let mut altered = definition.clone();
    for (from, to) in renames {
        match definition.field(from) {
            Some((index, _)) => altered.fields[index].0.clone_from(to),
            None if if_exists => {}
            None => return invalid(format!("Unkown field {from} in user type {type_name}")),
        }
    }
    let mut seen = BTreeSet::new();
    for (name, _) in &altered.fields {
        if !seen.insert(name) {
            return invalid(format!("Duplicate field name {name} in type {}", owner.name));
        }
    }
    Ok(altered)
}

impl Keyspace {
    /// Names of the objects that use a type, by kind, in Cassandra's order.
    fn users_of_type(&self, name: &str) -> [(&'static str, Vec<String>); 3] {
        let uses = |ty: &CqlType| ty.references_udt(&self.name, name);
        let functions = self
            .functions
            .iter()
            .filter(|function| function.types().any(uses));
        let aggregates = self
            .aggregates
            .iter()
            .filter(|aggregate| aggregate.types().any(uses));
        let functions = functions
            .map(|function| &function.name)
            .chain(aggregates.map(|aggregate| &aggregate.name))
            .map(|function| format!("{}.{function}", self.name))
            .collect();
        let types = self
            .types
            .values()
            .filter(|other| other.name != name && other.fields.iter().any(|(_, ty)| uses(ty)))
            .map(|other| other.name.clone())
            .collect();
        let tables = self
            .tables
            .values()
            .filter(|table| table.select_order().iter().any(|column| uses(&column.ty)))
            .map(|table| table.name.clone())
            .collect();
        [
            ("functions", functions),
            ("user types", types),
            ("tables", tables),
        ]
    }

    /// Refuses the new definition if a type that uses it would become too large.
    fn check_limits_with(&self, new: &Arc<UserType>) -> Result<(), Error> {
        let fields = self.types.values().flat_map(|definition| &definition.fields);
        let columns = self.tables.values().flat_map(|table| table.select_order());
        let mut types = fields
            .map(|(_, ty)| ty)
            .chain(columns.map(|column| &column.ty))
            .chain(self.functions.iter().flat_map(|function| function.types()))
            .chain(self.aggregates.iter().flat_map(|aggregate| aggregate.types()))
            .filter(|ty| ty.references_udt(&new.keyspace, &new.name));
        types
            .try_for_each(|ty| ty.check_limits_with(new))
            .map_err(|refused| Error::Invalid(refused.to_string()))
    }

    /// Replaces the definition in all objects that use the type.
    fn replace_type(&mut self, new: &Arc<UserType>) {
        let uses = |ty: &CqlType| ty.references_udt(&new.keyspace, &new.name);
        for definition in self.types.values_mut() {
            if definition.name == new.name {
                *definition = new.clone();
            } else if definition.fields.iter().any(|(_, ty)| uses(ty)) {
                *definition = Arc::new(definition.with_udt(new));
            }
        }
        for table in self.tables.values_mut() {
            if table.select_order().iter().any(|column| column.types().any(uses)) {
                *table = retyped(table, new);
            }
        }
        for function in &mut self.functions {
            if function.types().any(uses) {
                *function = Arc::new(function.retyped(new));
            }
        }
        for aggregate in &mut self.aggregates {
            if aggregate.types().any(uses) {
                *aggregate = Arc::new(aggregate.retyped(new));
            }
        }
    }
}

fn retyped(table: &TableSchema, new: &Arc<UserType>) -> Arc<TableSchema> {
    let mut builder = table.to_builder();
    for column in table.select_order() {
        let mask = column.mask.as_ref().map(|mask| Arc::new(mask.with_udt(new)));
        builder = builder
            .retype(&column.name, column.ty.with_udt(new))
            .mask(&column.name, mask);
    }
    builder.build()
}

impl FunctionSchema {
    pub(crate) fn types(&self) -> impl Iterator<Item = &CqlType> {
        self.arguments.iter().map(|(_, ty)| ty).chain([&self.return_type])
    }

    fn retyped(&self, new: &Arc<UserType>) -> FunctionSchema {
        let mut altered = self.clone();
        for (_, ty) in &mut altered.arguments {
            *ty = ty.with_udt(new);
        }
        altered.return_type = self.return_type.with_udt(new);
        altered
    }
}

impl AggregateSchema {
    pub(crate) fn types(&self) -> impl Iterator<Item = &CqlType> {
        self.argument_types
            .iter()
            .chain([&self.state_type, &self.return_type])
    }

    fn retyped(&self, new: &Arc<UserType>) -> AggregateSchema {
        let mut altered = self.clone();
        for ty in &mut altered.argument_types {
            *ty = ty.with_udt(new);
        }
        altered.state_type = self.state_type.with_udt(new);
        altered.return_type = self.return_type.with_udt(new);
        altered
    }
}
