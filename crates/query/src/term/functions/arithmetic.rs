//! `+ - * / %` on numbers, `+` on texts, `+ -` of a duration on times, and negation (`OperationFcts`).

use bytes::Bytes;
use ilion_cql::ast::ArithmeticOperator;
use ilion_types::{CqlType, Decimal, Value};
use num_bigint::{BigInt, Sign};

use super::number::power_of_ten;
use super::{Argument, Number, ScalarFunction};
use crate::Error;
use crate::context::PlanContext;

const OPERATORS: [(ArithmeticOperator, &str); 5] = [
    (ArithmeticOperator::Add, "_add"),
    (ArithmeticOperator::Subtract, "_substract"),
    (ArithmeticOperator::Multiply, "_multiply"),
    (ArithmeticOperator::Divide, "_divide"),
    (ArithmeticOperator::Modulo, "_modulo"),
];

/// The operator that a function stands for.
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
    let symbol = operator.symbol();
    let [left, right] = arguments;
    let ambiguous = || {
        Error::Invalid(format!(
            "Ambiguous '{symbol}' operation with args {left} and {right}: use type hint to disambiguate, example '(int) ?'"
        ))
    };
    let types = match (left.known_type(context), right.known_type(context)) {
        (Some(left), Some(right)) => [left, right],
        _ if arguments.iter().any(Argument::is_marker) => return Err(ambiguous()),
        _ => match receiver {
            Some(receiver) if receiver.is_numeric() => [receiver.clone(), receiver.clone()],
            _ => return Err(ambiguous()),
        },
    };
    let types = types.map(|ty| {
        if ty == CqlType::Counter {
            CqlType::BigInt
        } else {
            ty
        }
    });
    for_types(operator, types.clone()).ok_or_else(|| {
        let [left_type, right_type] = &types;
        let shown = |argument: &Argument<'_>, ty: &CqlType| match argument {
            Argument::Term(_) => argument.to_string(),
            Argument::Typed(..) => ty.to_string(),
        };
        Error::Invalid(format!(
            "the '{symbol}' operation is not supported between {} and {}",
            shown(left, left_type),
            shown(right, right_type)
        ))
    })
}

/// The function of `-argument`.
pub(super) fn make_negation(
    argument: &Argument<'_>,
    receiver: Option<&CqlType>,
    context: &PlanContext<'_>,
) -> Result<ScalarFunction, Error> {
    let ty = argument
        .known_type(context)
        .or(receiver.cloned().filter(CqlType::is_numeric));
    let ty = ty.ok_or_else(|| Error::invalid("Ambiguous negation: use type casts to disambiguate"))?;
    if !ty.is_numeric() {
        return Err(Error::Invalid(format!(
            "Invalid call to function system._negate, none of its type signatures match: {argument} is of type {ty}"
        )));
    }
    let result = ty.clone();
    Ok(ScalarFunction::of_value(
        "_negate",
        ty.clone(),
        ty,
        move |value| {
            let Some(number) = Number::decode(&result, value)? else {
                return Ok(Some(value.clone()));
            };
            negate(number).encode(&result).map(Some)
        },
    ))
}

fn negate(number: Number) -> Number {
    match number {
        Number::Integer(value) => Number::Integer(value.wrapping_neg()),
        Number::Big(value) => Number::Big(-value),
        Number::Float(value) => Number::Float(-value),
        Number::Double(value) => Number::Double(-value),
        Number::Decimal(value) => Number::Decimal(Decimal {
            unscaled: -value.unscaled,
            scale: value.scale,
        }),
    }
}

fn for_types(operator: ArithmeticOperator, types: [CqlType; 2]) -> Option<ScalarFunction> {
    use ArithmeticOperator as O;
    use CqlType as T;
    let name = OPERATORS.iter().find(|(known, _)| *known == operator)?.1;
    match (operator, &types) {
        (_, [left, right]) if left.is_numeric() && right.is_numeric() => {
            Some(on_numbers(operator, name, types))
        }
        (O::Add, [T::Text | T::Ascii, T::Text | T::Ascii]) => {
            let result = if types.contains(&T::Text) {
                T::Text
            } else {
                T::Ascii
            };
            Some(strict(name, types, result, |left, right| {
                Ok(Some([left, right].concat().into()))
            }))
        }
        (O::Add | O::Subtract, [T::Timestamp | T::Date, T::Duration]) => {
            let ty = types[0].clone();
            let result = ty.clone();
            Some(strict(name, types, result, move |time, duration| {
                shift(&ty, time, duration, operator == O::Subtract)
            }))
        }
        _ => None,
    }
}

