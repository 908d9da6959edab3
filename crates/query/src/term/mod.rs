//! Planned terms: values outside of a selection, each with the type of its receiver.
//!
//! Planning checks that a term fits its receiver and serializes constants. Evaluating binds the markers, calls the functions
//! and returns the serialized value.
//!
//! | module | what |
//! | --- | --- |
//! | `constant` | constants |
//! | `compound`, `assemble` | literals of collections, tuples, user types and vectors |
//! | `assignment` | which types a receiver accepts |
//! | `terms` | lists of values after `IN` |
//! | `functions` | native functions, casts and arithmetic |

mod assemble;
mod assignment;
mod compound;
mod constant;
pub(crate) mod functions;
mod terms;

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use ilion_cql::ast;
use ilion_types::CqlType;

use crate::aggregate;
use crate::context::{Execution, PlanContext, Sight};
use crate::type_name::resolve_type;
use crate::{ColumnSpec, Error, ExecuteOptions, Value};

pub(crate) use assignment::{Assignment, test_type_assignment};
pub(crate) use terms::Terms;

use compound::Compound;
use functions::{Argument, ScalarFunction, function_calls, test_assignment};

/// Evaluates, while a statement is planned, a value that planning needs. The execution has no client, no bound values and no views.
pub(crate) fn while_planning<T>(context: &PlanContext<'_>, evaluate: impl FnOnce(&Execution<'_>) -> T) -> T {
    let (options, warnings) = (ExecuteOptions::default(), RefCell::default());
    let calls = function_calls(context.options, None);
    evaluate(&Execution {
        store: context.store,
        schema: context.schema,
        values: &[],
        options: &options,
        query_options: context.options,
        now_secs: context.store.now_micros().div_euclid(1_000_000),
        warnings: &warnings,
        calls: &calls,
        patience: None,
        views: None,
        sight: Sight::Clear,
    })
}

/// A planned term.
#[derive(Clone, Debug)]
pub(crate) enum Term {
    /// `null`
    Null,
    /// A serialized value.
    Constant(Bytes),
    /// `?` or `:name`
    Marker(Marker),
    /// A literal with parts that are not all constant.
    Compound(Box<Compound>),
    /// A call.
    Call(Box<Call>),
}

/// A bind marker with the type that it receives.
#[derive(Clone, Debug)]
pub(crate) struct Marker {
    index: usize,
    ty: CqlType,
    /// True if the elements of a bound set or map must be sorted for storage.
    has_order: bool,
}

/// A function and its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    function: Arc<ScalarFunction>,
    arguments: Vec<Term>,
}

impl Term {
    /// Plans `ast` as a value for `receiver`.
    ///
    /// # Errors
    /// The term does not fit the receiver.
    pub(crate) fn plan(
        ast: &ast::Term,
        receiver: &ColumnSpec,
        context: &PlanContext<'_>,
    ) -> Result<Self, Error> {
        match ast {
            ast::Term::Literal(literal) => {
                let constant = constant::plan(literal, receiver)?;
                Ok(constant.map_or(Self::Null, Self::Constant))
            }
            ast::Term::Bind(marker) => {
                context.mark(marker.index, receiver.clone());
                Ok(Self::Marker(Marker::of(marker.index, &receiver.ty)))
            }
            ast::Term::Function { name, arguments } => plan_call(name, arguments, receiver, context),
            ast::Term::TypeHint { type_name, term } => {
                check_hint(type_name, term, ast, receiver, context)?;
                Self::plan(term, receiver, context)
            }
            ast::Term::Cast { term, type_name } => {
                let argument = Argument::Term(term);
                let function = functions::cast_function(&argument, type_name, receiver, context)?;
                finish_call(function, &[argument], receiver, context)
            }
            ast::Term::Arithmetic {
                operator,
                left,
                right,
            } => {
                let arguments = [Argument::Term(left), Argument::Term(right)];
                let function =
                    functions::arithmetic_function(*operator, &arguments, Some(&receiver.ty), context)?;
                finish_call(function, &arguments, receiver, context)
            }
            ast::Term::Negate(term) => {
                let argument = Argument::Term(term);
                let function = functions::negation_function(&argument, Some(&receiver.ty), context)?;
                finish_call(function, &[argument], receiver, context)
            }
            ast::Term::List(_)
            | ast::Term::Set(_)
            | ast::Term::Map(_)
            | ast::Term::UserType(_)
            | ast::Term::Tuple(_) => compound::plan(ast, receiver, context),
        }
    }

