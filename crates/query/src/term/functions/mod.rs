//! Scalar functions, native and user-defined: resolving a name with its arguments, and calling the function.
//!
//! | module | what |
//! | --- | --- |
//! | `argument` | terms as arguments: how well they fit, and their types |
//! | `signature` | choosing among functions of one name |
//! | `time` | clocks, version 1 UUIDs, dates |
//! | `blob` | values as blobs and back |
//! | `number` | numbers of any type |
//! | `arithmetic`, `compute` | `+ - * / %` and negation |
//! | `cast` | `CAST` |
//! | `math` | `abs`, `exp`, `log`, `log10`, `round` |
//! | `collection` | `map_keys`, `collection_sum` and the like; similarity of vectors |
//! | `floor` | the start of the interval that a time is in |
//! | `mask` | masking |
//! | `json` | `to_json`, `from_json` |
//! | `token` | `token` |
//! | `user` | user-defined functions |
//! | `names` | the names of native functions |

mod argument;
mod arithmetic;
mod blob;
mod cast;
mod collection;
mod compute;
mod floor;
mod json;
mod lookup;
mod mask;
mod math;
mod names;
mod number;
mod scalar;
mod signature;
mod time;
mod token;
mod typing;
mod user;

use std::sync::Arc;

use ilion_cql::ast::{self, ArithmeticOperator, QualifiedName};
use ilion_schema::{ColumnMask, Keyspace};
use ilion_types::CqlType;

use super::assignment::{Assignment, test_type_assignment};
use crate::context::PlanContext;
use crate::type_name::resolve_type;
use crate::{ColumnSpec, Error};

use lookup::Lookup;

pub(crate) use argument::Argument;
pub(crate) use collection::{Score, floats, score_function};
pub use names::FUNCTION_NAMES;
pub(crate) use number::Number;
pub(crate) use scalar::{Arguments, ScalarFunction};
pub(crate) use typing::{known_type, test_assignment};
pub(crate) use user::{USER_FUNCTIONS_DISABLED, function_calls, script_of};