/// A function of two values that gives null for null.
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

fn on_numbers(operator: ArithmeticOperator, name: &'static str, types: [CqlType; 2]) -> ScalarFunction {
    let result = number_type(&types);
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
        let computed = computed.map_err(|what| Error::FunctionFailure {
            keyspace: "system".to_owned(),
            function: name.to_owned(),
            argument_types: types.iter().map(CqlType::to_string).collect(),
            message: format!(
                "the operation '{left_type} {} {right_type}' failed: {what}",
                operator.symbol()
            ),
        })?;
        computed.encode(&ty).map(Some)
    })
}

/// The type that two numbers are computed in: floating if one is, and as wide as the wider.
fn number_type(types: &[CqlType; 2]) -> CqlType {
    let size = |ty: &CqlType| match ty {
        CqlType::TinyInt => 1,
        CqlType::SmallInt => 2,
        CqlType::Int | CqlType::Float => 4,
        CqlType::BigInt | CqlType::Counter | CqlType::Double => 8,
        _ => usize::MAX,
    };
    let is_floating = |ty: &CqlType| matches!(ty, CqlType::Float | CqlType::Double | CqlType::Decimal);
    match (types.iter().any(is_floating), types.iter().map(size).max()) {
        (true, Some(4)) => CqlType::Float,
        (true, Some(8)) => CqlType::Double,
        (true, _) => CqlType::Decimal,
        (false, Some(1)) => CqlType::TinyInt,
        (false, Some(2)) => CqlType::SmallInt,
        (false, Some(4)) => CqlType::Int,
        (false, Some(8)) => CqlType::BigInt,
        (false, _) => CqlType::Varint,
    }
}

fn compute(
    operator: ArithmeticOperator,
    left: &Number,
    right: &Number,
    ty: &CqlType,
) -> Result<Number, String> {
    let text = |error: Error| error.to_string();
    match ty {
        CqlType::Float => Ok(Number::Float(on_floats(
            operator,
            left.to_float(),
            right.to_float(),
        ))),
        CqlType::Double => Ok(Number::Double(on_floats(
            operator,
            left.to_double(),
            right.to_double(),
        ))),
        CqlType::Decimal => on_decimals(
            operator,
            left.to_decimal().map_err(text)?,
            right.to_decimal().map_err(text)?,
        )
        .map(Number::Decimal),
        CqlType::Varint => on_bigs(
            operator,
            &left.to_big().map_err(text)?,
            &right.to_big().map_err(text)?,
        )
        .map(Number::Big),
        _ => on_integers(
            operator,
            left.to_integer().map_err(text)?,
            right.to_integer().map_err(text)?,
        )
        .map(Number::Integer),
    }
}

fn on_floats<T>(operator: ArithmeticOperator, left: T, right: T) -> T
where
    T: std::ops::Add<Output = T>
        + std::ops::Sub<Output = T>
        + std::ops::Mul<Output = T>
        + std::ops::Div<Output = T>
        + std::ops::Rem<Output = T>,
{
    match operator {
        ArithmeticOperator::Add => left + right,
        ArithmeticOperator::Subtract => left - right,
        ArithmeticOperator::Multiply => left * right,
        ArithmeticOperator::Divide => left / right,
        ArithmeticOperator::Modulo => left % right,
    }
}

/// Compat: overflow wraps.
fn on_integers(operator: ArithmeticOperator, left: i64, right: i64) -> Result<i64, String> {
    match operator {
        ArithmeticOperator::Add => Ok(left.wrapping_add(right)),
        ArithmeticOperator::Subtract => Ok(left.wrapping_sub(right)),
        ArithmeticOperator::Multiply => Ok(left.wrapping_mul(right)),
        _ if right == 0 => Err("/ by zero".to_owned()),
        ArithmeticOperator::Divide => Ok(left.wrapping_div(right)),
        ArithmeticOperator::Modulo => Ok(left.wrapping_rem(right)),
    }
}