    /// A literal for the receiver whose parts are planned.
    ///
    /// # Errors
    /// The parts are constant, and no value of the receiver's type.
    pub(crate) fn of_parts(parts: Vec<Self>, receiver: &ColumnSpec) -> Result<Self, Error> {
        compound::of_parts(parts, receiver)
    }

    /// The value.
    ///
    /// # Errors
    /// A bound value does not fit its type, or a function failed.
    #[inline]
    pub(crate) fn evaluate(&self, execution: &Execution<'_>) -> Result<Value, Error> {
        match self {
            Self::Null => Ok(Value::Null),
            Self::Constant(bytes) => Ok(Value::Bytes(bytes.clone())),
            Self::Marker(marker) => marker.evaluate(execution),
            Self::Compound(compound) => compound.evaluate(execution),
            Self::Call(call) => call.evaluate(execution),
        }
    }

    /// The value; `None` is null. An unset value is refused with the message of `refusal`.
    pub(crate) fn evaluate_set(
        &self,
        execution: &Execution<'_>,
        refusal: impl FnOnce() -> String,
    ) -> Result<Option<Bytes>, Error> {
        match self.evaluate(execution)? {
            Value::Null => Ok(None),
            Value::Unset => Err(Error::Invalid(refusal())),
            Value::Bytes(bytes) => Ok(Some(bytes)),
        }
    }

    /// True if the value is known at planning.
    pub(crate) fn is_constant(&self) -> bool {
        matches!(self, Self::Null | Self::Constant(_))
    }

    /// True if the term contains a marker.
    pub(crate) fn has_marker(&self) -> bool {
        match self {
            Self::Null | Self::Constant(_) => false,
            Self::Marker(_) => true,
            Self::Compound(compound) => compound.parts().iter().any(Self::has_marker),
            Self::Call(call) => call.arguments.iter().any(Self::has_marker),
        }
    }
}

impl Marker {
    fn of(index: usize, ty: &CqlType) -> Self {
        Self {
            index,
            has_order: ty.contains(&|inner| matches!(inner, CqlType::Set { .. } | CqlType::Map { .. })),
            ty: ty.clone(),
        }
    }

    #[inline]
    fn evaluate(&self, execution: &Execution<'_>) -> Result<Value, Error> {
        match execution.value(self.index)? {
            Value::Bytes(bytes) => self.checked(bytes).map(Value::Bytes),
            missing => Ok(missing.clone()),
        }
    }

    /// The value in stored form. Fails if the bytes are not a value of the type.
    #[inline]
    fn checked(&self, bytes: &Bytes) -> Result<Bytes, Error> {
        if self.has_order {
            let decoded = ilion_types::Value::decode(&self.ty, bytes)?;
            return Ok(decoded.to_bytes(&self.ty)?.into());
        }
        self.ty.validate(bytes)?;
        Ok(bytes.clone())
    }
}

