//! CREATE and DROP of functions and aggregates. Bodies are stored here and compiled elsewhere.

use std::sync::Arc;

use ilion_types::CqlType;

use super::tables::absent;
use super::{CreateAggregate, CreateFunction, DropFunction};
use crate::error::invalid;
use crate::{AggregateSchema, Error, FunctionSchema, Keyspace, Schema, TableKind, TableSchema};

const BOTH_MODES: &str = "Cannot use both 'OR REPLACE' and 'IF NOT EXISTS' directives";

impl Schema {
    pub(super) fn create_function(&self, create: &CreateFunction) -> Result<Option<Schema>, Error> {
        if create.if_not_exists && create.or_replace {
            return invalid(BOTH_MODES);
        }
        let keyspace = self.existing(&create.keyspace)?;
        let names: Vec<&str> = create.arguments.iter().map(|(name, _)| name.as_str()).collect();
        if (1..names.len()).any(|index| names[..index].contains(&names[index])) {
            return invalid(format!(
                "Duplicate argument names for given function {} with argument names [{}]",
                create.name,
                names.join(", ")
            ));
        }
        for (_, ty) in &create.arguments {
            check_unfrozen("Argument", ty)?;
        }
        check_unfrozen("Return type", &create.return_type)?;
        let function = FunctionSchema {
            name: create.name.clone(),
            arguments: create.arguments.clone(),
            body: create.body.clone(),
            called_on_null_input: create.called_on_null_input,
            language: create.language.clone(),
            return_type: create.return_type.clone(),
        };
        let types: Vec<CqlType> = function.argument_types().cloned().collect();
        if keyspace.find_aggregate(&function.name, &types).is_some() {
            return invalid(format!(
                "Function '{}' cannot replace an aggregate",
                function.name
            ));
        }
        if let Some(existing) = keyspace.find_function(&function.name, &types) {
            if create.if_not_exists {
                return Ok(None);
            }
            check_replacement(create, &function, existing)?;
        }
        Ok(Some(self.with_changed(keyspace, |keyspace| {
            keyspace
                .functions
                .retain(|other| !other.has_signature(&function.name, &types));
            keyspace.functions.push(Arc::new(function));
            keyspace.sort_functions();
        })))
    }

    pub(super) fn drop_function(&self, drop: &DropFunction) -> Result<Option<Schema>, Error> {
        let Some(keyspace) = self.keyspace(&drop.keyspace) else {
            return absent(drop.if_exists, || {
                format!("Function '{}' doesn't exist", drop.printed())
            });
        };
        let matching: Vec<&Arc<FunctionSchema>> = keyspace
            .functions
            .iter()
            .filter(|function| function.name == drop.name && drop.matches(function.argument_types()))
            .collect();
        let function = match matching.as_slice() {
            [] => {
                return absent(drop.if_exists, || {
                    format!("Function '{}' doesn't exist", drop.printed())
                });
            }
            [function] => *function,
            _ => return ambiguous("FUNCTION", &drop.name),
        };
        let dependent: Vec<String> = keyspace
            .aggregates
            .iter()
            .filter(|aggregate| aggregate.uses(function))
            .map(|aggregate| format!("{}.{}", keyspace.name, aggregate.name))
            .collect();
        if !dependent.is_empty() {
            return invalid(format!(
                "Function '{}' is still referenced by aggregates {}",
                drop.printed(),
                dependent.join(", ")
            ));
        }
        let masked: Vec<&str> = keyspace
            .tables
            .values()
            .filter(|table| table.kind != TableKind::View && table.is_masked_by(&keyspace.name, function))
            .map(|table| table.name.as_str())
            .collect();
        if !masked.is_empty() {
            return invalid(format!(
                "Function '{}' is still referenced by column masks in tables {}",
                drop.printed(),
                masked.join(", ")
            ));
        }
        Ok(Some(self.with_changed(keyspace, |keyspace| {
            keyspace.functions.retain(|other| other != function)
        })))
    }