fn on_bigs(operator: ArithmeticOperator, left: &BigInt, right: &BigInt) -> Result<BigInt, String> {
    match operator {
        ArithmeticOperator::Add => Ok(left + right),
        ArithmeticOperator::Subtract => Ok(left - right),
        ArithmeticOperator::Multiply => Ok(left * right),
        _ if right.sign() == Sign::NoSign => Err("BigInteger divide by zero".to_owned()),
        ArithmeticOperator::Divide => Ok(left / right),
        ArithmeticOperator::Modulo => Ok(left % right),
    }
}

/// Decimals have at least this many digits after a division, at most [`SCALE_MAX`] (`DecimalType`).
const QUOTIENT_DIGITS_MIN: i64 = 32;
const SCALE_MAX: i64 = 1000;

fn on_decimals(operator: ArithmeticOperator, left: Decimal, right: Decimal) -> Result<Decimal, String> {
    match operator {
        ArithmeticOperator::Multiply => Ok(Decimal {
            unscaled: left.unscaled * right.unscaled,
            scale: left
                .scale
                .checked_add(right.scale)
                .ok_or_else(|| "Overflow of the scale".to_owned())?,
        }),
        ArithmeticOperator::Divide => divide(&left, &right),
        _ => {
            let scale = left.scale.max(right.scale);
            let (left, right) = (at_scale(&left, scale)?, at_scale(&right, scale)?);
            let unscaled = match operator {
                ArithmeticOperator::Add => left + right,
                ArithmeticOperator::Subtract => left - right,
                _ if right.sign() == Sign::NoSign => return Err("Division by zero".to_owned()),
                _ => left % right,
            };
            Ok(Decimal { unscaled, scale })
        }
    }
}

/// The unscaled value at a scale that is not below the number's own.
fn at_scale(value: &Decimal, scale: i32) -> Result<BigInt, String> {
    let shift = i64::from(scale) - i64::from(value.scale);
    Ok(&value.unscaled * power(shift)?)
}

fn power(exponent: i64) -> Result<BigInt, String> {
    let exponent = u32::try_from(exponent).unwrap_or(u32::MAX);
    power_of_ten(exponent).map_err(|error| error.to_string())
}

fn divide(left: &Decimal, right: &Decimal) -> Result<Decimal, String> {
    if right.unscaled.sign() == Sign::NoSign {
        return Err("Division by zero".to_owned());
    }
    let digits = |value: &Decimal| i64::try_from(value.unscaled.magnitude().to_string().len()).unwrap_or(0);
    let whole_digits = (digits(left) - i64::from(left.scale)) - (digits(right) - i64::from(right.scale));
    let scale = (QUOTIENT_DIGITS_MIN - whole_digits)
        .max(i64::from(left.scale))
        .max(i64::from(right.scale))
        .clamp(0, SCALE_MAX);
    // left / right at `scale`: the numerator gets what the division takes away.
    let shift = scale - i64::from(left.scale) + i64::from(right.scale);
    let (numerator, denominator) = if shift >= 0 {
        (&left.unscaled * power(shift)?, right.unscaled.clone())
    } else {
        (left.unscaled.clone(), &right.unscaled * power(-shift)?)
    };
    let scale = i32::try_from(scale).map_err(|_| "Overflow of the scale".to_owned())?;
    Ok(strip_zeros(Decimal {
        unscaled: half_up(&numerator, &denominator),
        scale,
    }))
}

/// The quotient, rounded half away from zero.
fn half_up(numerator: &BigInt, denominator: &BigInt) -> BigInt {
    let quotient = numerator / denominator;
    let twice: BigInt = (numerator % denominator) * 2;
    if twice.magnitude() < denominator.magnitude() {
        quotient
    } else if (numerator.sign() == Sign::Minus) == (denominator.sign() == Sign::Minus) {
        quotient + 1
    } else {
        quotient - 1
    }
}

