//! CREATE and DROP of functions and aggregates.

use ilion_cql::ast;
use ilion_schema::{FunctionSchema, SchemaChange};
use ilion_types::CqlType;

use super::common::keyspace;
use crate::context::PlanContext;
use crate::term::functions::{USER_FUNCTIONS_DISABLED, script_of};
use crate::term::plan_constant;
use crate::type_name::resolve_type;
use crate::{ColumnSpec, Error};

pub(super) fn create(create: &ast::CreateFunction, context: &PlanContext<'_>) -> Result<SchemaChange, Error> {
    check_enabled(context)?;
    let keyspace = keyspace(&create.name, context)?;
    let resolve = |ty: &ast::CqlTypeName| resolve_type(ty, Some(&keyspace), context.schema);
    let arguments = create
        .arguments
        .iter()
        .map(|(name, ty)| Ok((name.clone(), resolve(ty)?)))
        .collect::<Result<Vec<_>, Error>>()?;
    let function = FunctionSchema {
        name: create.name.name.clone(),
        arguments,
        body: create.body.clone(),
        called_on_null_input: create.called_on_null_input,
        language: create.language.clone(),
        return_type: resolve(&create.return_type)?,
    };
    let exists = is_there(&keyspace, &function, context);
    if !(exists && create.mode.if_not_exists) && context.schema.keyspace(&keyspace).is_some() {
        script_of(&keyspace, &function, context.options).map_err(Error::Invalid)?;
    }
    Ok(SchemaChange::CreateFunction(Box::new(
        ilion_schema::CreateFunction {
            keyspace,
            name: function.name,
            arguments: function.arguments,
            return_type: function.return_type,
            called_on_null_input: function.called_on_null_input,
            language: function.language,
            body: function.body,
            or_replace: create.mode.or_replace,
            if_not_exists: create.mode.if_not_exists,
        },
    )))
}

fn is_there(keyspace: &str, function: &FunctionSchema, context: &PlanContext<'_>) -> bool {
    let types: Vec<CqlType> = function.argument_types().cloned().collect();
    let keyspace = context.schema.keyspace(keyspace);
    keyspace.is_some_and(|keyspace| keyspace.find_function(&function.name, &types).is_some())
}

pub(super) fn create_aggregate(
    create: &ast::CreateAggregate,
    context: &PlanContext<'_>,
) -> Result<SchemaChange, Error> {
    check_enabled(context)?;
    let keyspace = keyspace(&create.name, context)?;
    let resolve = |ty: &ast::CqlTypeName| resolve_type(ty, Some(&keyspace), context.schema);
    let state_type = resolve(&create.state_type)?;
    let initcond = match &create.initial_state {
        None | Some(ast::Term::Literal(ast::Literal::Null)) => None,
        Some(term) => Some(initial_state(term, &state_type, &keyspace, context)?),
    };
    Ok(SchemaChange::CreateAggregate(Box::new(
        ilion_schema::CreateAggregate {
            name: create.name.name.clone(),
            argument_types: create
                .argument_types
                .iter()
                .map(resolve)
                .collect::<Result<_, _>>()?,
            state_func: create.state_function.clone(),
            state_type,
            final_func: create.final_function.clone(),
            initcond: initcond.flatten(),
            or_replace: create.mode.or_replace,
            if_not_exists: create.mode.if_not_exists,
            keyspace,
        },
    )))
}

/// Compat: the literal is kept as CQL prints the value.
fn initial_state(
    term: &ast::Term,
    ty: &CqlType,
    keyspace: &str,
    context: &PlanContext<'_>,
) -> Result<Option<String>, Error> {
    let receiver = ColumnSpec {
        keyspace: keyspace.into(),
        table: "--dummy--".into(),
        name: "(dummy)".into(),
        ty: ty.clone(),
    };
    plan_constant(term, &receiver, context)?
        .map(|bytes| Ok(ty.print_literal(&bytes)?))
        .transpose()
}

fn check_enabled(context: &PlanContext<'_>) -> Result<(), Error> {
    match context.options.user_functions_enabled {
        true => Ok(()),
        false => Err(Error::invalid(USER_FUNCTIONS_DISABLED)),
    }
}
