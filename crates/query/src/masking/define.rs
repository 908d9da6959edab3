//! `MASKED WITH function(arguments)`: the function is looked up, and the arguments are evaluated once.
//!
//! Compat: `ColumnMask.Raw` of Cassandra 5.0.

use bytes::Bytes;
use ilion_cql::ast;
use ilion_schema::{ColumnMask, MaskArgument};
use ilion_types::CqlType;

use crate::aggregate::AggregateKind;
use crate::context::PlanContext;
use crate::term::functions::{Argument, ScalarFunction, masking_function};
use crate::term::{Term, print_name, while_planning};
use crate::{Error, Value};

/// A column that a statement masks.
pub(crate) struct MaskedColumn<'a> {
    pub keyspace: &'a str,
    pub table: &'a str,
    pub name: &'a str,
    pub ty: &'a CqlType,
}

/// Refuses masks unless masking is enabled.
///
/// # Errors
/// Masking is not enabled.
pub(crate) fn check_enabled(context: &PlanContext<'_>) -> Result<(), Error> {
    if context.options.dynamic_data_masking_enabled {
        return Ok(());
    }
    Err(Error::invalid(
        "Cannot mask columns because dynamic data masking is not enabled. You can enable it with the \
         dynamic_data_masking_enabled property on cassandra.yaml",
    ))
}

/// The mask of a column.
///
/// # Errors
/// The function cannot mask the column, or does not take the arguments.
pub(crate) fn define(
    given: &ast::ColumnMask,
    column: &MaskedColumn<'_>,
    context: &PlanContext<'_>,
) -> Result<ColumnMask, Error> {
    if context.has_markers() {
        return Err(Error::invalid(
            "Bind variables are not supported in the arguments of masking functions",
        ));
    }
    let function = find(given, column, context)?;
    let mut arguments = Vec::with_capacity(given.arguments.len());
    for (index, term) in given.arguments.iter().enumerate() {
        let spec = function.argument_spec(index + 1, &column.keyspace.into(), &column.table.into())?;
        let value = evaluate(&Term::plan(term, &spec, context)?, context)?;
        if let Some(value) = &value {
            spec.ty.validate(value)?;
        }
        arguments.push(MaskArgument { ty: spec.ty, value });
    }
    Ok(ColumnMask {
        keyspace: function.keyspace().to_owned(),
        function: function.name().to_owned(),
        arguments,
    })
}

/// The function that a mask calls.
fn find(
    given: &ast::ColumnMask,
    column: &MaskedColumn<'_>,
    context: &PlanContext<'_>,
) -> Result<ScalarFunction, Error> {
    let type_name = column.ty.to_string();
    let masked = Argument::Typed(column.ty, &type_name);
    let others = given.arguments.iter().map(Argument::Term);
    let arguments: Vec<Argument<'_>> = [masked].into_iter().chain(others).collect();
    let place = (column.keyspace, column.table);
    let printed = print(given);
    let function = match masking_function(&given.function, &arguments, column.ty, place, context)? {
        Some(function) => function,
        None if is_aggregate(&given.function, column.keyspace, context) => {
            return Err(Error::Invalid(format!(
                "Aggregate function {printed} cannot be used for masking table columns"
            )));
        }
        None => {
            return Err(Error::Invalid(format!(
                "Unable to find masking function for {}, no declared function matches the signature {printed}",
                column.name
            )));
        }
    };
    let is_native = function.keyspace() == "system";
    if is_native && !function.name().starts_with("mask_") {
        return Err(Error::Invalid(format!(
            "Not-masking function {printed} cannot be used for masking table columns"
        )));
    }
    if !is_native && function.keyspace() != column.keyspace {
        return Err(Error::Invalid(format!(
            "Masking function {printed} doesn't belong to the same keyspace as the table {}.{}",
            column.keyspace, column.table
        )));
    }
    if function.result_type() != column.ty {
        return Err(Error::Invalid(format!(
            "Masking function {printed} return type is {}. This is different to the type of the masked column {} of type \
             {}. Masking functions can only be attached to table columns if they return the same data type as the masked \
             column.",
            function.result_type(),
            column.name,
            column.ty
        )));
    }
    Ok(function)
}

fn print(given: &ast::ColumnMask) -> String {
    let arguments: Vec<String> = given.arguments.iter().map(ToString::to_string).collect();
    format!("{}({})", print_name(&given.function), arguments.join(", "))
}

fn is_aggregate(name: &ast::QualifiedName, keyspace: &str, context: &PlanContext<'_>) -> bool {
    let may_be_native = name.keyspace.as_deref().is_none_or(|given| given == "system");
    if may_be_native && AggregateKind::named(&name.name).is_some() {
        return true;
    }
    let keyspace = name.keyspace.as_deref().unwrap_or(keyspace);
    let keyspace = context.schema.keyspace(keyspace);
    keyspace.is_some_and(|keyspace| keyspace.aggregates.iter().any(|known| known.name == name.name))
}

/// The value of an argument; `None` is null.
fn evaluate(term: &Term, context: &PlanContext<'_>) -> Result<Option<Bytes>, Error> {
    Ok(
        match while_planning(context, |execution| term.evaluate(execution))? {
            Value::Bytes(bytes) => Some(bytes),
            Value::Null | Value::Unset => None,
        },
    )
}