/// As `BigDecimal.stripTrailingZeros`.
fn strip_zeros(mut value: Decimal) -> Decimal {
    if value.unscaled.sign() == Sign::NoSign {
        value.scale = 0;
        return value;
    }
    let ten = BigInt::from(10);
    while (&value.unscaled % &ten).sign() == Sign::NoSign {
        value.unscaled /= &ten;
        value.scale -= 1;
    }
    value
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
    let sign = if backwards { -1 } else { 1 };
    let millis = super::time::add_months(millis, i64::from(duration.months()) * sign)
        .saturating_add(i64::from(duration.days()) * sign * super::time::MILLIS_PER_DAY)
        .saturating_add(duration.nanos() / 1_000_000 * sign);
    Ok(Some(match ty {
        CqlType::Date => super::time::date_of_millis(millis),
        _ => super::time::millis_bytes(millis),
    }))
}

/// The sum of numbers in the type that they have, or their average: of integers over a sum that cannot overflow, of
/// decimals half even at the sum's scale, as the aggregates of Cassandra do.
pub(super) fn total(numbers: &[Number], ty: &CqlType, is_average: bool) -> Result<Number, Error> {
    let wide = match ty {
        CqlType::Float | CqlType::Double => CqlType::Double,
        CqlType::Decimal => CqlType::Decimal,
        _ => CqlType::Varint,
    };
    let mut sum = Number::Integer(0);
    for number in numbers {
        sum = compute(ArithmeticOperator::Add, &sum, number, &wide).map_err(Error::Invalid)?;
    }
    if !is_average || numbers.is_empty() {
        return Ok(sum);
    }
    if let Number::Decimal(sum) = sum {
        let unscaled = half_even(&sum.unscaled, &BigInt::from(numbers.len()));
        return Ok(Number::Decimal(Decimal { unscaled, ..sum }));
    }
    let count = Number::Integer(i64::try_from(numbers.len()).unwrap_or(i64::MAX));
    compute(ArithmeticOperator::Divide, &sum, &count, &wide).map_err(Error::Invalid)
}

/// The quotient by a positive number, rounded half to even.
fn half_even(numerator: &BigInt, denominator: &BigInt) -> BigInt {
    let rounded = half_up(numerator, denominator);
    let twice: BigInt = (numerator % denominator) * 2;
    let is_tie = twice.magnitude() == denominator.magnitude();
    if is_tie && (&rounded % BigInt::from(2)).sign() != Sign::NoSign {
        numerator / denominator
    } else {
        rounded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimals(operator: ArithmeticOperator, left: &str, right: &str) -> String {
        match on_decimals(operator, left.parse().unwrap(), right.parse().unwrap()) {
            Ok(value) => value.to_string(),
            Err(what) => what,
        }
    }

    #[test]
    fn decimals_compute_exactly_and_divide_to_many_digits() {
        use ArithmeticOperator::{Add, Divide, Modulo, Multiply};
        assert_eq!(decimals(Add, "1.1", "2.22"), "3.32");
        assert_eq!(decimals(Multiply, "1.5", "0.2"), "0.30");
        assert_eq!(decimals(Divide, "1", "4"), "0.25");
        assert_eq!(decimals(Divide, "10", "3"), "3.3333333333333333333333333333333");
        assert_eq!(decimals(Divide, "-1", "8"), "-0.125");
        assert_eq!(decimals(Divide, "1", "0"), "Division by zero");
        assert_eq!(decimals(Modulo, "7.5", "2"), "1.5");
    }

    #[test]
    fn the_wider_type_is_computed_in() {
        let of = |left, right| number_type(&[left, right]);
        assert_eq!(of(CqlType::Int, CqlType::BigInt), CqlType::BigInt);
        assert_eq!(of(CqlType::BigInt, CqlType::Float), CqlType::Double);
        assert_eq!(of(CqlType::Varint, CqlType::Double), CqlType::Decimal);
        assert_eq!(of(CqlType::TinyInt, CqlType::SmallInt), CqlType::SmallInt);
    }
}