impl Call {
    fn evaluate(&self, execution: &Execution<'_>) -> Result<Value, Error> {
        let arguments = self
            .arguments
            .iter()
            .map(|argument| {
                argument.evaluate_set(execution, || {
                    format!(
                        "Invalid unset value for argument in call to function {}",
                        self.function.name()
                    )
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(self
            .function
            .call(&arguments, execution)?
            .map_or(Value::Null, Value::Bytes))
    }
}

/// Checks `(type_name) term` against the receiver.
fn check_hint(
    type_name: &ast::CqlTypeName,
    term: &ast::Term,
    whole: &ast::Term,
    receiver: &ColumnSpec,
    context: &PlanContext<'_>,
) -> Result<(), Error> {
    let ty = resolve_type(type_name, Some(&receiver.keyspace), context.schema)?;
    let hinted = ColumnSpec {
        name: whole.to_string().into(),
        ty: ty.clone(),
        ..receiver.clone()
    };
    if test_assignment(term, &hinted, context) == Assignment::No {
        return Err(Error::Invalid(format!(
            "Cannot cast value {term} to type {type_name}"
        )));
    }
    if test_type_assignment(&receiver.ty, &ty) == Assignment::No {
        return Err(Error::Invalid(format!(
            "Cannot assign value {whole} to {} of type {}",
            receiver.name, receiver.ty
        )));
    }
    Ok(())
}

fn plan_call(
    name: &ast::QualifiedName,
    arguments: &[ast::Term],
    receiver: &ColumnSpec,
    context: &PlanContext<'_>,
) -> Result<Term, Error> {
    let arguments: Vec<Argument<'_>> = arguments.iter().map(Argument::Term).collect();
    let table = Some((&*receiver.keyspace, &*receiver.table));
    let function = functions::scalar_function(name, &arguments, Some(&receiver.ty), table, context)?
        .ok_or_else(|| match is_aggregate(name, context) {
            true => Error::invalid("Aggregation function are not supported in the where clause"),
            false => Error::Invalid(format!("Unknown function {} called", print_name(name))),
        })?;
    finish_call(function, &arguments, receiver, context)
}

/// True if an aggregate, native or user-defined, has this name.
fn is_aggregate(name: &ast::QualifiedName, context: &PlanContext<'_>) -> bool {
    let may_be_native = name
        .keyspace
        .as_deref()
        .is_none_or(|keyspace| keyspace == "system");
    if may_be_native && aggregate::AggregateKind::named(&name.name).is_some() {
        return true;
    }
    let keyspace = context.keyspace_of(name).ok();
    let keyspace = keyspace.and_then(|keyspace| context.schema.keyspace(keyspace));
    keyspace.is_some_and(|keyspace| keyspace.aggregates.iter().any(|known| known.name == name.name))
}

/// The value of a constant term; `None` is null.
///
/// # Errors
/// The term does not fit the receiver, or is not constant.
pub(crate) fn plan_constant(
    ast: &ast::Term,
    receiver: &ColumnSpec,
    context: &PlanContext<'_>,
) -> Result<Option<Bytes>, Error> {
    match Term::plan(ast, receiver, context)? {
        Term::Null => Ok(None),
        Term::Constant(bytes) => Ok(Some(bytes)),
        _ => Err(Error::Invalid(format!(
            "Invalid value {ast}: it has to be a constant"
        ))),
    }
}

/// Checks the result against the receiver and plans the arguments.
fn finish_call(
    function: Arc<ScalarFunction>,
    arguments: &[Argument<'_>],
    receiver: &ColumnSpec,
    context: &PlanContext<'_>,
) -> Result<Term, Error> {
    let result = function.result_type();
    if test_type_assignment(&receiver.ty, result) == Assignment::No {
        let (kind, name) = function.kind_and_name();
        return Err(Error::Invalid(format!(
            "Type error: cannot assign result of {kind} {name} (type {result}) to {} (type {})",
            receiver.name, receiver.ty
        )));
    }
    let mut planned = Vec::with_capacity(arguments.len());
    for (index, argument) in arguments.iter().enumerate() {
        let Argument::Term(term) = argument else {
            return Err(Error::ServerError(
                "a term has only terms as arguments".to_owned(),
            ));
        };
        let spec = function.argument_spec(index, &receiver.keyspace, &receiver.table)?;
        planned.push(Term::plan(term, &spec, context)?);
    }
    Ok(Term::Call(Box::new(Call {
        function,
        arguments: planned,
    })))
}

/// A function's name in messages.
pub(crate) fn print_name(name: &ast::QualifiedName) -> String {
    match &name.keyspace {
        Some(keyspace) => format!("{keyspace}.{}", name.name),
        None => name.name.clone(),
    }
}