    pub(super) fn create_aggregate(&self, create: &CreateAggregate) -> Result<Option<Schema>, Error> {
        if create.if_not_exists && create.or_replace {
            return invalid(BOTH_MODES);
        }
        let keyspace = self.existing(&create.keyspace)?;
        let aggregate = resolve(create, keyspace)?;
        let types = &aggregate.argument_types;
        if keyspace.find_function(&create.name, types).is_some() {
            return invalid(format!("Aggregate '{}' cannot replace a function", create.name));
        }
        if let Some(existing) = keyspace.find_aggregate(&create.name, types) {
            if create.if_not_exists {
                return Ok(None);
            }
            if !create.or_replace {
                return invalid(format!("Aggregate '{}' already exists", create.name));
            }
            if existing.return_type != aggregate.return_type {
                return invalid(format!(
                    "Cannot replace aggregate '{}', the new return type {} isn't compatible with the return \
                     type {} of existing function",
                    create.name, aggregate.return_type, existing.return_type
                ));
            }
        }
        Ok(Some(self.with_changed(keyspace, |keyspace| {
            keyspace.aggregates.retain(|other| {
                other.name != aggregate.name || other.argument_types != aggregate.argument_types
            });
            keyspace.aggregates.push(Arc::new(aggregate));
            keyspace.sort_functions();
        })))
    }

    pub(super) fn drop_aggregate(&self, drop: &DropFunction) -> Result<Option<Schema>, Error> {
        let missing = || {
            absent(drop.if_exists, || {
                format!("Aggregate '{}' doesn't exist", drop.printed())
            })
        };
        let Some(keyspace) = self.keyspace(&drop.keyspace) else {
            return missing();
        };
        let matching: Vec<&Arc<AggregateSchema>> = keyspace
            .aggregates
            .iter()
            .filter(|aggregate| aggregate.name == drop.name && drop.matches(aggregate.argument_types.iter()))
            .collect();
        let aggregate = match matching.as_slice() {
            [] => return missing(),
            [aggregate] => *aggregate,
            _ => return ambiguous("AGGREGATE", &drop.name),
        };
        Ok(Some(self.with_changed(keyspace, |keyspace| {
            keyspace.aggregates.retain(|other| other != aggregate)
        })))
    }
}

/// Compares signatures. Frozen and unfrozen types are the same here, since functions take values.
fn same_types<'a>(types: impl Iterator<Item = &'a CqlType>, wanted: &[CqlType]) -> bool {
    types.map(CqlType::freeze).eq(wanted.iter().map(CqlType::freeze))
}

fn check_unfrozen(what: &str, ty: &CqlType) -> Result<(), Error> {
    let frozen = CqlType::is_collection(ty) || matches!(ty, CqlType::Udt { .. });
    if frozen && !ty.is_multi_cell() {
        return invalid(format!(
            "{what} '{ty}' cannot be frozen; remove frozen<> modifier from '{ty}'"
        ));
    }
    ty.check_nesting()
        .map_err(|refused| Error::Invalid(refused.to_string()))
}

fn check_replacement(
    create: &CreateFunction,
    new: &FunctionSchema,
    existing: &FunctionSchema,
) -> Result<(), Error> {
    let name = &new.name;
    if !create.or_replace {
        return invalid(format!("Function '{name}' already exists"));
    }
    if new.called_on_null_input != existing.called_on_null_input {
        let directive = if new.called_on_null_input {
            "CALLED ON NULL INPUT"
        } else {
            "RETURNS NULL ON NULL INPUT"
        };
        return invalid(format!("Function '{name}' must have {directive} directive"));
    }
    if new.return_type != existing.return_type {
        return invalid(format!(
            "Cannot replace function '{name}', the new return type {} is not compatible with the return type \
             {} of existing function",
            new.return_type, existing.return_type
        ));
    }
    Ok(())
}

/// Resolves the functions of an aggregate.
fn resolve(create: &CreateAggregate, keyspace: &Keyspace) -> Result<AggregateSchema, Error> {
    let state_type = create.state_type.clone();
    let argument_types = create.argument_types.clone();
    argument_types
        .iter()
        .try_for_each(|ty| check_unfrozen("Argument", ty))?;
    check_unfrozen("State type", &state_type)?;
    let state_arguments: Vec<CqlType> = std::iter::once(&state_type)
        .chain(&argument_types)
        .cloned()
        .collect();
    let printed = |name: &str, types: &[CqlType]| {
        let types: Vec<String> = types.iter().map(ToString::to_string).collect();
        format!("{}.{name}({})", keyspace.name, types.join(", "))
    };
    let Some(state) = keyspace.find_function(&create.state_func, &state_arguments) else {
        return invalid(format!(
            "State function {} doesn't exist",
            printed(&create.state_func, &state_arguments)
        ));
    };
    if state.return_type != state_type {
        return invalid(format!(
            "State function {} return type must be the same as the first argument type - check STYPE, \
             argument and return types",
            printed(&create.state_func, &state_arguments)
        ));
    }
    let mut return_type = state_type.clone();
    if let Some(name) = &create.final_func {
        let Some(last) = keyspace.find_function(name, std::slice::from_ref(&state_type)) else {
            return invalid(format!(
                "Final function {} doesn't exist",
                printed(name, std::slice::from_ref(&state_type))
            ));
        };
        return_type = last.return_type.clone();
    }
    if !state.called_on_null_input && create.initcond.is_none() {
        return invalid(format!(
            "Cannot create aggregate '{}' without INITCOND because state function {}.{} does not accept \
             'null' arguments",
            create.name, keyspace.name, create.state_func
        ));
    }
    Ok(AggregateSchema {
        name: create.name.clone(),
        argument_types,
        state_func: create.state_func.clone(),
        state_type,
        final_func: create.final_func.clone(),
        initcond: create.initcond.clone(),
        return_type,
    })
}

