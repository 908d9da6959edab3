//! `+ - * / %` on numbers, `+` on texts, `+ -` of a duration on times, and negation (`OperationFcts`).
//!
//! The types of an operation follow from how well each operand fits each type. This is computed once per operand, bottom up:
//! trying every pair of types at every level would take exponential time.

use bytes::Bytes;
use ilion_cql::ast::{self, ArithmeticOperator};
use ilion_types::{CqlType, Value};

use super::compute::{compute, number_type};
use super::{Argument, Number, ScalarFunction};
use crate::context::PlanContext;
use crate::term::Assignment;
use crate::term::assignment::test_type_assignment;
use crate::{ColumnSpec, Error};

const OPERATORS: [(ArithmeticOperator, &str); 5] = [
    (ArithmeticOperator::Add, "_add"),
    (ArithmeticOperator::Subtract, "_substract"),
    (ArithmeticOperator::Multiply, "_multiply"),
    (ArithmeticOperator::Divide, "_divide"),
    (ArithmeticOperator::Modulo, "_modulo"),
];

/// How many of `TYPES` are numbers; these come first.
const NUMBER_TYPES: usize = 9;

/// All types that an operand may have.
static TYPES: [CqlType; 14] = [
    CqlType::TinyInt,
    CqlType::SmallInt,
    CqlType::Int,
    CqlType::Float,
    CqlType::BigInt,
    CqlType::Double,
    CqlType::Varint,
    CqlType::Decimal,
    CqlType::Counter,
    CqlType::Text,
    CqlType::Ascii,
    CqlType::Timestamp,
    CqlType::Date,
    CqlType::Duration,
];

/// The types of numbers.
pub(super) fn number_types() -> &'static [CqlType] {
    &TYPES[..NUMBER_TYPES]
}

/// How well an operand fits each of [`TYPES`].
type Fits = [Assignment; TYPES.len()];

/// Why no types were found.
enum Unresolved {
    Unsupported,
    Ambiguous,
}

/// The operator that a function computes; `None` if it is not a function of an operator.
pub(super) fn symbol_of(function: &str) -> Option<char> {
    OPERATORS
        .iter()
        .find(|(_, name)| *name == function)
        .map(|(operator, _)| operator.symbol())
        .or((function == "_negate").then_some('-'))
}