/// The function of this name that takes these arguments; `None` if no scalar function has the name (an aggregate may).
/// `receiver` is the type that takes the result and `table` the statement's table; both `None` if not known.
///
/// # Errors
/// No function of the name takes the arguments, or the call is ambiguous.
pub(crate) fn scalar_function(
    name: &QualifiedName,
    arguments: &[Argument<'_>],
    receiver: Option<&CqlType>,
    table: Option<(&str, &str)>,
    context: &PlanContext<'_>,
) -> Result<Option<Arc<ScalarFunction>>, Error> {
    let found = find_scalar(name, arguments, receiver, table, context)?;
    if let Some(function) = &found
        && function.keyspace != "system"
    {
        context.executes(&function.keyspace, &function.name, &function.arguments);
    }
    Ok(found.map(Arc::new))
}

/// The function that masks a column of type `masked`, which is the type of its first argument; `None` if no scalar function
/// has the name. A role that sets a mask or reads a masked column needs no permission on the function.
///
/// # Errors
/// As [`scalar_function`].
pub(crate) fn masking_function(
    name: &QualifiedName,
    arguments: &[Argument<'_>],
    masked: &CqlType,
    table: (&str, &str),
    context: &PlanContext<'_>,
) -> Result<Option<ScalarFunction>, Error> {
    find_scalar(name, arguments, Some(masked), Some(table), context)
}

/// The function of a mask in the schema; `None` if the function does not exist.
pub(crate) fn stored_masking_function(
    mask: &ColumnMask,
    masked: &CqlType,
    context: &PlanContext<'_>,
) -> Option<ScalarFunction> {
    let types = mask.argument_types(masked);
    if mask.keyspace != "system" {
        let keyspace = context.schema.keyspace(&mask.keyspace)?;
        let function = keyspace.find_function(&mask.function, &types)?;
        return Some(user::make(keyspace, function, context));
    }
    let arguments: Vec<Argument<'_>> = types.iter().map(|ty| Argument::Typed(ty, "")).collect();
    let lookup = Lookup {
        name: &mask.function,
        keyspace: Some("system"),
        arguments: &arguments,
        receiver: Some(masked),
        table: None,
        context,
    };
    let made = mask::make(&lookup).ok()??;
    (made.arguments == types).then_some(made)
}

fn find_scalar(
    name: &QualifiedName,
    arguments: &[Argument<'_>],
    receiver: Option<&CqlType>,
    table: Option<(&str, &str)>,
    context: &PlanContext<'_>,
) -> Result<Option<ScalarFunction>, Error> {
    let of_table = table
        .map(|(keyspace, _)| keyspace)
        .filter(|name| !name.is_empty());
    let of_statement = of_table.or(context.keyspace);
    let keyspace = name.keyspace.as_deref().or(of_statement);
    let keyspace = keyspace.and_then(|keyspace| context.schema.keyspace(keyspace));
    let lookup = Lookup {
        name: &name.name,
        keyspace: name.keyspace.as_deref(),
        arguments,
        receiver,
        table,
        context,
    };
    let of_user = keyspace.map_or_else(Vec::new, |keyspace| lookup.of_user(keyspace));
    let may_be_native = name.keyspace.as_deref().is_none_or(|name| name == "system");
    lookup.find(may_be_native, of_user)
}

/// The user-defined function with exactly this signature, for aggregates.
///
/// # Errors
/// The function does not exist.
pub(crate) fn exact_user_function(
    keyspace: &Keyspace,
    name: &str,
    types: &[CqlType],
    context: &PlanContext<'_>,
) -> Result<Arc<ScalarFunction>, Error> {
    match keyspace.find_function(name, types) {
        Some(function) => {
            let function = user::make(keyspace, function, context);
            context.executes(&keyspace.name, name, &function.arguments);
            Ok(Arc::new(function))
        }
        None => Err(Error::Invalid(format!(
            "Unknown function {}.{name} called",
            keyspace.name
        ))),
    }
}

impl Lookup<'_> {
    /// The function among native and user-defined ones.
    fn find(
        &self,
        may_be_native: bool,
        of_user: Vec<ScalarFunction>,
    ) -> Result<Option<ScalarFunction>, Error> {
        let mut candidates = Vec::new();
        if may_be_native {
            time::candidates(self.name, &mut candidates);
            blob::candidates(self.name, &mut candidates);
            math::candidates(self.name, &mut candidates);
            floor::candidates(self.name, &mut candidates);
            if candidates.is_empty() {
                candidates.extend(self.made()?);
            }
        }
        candidates.extend(of_user);
        if candidates.is_empty() {
            return Ok(None);
        }
        self.pick(candidates).map(Some)
    }

    /// The native function that is made for the types of the arguments.
    fn made(&self) -> Result<Option<ScalarFunction>, Error> {
        Ok(match self.name {
            "token" => Some(token::make(self)?),
            "to_json" | "tojson" => Some(json::make_to_json(self)?),
            "from_json" | "fromjson" => Some(json::make_from_json(self)?),
            name if name.starts_with("mask_") => mask::make(self)?,
            _ => collection::make(self)?,
        })
    }

    /// The user-defined functions of this name in a keyspace.
    fn of_user(&self, keyspace: &Keyspace) -> Vec<ScalarFunction> {
        let named = keyspace
            .functions
            .iter()
            .filter(|function| function.name == self.name);
        named
            .map(|function| user::make(keyspace, function, self.context))
            .collect()
    }

    /// The function's name in messages about several candidates.
    fn printed_name(&self, candidates: &[ScalarFunction]) -> String {
        let is_native = candidates.iter().any(|candidate| candidate.keyspace == "system");
        match self.keyspace.or(is_native.then_some("system")) {
            Some(keyspace) => format!("{keyspace}.{}", self.name),
            None => self.name.to_owned(),
        }
    }
}

/// The function of `CAST(argument AS type_name)`.
pub(crate) fn cast_function(
    argument: &Argument<'_>,
    type_name: &ast::CqlTypeName,
    receiver: &ColumnSpec,
    context: &PlanContext<'_>,
) -> Result<Arc<ScalarFunction>, Error> {
    let to = resolve_type(type_name, Some(&receiver.keyspace), context.schema)?;
    let unknown = || format!("Unknown function system.cast_as_{to} called");
    let function = cast(argument, &to, unknown, context)?;
    if test_type_assignment(&receiver.ty, &to) == Assignment::No {
        return Err(no_cast(&to, unknown));
    }
    Ok(function)
}

/// The function that converts an argument to a type.
///
/// # Errors
/// The conversion does not exist.
pub(crate) fn cast_to(
    argument: &Argument<'_>,
    to: &CqlType,
    context: &PlanContext<'_>,
) -> Result<Arc<ScalarFunction>, Error> {
    cast(
        argument,
        to,
        || format!("{argument} cannot be cast to {to}"),
        context,
    )
}

/// The function of a cast. `unknown` returns the error if no cast to the type exists.
fn cast(
    argument: &Argument<'_>,
    to: &CqlType,
    unknown: impl Fn() -> String,
    context: &PlanContext<'_>,
) -> Result<Arc<ScalarFunction>, Error> {
    let from = argument.known_type(context).ok_or_else(|| {
        Error::Invalid(format!(
            "Ambiguous cast of {argument} to {to}: use a type hint to disambiguate"
        ))
    })?;
    cast::make(&from, to)
        .map(Arc::new)
        .ok_or_else(|| no_cast(to, unknown))
}

fn no_cast(to: &CqlType, unknown: impl Fn() -> String) -> Error {
    Error::Invalid(match cast::signatures(to) {
        none if none.is_empty() => unknown(),
        known => format!(
            "Invalid call to function system.cast_as_{to}, none of its type signatures match (known type \
             signatures: {})",
            known.join(", ")
        ),
    })
}

/// The function of `left operator right`.
///
/// # Errors
/// The types do not support the operation, or it is ambiguous.
pub(crate) fn arithmetic_function(
    operator: ArithmeticOperator,
    arguments: &[Argument<'_>; 2],
    receiver: Option<&CqlType>,
    context: &PlanContext<'_>,
) -> Result<Arc<ScalarFunction>, Error> {
    arithmetic::make(operator, arguments, receiver, context).map(Arc::new)
}

/// The function of `-argument`.
///
/// # Errors
/// The argument is not a number, or its type is not known.
pub(crate) fn negation_function(
    argument: &Argument<'_>,
    receiver: Option<&CqlType>,
    context: &PlanContext<'_>,
) -> Result<Arc<ScalarFunction>, Error> {
    arithmetic::make_negation(argument, receiver, context).map(Arc::new)
}

/// The function of an operation on terms; `None` if the term is not an operation.
///
/// # Errors
/// As [`arithmetic_function`] and [`negation_function`].
pub(crate) fn operation_function(
    term: &ast::Term,
    receiver: Option<&CqlType>,
    context: &PlanContext<'_>,
) -> Result<Option<Arc<ScalarFunction>>, Error> {
    match term {
        ast::Term::Arithmetic {
            operator,
            left,
            right,
        } => {
            let arguments = [Argument::Term(left), Argument::Term(right)];
            arithmetic_function(*operator, &arguments, receiver, context).map(Some)
        }
        ast::Term::Negate(of) => negation_function(&Argument::Term(of), receiver, context).map(Some),
        _ => Ok(None),
    }
}