fn ambiguous(kind: &str, name: &str) -> Result<Option<Schema>, Error> {
    invalid(format!(
        "'DROP {kind} {name}' matches multiple function definitions; specify the argument types by issuing a \
         statement like 'DROP {kind} {name} (type, type, ...)'. You can use cqlsh 'DESCRIBE {kind} {name}' \
         command to find all overloads"
    ))
}

impl DropFunction {
    fn matches<'a>(&self, types: impl Iterator<Item = &'a CqlType>) -> bool {
        match &self.argument_types {
            None => true,
            Some(wanted) => same_types(types, wanted),
        }
    }

    fn printed(&self) -> String {
        let Self {
            keyspace,
            name,
            argument_types,
            ..
        } = self;
        match argument_types {
            None => format!("{keyspace}.{name}"),
            Some(types) => {
                let types: Vec<String> = types.iter().map(ToString::to_string).collect();
                format!("{keyspace}.{name}({})", types.join(", "))
            }
        }
    }
}

impl FunctionSchema {
    /// The types of its arguments.
    pub fn argument_types(&self) -> impl Iterator<Item = &CqlType> {
        self.arguments.iter().map(|(_, ty)| ty)
    }

    pub(crate) fn has_signature(&self, name: &str, types: &[CqlType]) -> bool {
        self.name == name && same_types(self.argument_types(), types)
    }
}

impl TableSchema {
    /// True if a mask calls this function of a keyspace.
    fn is_masked_by(&self, keyspace: &str, function: &FunctionSchema) -> bool {
        self.every_column().into_iter().any(|column| {
            let mask = column.mask.as_ref();
            mask.is_some_and(|mask| mask.calls(keyspace, function, &column.ty))
        })
    }
}

impl AggregateSchema {
    fn uses(&self, function: &FunctionSchema) -> bool {
        let state_arguments: Vec<CqlType> = std::iter::once(&self.state_type)
            .chain(&self.argument_types)
            .cloned()
            .collect();
        let is_state = function.has_signature(&self.state_func, &state_arguments);
        let is_final = self
            .final_func
            .as_ref()
            .is_some_and(|name| function.has_signature(name, std::slice::from_ref(&self.state_type)));
        is_state || is_final
    }
}

impl Keyspace {
    /// The function of this name and these argument types, frozen or not.
    pub fn find_function(&self, name: &str, types: &[CqlType]) -> Option<&Arc<FunctionSchema>> {
        self.functions
            .iter()
            .find(|function| function.has_signature(name, types))
    }

    /// The aggregate of this name and these argument types, frozen or not.
    pub fn find_aggregate(&self, name: &str, types: &[CqlType]) -> Option<&Arc<AggregateSchema>> {
        self.aggregates
            .iter()
            .find(|aggregate| aggregate.name == name && same_types(aggregate.argument_types.iter(), types))
    }

    /// Sorts functions and aggregates, so that keyspaces with the same objects are equal values.
    pub(crate) fn sort_functions(&mut self) {
        let print = |types: Vec<&CqlType>| types.iter().map(ToString::to_string).collect::<Vec<_>>();
        self.functions.sort_by_cached_key(|function| {
            (function.name.clone(), print(function.argument_types().collect()))
        });
        self.aggregates.sort_by_cached_key(|aggregate| {
            (
                aggregate.name.clone(),
                print(aggregate.argument_types.iter().collect()),
            )
        });
    }
}
