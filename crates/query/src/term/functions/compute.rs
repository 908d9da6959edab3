//! Arithmetic on two numbers, as in Java for each type.

use ilion_cql::ast::ArithmeticOperator;
use ilion_types::{CqlType, Decimal};
use num_bigint::{BigInt, Sign};

use super::Number;
use super::number::power_of_ten;
use crate::Error;

/// The type in which two numbers are computed: floating if one is, and as wide as the wider one.
pub(super) fn number_type(types: &[CqlType; 2]) -> CqlType {
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

/// The result, in type `ty`.
pub(super) fn compute(
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
            left.to_decimal_operand().map_err(text)?,
            right.to_decimal_operand().map_err(text)?,
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

/// A division gives at least this many digits, and at most [`SCALE_MAX`] (`DecimalType`).
const QUOTIENT_DIGITS_MIN: i64 = 32;
const SCALE_MAX: i64 = 1000;
/// Compat: Java's message.
const BY_ZERO: &str = "BigInteger divide by zero";

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
        return Err(BY_ZERO.to_owned());
    }
    let digits = |value: &Decimal| i64::try_from(value.unscaled.magnitude().to_string().len()).unwrap_or(0);
    let whole_digits = (digits(left) - i64::from(left.scale)) - (digits(right) - i64::from(right.scale));
    let scale = (QUOTIENT_DIGITS_MIN - whole_digits)
        .max(i64::from(left.scale))
        .max(i64::from(right.scale))
        .max(QUOTIENT_DIGITS_MIN)
        .clamp(0, SCALE_MAX);
    // left / right at `scale`: the numerator is scaled up before the division.
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
        assert_eq!(decimals(Divide, "10", "3"), "3.33333333333333333333333333333333");
        assert_eq!(decimals(Divide, "-1", "8"), "-0.125");
        assert_eq!(decimals(Divide, "1", "0"), BY_ZERO);
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