/// The function of `left operator right`.
pub(super) fn make(
    operator: ArithmeticOperator,
    arguments: &[Argument<'_>; 2],
    receiver: Option<&CqlType>,
    context: &PlanContext<'_>,
) -> Result<ScalarFunction, Error> {
    let fits = arguments.each_ref().map(|argument| fits(argument, context));
    let has_marker = arguments.iter().any(Argument::is_marker);
    let symbol = operator.symbol();
    let [left, right] = arguments;
    match resolve(operator, &fits, receiver, has_marker) {
        Ok(types) => for_types(operator, types)
            .ok_or_else(|| Error::ServerError("the operation does not exist".to_owned())),
        Err(Unresolved::Unsupported) => Err(Error::Invalid(format!(
            "the '{symbol}' operation is not supported between {left} and {right}"
        ))),
        Err(Unresolved::Ambiguous) => Err(Error::Invalid(format!(
            "Ambiguous '{symbol}' operation with args {left} and {right}: use type hint to disambiguate, example '(int) ?'"
        ))),
    }
}

/// The function of `-argument`.
pub(super) fn make_negation(
    argument: &Argument<'_>,
    receiver: Option<&CqlType>,
    context: &PlanContext<'_>,
) -> Result<ScalarFunction, Error> {
    let ty = match resolve_negation(&fits(argument, context), receiver) {
        Ok(ty) => ty,
        Err(Unresolved::Ambiguous) => {
            return Err(Error::invalid(
                "Ambiguous negation: use type casts to disambiguate",
            ));
        }
        Err(Unresolved::Unsupported) => {
            let known: Vec<_> = number_types()
                .iter()
                .map(|ty| format!("system.\"_negate\" : ({ty}) -> {ty}"))
                .collect();
            return Err(Error::Invalid(format!(
                "Invalid call to function system._negate, none of its type signatures match (known type signatures: {})",
                known.join(", ")
            )));
        }
    };
    let result = ty.clone();
    Ok(ScalarFunction::of_value(
        "_negate",
        ty.clone(),
        ty,
        move |value| {
            // Compat: the negation of an empty value is null.
            let number = Number::decode(&result, value)?;
            number.map(|number| number.negated().encode(&result)).transpose()
        },
    ))
}

/// How well an operand fits each type.
fn fits(argument: &Argument<'_>, context: &PlanContext<'_>) -> Fits {
    match argument {
        Argument::Term(ast::Term::Arithmetic {
            operator,
            left,
            right,
        }) => {
            let arguments = [Argument::Term(left), Argument::Term(right)];
            let inner = arguments.each_ref().map(|argument| fits(argument, context));
            let has_marker = arguments.iter().any(Argument::is_marker);
            fits_of_result(|receiver| {
                let types = resolve(*operator, &inner, Some(receiver), has_marker).ok()?;
                result_type(*operator, &types)
            })
        }
        Argument::Term(ast::Term::Negate(term)) => {
            let inner = fits(&Argument::Term(term), context);
            fits_of_result(|receiver| resolve_negation(&inner, Some(receiver)).ok())
        }
        _ => TYPES
            .each_ref()
            .map(|ty| argument.test(&operand_spec(ty.clone()), context)),
    }
}

/// How well a result fits each type, if the type of the result depends on the receiver.
fn fits_of_result(result_for: impl Fn(&CqlType) -> Option<CqlType>) -> Fits {
    TYPES.each_ref().map(|receiver| match result_for(receiver) {
        Some(result) => test_type_assignment(receiver, &result),
        None => Assignment::No,
    })
}

fn operand_spec(ty: CqlType) -> ColumnSpec {
    ColumnSpec {
        keyspace: "".into(),
        table: "".into(),
        name: "operand".into(),
        ty,
    }
}

/// The types of the operands: those that both operands have exactly, or the only ones that both can be read as. If several pairs
/// are possible, the receiver's type decides.
///
/// An operation on literals has every type exactly. If the receiver did not decide, the first pair, the smallest integers, would win.
fn resolve(
    operator: ArithmeticOperator,
    [left, right]: &[Fits; 2],
    receiver: Option<&CqlType>,
    has_marker: bool,
) -> Result<[CqlType; 2], Unresolved> {
    let (mut exact, mut fitting) = (Vec::new(), Vec::new());
    for (left_type, left_fit) in TYPES.iter().zip(left) {
        for (right_type, right_fit) in TYPES.iter().zip(right) {
            let fit = *left_fit.min(right_fit);
            let types = [left_type.clone(), right_type.clone()];
            let Some(result) = result_type(operator, &types).filter(|_| fit != Assignment::No) else {
                continue;
            };
            if receiver.is_some_and(|receiver| test_type_assignment(receiver, &result) == Assignment::No) {
                continue;
            }
            match fit {
                Assignment::Exact => exact.push(types),
                _ => fitting.push(types),
            }
        }
    }
    let is_receivers = |types: &[CqlType; 2]| {
        !has_marker && receiver.is_some_and(|receiver| types[0] == *receiver && types[1] == *receiver)
    };
    if !exact.is_empty() {
        let receivers = exact.iter().position(is_receivers);
        return Ok(exact.swap_remove(receivers.unwrap_or(0)));
    }
    match fitting.len() {
        0 => Err(Unresolved::Unsupported),
        1 => Ok(fitting.remove(0)),
        _ => fitting
            .into_iter()
            .find(is_receivers)
            .ok_or(Unresolved::Ambiguous),
    }
}

fn resolve_negation(fits: &Fits, receiver: Option<&CqlType>) -> Result<CqlType, Unresolved> {
    let mut fitting = Vec::new();
    for (ty, fit) in TYPES.iter().zip(fits).filter(|(ty, _)| ty.is_numeric()) {
        let suits = receiver.is_none_or(|receiver| test_type_assignment(receiver, ty) != Assignment::No);
        match fit {
            Assignment::Exact if suits => return Ok(ty.clone()),
            Assignment::Weak if suits => fitting.push(ty.clone()),
            _ => {}
        }
    }
    match fitting.len() {
        0 => Err(Unresolved::Unsupported),
        1 => Ok(fitting.remove(0)),
        _ => fitting
            .into_iter()
            .find(|ty| receiver == Some(ty))
            .ok_or(Unresolved::Ambiguous),
    }
}

/// The result type of an operation; `None` if the types do not support it.
fn result_type(operator: ArithmeticOperator, types: &[CqlType; 2]) -> Option<CqlType> {
    use ArithmeticOperator as O;
    use CqlType as T;
    match (operator, types) {
        (_, [left, right]) if left.is_numeric() && right.is_numeric() => Some(number_type(types)),
        (O::Add, [T::Ascii, T::Ascii]) => Some(T::Ascii),
        (O::Add, [T::Text | T::Ascii, T::Text | T::Ascii]) => Some(T::Text),
        (O::Add | O::Subtract, [time @ (T::Timestamp | T::Date), T::Duration]) => Some(time.clone()),
        _ => None,
    }
}

fn for_types(operator: ArithmeticOperator, types: [CqlType; 2]) -> Option<ScalarFunction> {
    let name = OPERATORS.iter().find(|(known, _)| *known == operator)?.1;
    let result = result_type(operator, &types)?;
    Some(match result {
        CqlType::Text | CqlType::Ascii => strict(name, types, result, |left, right| {
            Ok(Some([left, right].concat().into()))
        }),
        CqlType::Timestamp | CqlType::Date => {
            let ty = result.clone();
            strict(name, types.clone(), result, move |time, duration| {
                let is_backwards = operator == ArithmeticOperator::Subtract;
                shift(&ty, time, duration, is_backwards).map_err(|error| match error {
                    Error::Invalid(what) => failure(operator, name, &types, &what),
                    other => other,
                })
            })
        }
        _ => on_numbers(operator, name, types, result),
    })
}

/// A function of two values that returns null if one is null.
fn strict(
    name: &str,
    types: [CqlType; 2],
    result: CqlType,
    body: impl Fn(&[u8], &[u8]) -> Result<Option<Bytes>, Error> + Send + Sync + 'static,
) -> ScalarFunction {
    ScalarFunction::new(name, types, result, move |arguments, _| match arguments {
        [Some(left), Some(right)] => body(left, right),
        _ => Ok(None),
    })
}

fn on_numbers(
    operator: ArithmeticOperator,
    name: &'static str,
    types: [CqlType; 2],
    result: CqlType,
) -> ScalarFunction {
    let ty = result.clone();
    strict(name, types.clone(), result, move |left, right| {
        let [left_type, right_type] = &types;
        let (Some(left), Some(right)) = (
            Number::decode(left_type, left)?,
            Number::decode(right_type, right)?,
        ) else {
            return Ok(None);
        };
        let computed = compute(operator, &left, &right, &ty);
        let computed = computed.map_err(|what| failure(operator, name, &types, &what))?;
        computed.encode(&ty).map(Some)
    })
}

/// The error of an operation that fails (`OperationExecutionException`).
fn failure(
    operator: ArithmeticOperator,
    name: &str,
    types: &[CqlType; 2],
    what: &impl std::fmt::Display,
) -> Error {
    let [left, right] = types;
    Error::FunctionFailure {
        keyspace: "system".to_owned(),
        function: name.to_owned(),
        argument_types: types.iter().map(CqlType::to_string).collect(),
        message: format!(
            "the operation '{left} {} {right}' failed: {what}",
            operator.symbol()
        ),
    }
}

/// Adds a duration to a timestamp or date, or subtracts it: months first, in the calendar.
fn shift(ty: &CqlType, time: &[u8], duration: &[u8], backwards: bool) -> Result<Option<Bytes>, Error> {
    let Some(millis) = super::time::millis_of(ty, time)? else {
        return Ok(None);
    };
    let Value::Duration(duration) = Value::decode(&CqlType::Duration, duration)? else {
        return Ok(None);
    };
    if *ty == CqlType::Date && duration.nanos() != 0 {
        return Err(Error::Invalid(format!(
            "The duration must have a day precision. Was: {duration}"
        )));
    }
    if duration.nanos() % 1_000_000 != 0 {
        return Err(Error::Invalid(format!(
            "The duration must have a millisecond precision. Was: {duration}"
        )));
    }
    let sign = if backwards { -1 } else { 1 };
    let millis = super::time::add_months(millis, i64::from(duration.months()) * sign)
        .saturating_add(i64::from(duration.days()) * sign * super::time::MILLIS_PER_DAY)
        .saturating_add(duration.nanos() / 1_000_000 * sign);
    Ok(Some(match ty {
        CqlType::Date => super::time::date_of_millis(millis),
        _ => super::time::millis_bytes(millis),
    }))
}
