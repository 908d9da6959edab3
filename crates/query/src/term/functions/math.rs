//! `abs`, `exp`, `log`, `log10`, `round`: the result has the argument's type (`MathFcts`).

use ilion_types::Decimal;
use num_bigint::{BigInt, Sign};

use super::arithmetic::number_types;
use super::number::power_of_ten;
use super::{Number, ScalarFunction};
use crate::Error;

/// The functions of this name.
pub(super) fn candidates(name: &str, out: &mut Vec<ScalarFunction>) {
    let compute: fn(&Number) -> Result<Number, Error> = match name {
        "abs" => |number| Ok(abs(number)),
        "exp" => |number| Ok(Number::Double(number.to_double().exp())),
        "log" => |number| Ok(Number::Double(number.to_double().ln())),
        "log10" => |number| Ok(Number::Double(number.to_double().log10())),
        "round" => round,
        _ => return,
    };
    for ty in number_types().iter().cloned() {
        let result = ty.clone();
        out.push(ScalarFunction::of_value(name, ty.clone(), ty, move |value| {
            let number = Number::decode(&result, value)?;
            number.map(|number| compute(&number)?.encode(&result)).transpose()
        }));
    }
}

fn abs(number: &Number) -> Number {
    match number {
        Number::Integer(value) => Number::Integer(value.wrapping_abs()),
        Number::Big(value) => Number::Big(BigInt::from(value.magnitude().clone())),
        Number::Float(value) => Number::Float(value.abs()),
        Number::Double(value) => Number::Double(value.abs()),
        Number::Decimal(value) => Number::Decimal(Decimal {
            unscaled: BigInt::from(value.unscaled.magnitude().clone()),
            scale: value.scale,
        }),
    }
}

/// Compat: a float is rounded as by `Math.round`: halves go up, and the result saturates. A decimal's halves go away from zero.
fn round(number: &Number) -> Result<Number, Error> {
    #[expect(clippy::cast_possible_truncation, reason = "Math.round saturates")]
    Ok(match number {
        Number::Float(value) => Number::Integer(i64::from((value + 0.5).floor() as i32)),
        Number::Double(value) => Number::Integer((value + 0.5).floor() as i64),
        Number::Decimal(value) if value.scale > 0 => {
            if u64::from(value.scale.unsigned_abs()) > value.unscaled.bits() + 1 {
                return Ok(Number::Integer(0));
            }
            let power = power_of_ten(value.scale.unsigned_abs())?;
            let half = &power / 2;
            let shifted = match value.unscaled.sign() {
                Sign::Minus => &value.unscaled - half,
                _ => &value.unscaled + half,
            };
            Number::Big(shifted / power)
        }
        other => other.clone(),
    })
}
