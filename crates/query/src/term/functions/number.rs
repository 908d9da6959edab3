//! Numbers of any type, and how they become numbers of another.
//!
//! Compat: conversions are Java's: integers keep their low bits, floats saturate, decimals drop their fraction.

use bytes::Bytes;
use ilion_types::{CqlType, Decimal, decode_varint, encode_varint};
use num_bigint::{BigInt, Sign};

use crate::Error;

/// From this number on, `Double.toString` writes an exponent.
const SHORT_DOUBLE_END: u64 = 10_000_000;

/// A number in the widest type of its kind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Number {
    /// tinyint to bigint, counter.
    Integer(i64),
    /// varint.
    Big(BigInt),
    /// float.
    Float(f32),
    /// double.
    Double(f64),
    /// decimal.
    Decimal(Decimal),
}

/// Largest exponent of ten that is computed; it bounds the memory of a result.
const SHIFT_MAX: u32 = 10_000;

impl Number {
    /// Decodes a number; `None` for an empty value.
    ///
    /// # Errors
    /// The bytes are not a number of this type.
    pub(crate) fn decode(ty: &CqlType, bytes: &[u8]) -> Result<Option<Self>, Error> {
        if bytes.is_empty() {
            return Ok(None);
        }
        ty.validate(bytes)?;
        Ok(match ty {
            CqlType::TinyInt | CqlType::SmallInt | CqlType::Int | CqlType::BigInt | CqlType::Counter => {
                Some(Self::Integer(low_bits(&decode_varint(bytes))))
            }
            CqlType::Varint => Some(Self::Big(decode_varint(bytes))),
            CqlType::Float => bytes.try_into().ok().map(f32::from_be_bytes).map(Self::Float),
            CqlType::Double => bytes.try_into().ok().map(f64::from_be_bytes).map(Self::Double),
            CqlType::Decimal => Some(Self::Decimal(Decimal::decode(bytes)?)),
            _ => None,
        })
    }

    /// Encodes the number as another type.
    ///
    /// # Errors
    /// The type does not have the value: it is not finite, or too long.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "Compat: a narrower integer keeps the low bits"
    )]
    pub(crate) fn encode(&self, ty: &CqlType) -> Result<Bytes, Error> {
        let bytes = match ty {
            CqlType::TinyInt => (self.to_narrow()? as i8).to_be_bytes().to_vec(),
            CqlType::SmallInt => (self.to_narrow()? as i16).to_be_bytes().to_vec(),
            CqlType::Int => (self.to_narrow()? as i32).to_be_bytes().to_vec(),
            CqlType::BigInt | CqlType::Counter => self.to_integer()?.to_be_bytes().to_vec(),
            CqlType::Varint => encode_varint(&self.to_big()?),
            CqlType::Float => self.to_float().to_be_bytes().to_vec(),
            CqlType::Double => self.to_double().to_be_bytes().to_vec(),
            _ => {
                let mut out = Vec::new();
                self.to_decimal()?.encode(&mut out);
                out
            }
        };
        Ok(bytes.into())
    }

    /// The negated number; integers wrap.
    pub(super) fn negated(self) -> Self {
        match self {
            Self::Integer(value) => Self::Integer(value.wrapping_neg()),
            Self::Big(value) => Self::Big(-value),
            Self::Float(value) => Self::Float(-value),
            Self::Double(value) => Self::Double(-value),
            Self::Decimal(value) => Self::Decimal(Decimal {
                unscaled: -value.unscaled,
                scale: value.scale,
            }),
        }
    }

    /// Java's `intValue`, from which narrower integers are cut; floats saturate at 32 bits.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float that is too large saturates"
    )]
    fn to_narrow(&self) -> Result<i64, Error> {
        match self {
            Self::Float(value) => Ok(i64::from(*value as i32)),
            Self::Double(value) => Ok(i64::from(*value as i32)),
            other => other.to_integer(),
        }
    }

    /// The number as 64 bits.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float that is too large saturates"
    )]
    pub(super) fn to_integer(&self) -> Result<i64, Error> {
        Ok(match self {
            Self::Integer(value) => *value,
            Self::Float(value) => *value as i64,
            Self::Double(value) => *value as i64,
            Self::Big(value) => low_bits(value),
            Self::Decimal(value) => low_bits(&whole(value)?),
        })
    }

    pub(super) fn to_big(&self) -> Result<BigInt, Error> {
        match self {
            Self::Big(value) => Ok(value.clone()),
            Self::Decimal(value) => whole(value),
            other => other.to_integer().map(BigInt::from),
        }
    }

    pub(super) fn to_float(&self) -> f32 {
        match self {
            Self::Float(value) => *value,
            #[expect(clippy::cast_precision_loss, reason = "the nearest float is meant")]
            Self::Integer(value) => *value as f32,
            #[expect(clippy::cast_possible_truncation, reason = "the nearest float is meant")]
            Self::Double(value) => *value as f32,
            other => other.to_string().parse().unwrap_or(f32::NAN),
        }
    }

    pub(super) fn to_double(&self) -> f64 {
        match self {
            Self::Double(value) => *value,
            Self::Float(value) => f64::from(*value),
            #[expect(clippy::cast_precision_loss, reason = "the nearest double is meant")]
            Self::Integer(value) => *value as f64,
            other => other.to_string().parse().unwrap_or(f64::NAN),
        }
    }

    /// The number as an operand of an operation with a decimal. Compat: Cassandra converts an integer through the text of a double, so
    /// that `2` becomes `2.0`. Unlike in Cassandra, a large integer keeps its exact value.
    pub(super) fn to_decimal_operand(&self) -> Result<Decimal, Error> {
        match self {
            Self::Integer(value) if value.unsigned_abs() < SHORT_DOUBLE_END => Ok(Decimal {
                unscaled: BigInt::from(*value * 10),
                scale: 1,
            }),
            other => other.to_decimal(),
        }
    }

    pub(super) fn to_decimal(&self) -> Result<Decimal, Error> {
        match self {
            Self::Decimal(value) => Ok(value.clone()),
            Self::Integer(value) => Ok(Decimal {
                unscaled: BigInt::from(*value),
                scale: 0,
            }),
            Self::Big(value) => Ok(Decimal {
                unscaled: value.clone(),
                scale: 0,
            }),
            // Compat: `BigDecimal.valueOf(double)` converts through the text of the double.
            Self::Float(_) | Self::Double(_) => {
                let text = match self {
                    Self::Float(value) => CqlType::Float.print_plain(&value.to_be_bytes())?,
                    _ => CqlType::Double.print_plain(&self.to_double().to_be_bytes())?,
                };
                let what = match text.as_str() {
                    "NaN" => "A NaN",
                    _ => "An infinite number",
                };
                text.parse()
                    .map_err(|_| Error::Invalid(format!("{what} cannot be converted into a decimal")))
            }
        }
    }
}

/// Prints a number as `toString` of its Java type does.
impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(f),
            Self::Big(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
            Self::Double(value) => value.fmt(f),
            Self::Decimal(value) => value.fmt(f),
        }
    }
}

/// The low 64 bits of two's complement.
fn low_bits(value: &BigInt) -> i64 {
    let bytes = value.to_signed_bytes_le();
    let sign = if value.sign() == Sign::Minus { 0xFF } else { 0 };
    let mut low = [sign; 8];
    for (to, from) in low.iter_mut().zip(&bytes) {
        *to = *from;
    }
    i64::from_le_bytes(low)
}

/// A decimal without its fraction.
fn whole(value: &Decimal) -> Result<BigInt, Error> {
    let factor = |digits: u32| power_of_ten(digits);
    if value.scale <= 0 {
        return Ok(&value.unscaled * factor(value.scale.unsigned_abs())?);
    }
    // A number has at most a third as many digits as bits.
    if u64::from(value.scale.unsigned_abs()) > value.unscaled.bits() {
        return Ok(BigInt::ZERO);
    }
    let mut whole = value.unscaled.clone();
    let mut left = value.scale.unsigned_abs();
    while left > 0 {
        let step = left.min(SHIFT_MAX);
        whole /= factor(step)?;
        left -= step;
    }
    Ok(whole)
}

/// Ten to a power that is within [`SHIFT_MAX`].
pub(super) fn power_of_ten(exponent: u32) -> Result<BigInt, Error> {
    if exponent > SHIFT_MAX {
        return Err(Error::invalid("a number has too many digits to be computed with"));
    }
    Ok(BigInt::from(10).pow(exponent))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn convert(from: &CqlType, text: &str, to: &CqlType) -> String {
        let bytes = from.parse_plain(text).unwrap();
        let number = Number::decode(from, &bytes).unwrap().unwrap();
        to.print_plain(&number.encode(to).unwrap()).unwrap()
    }

    #[test]
    fn numbers_convert_as_in_java() {
        assert_eq!(convert(&CqlType::Int, "300", &CqlType::TinyInt), "44");
        assert_eq!(convert(&CqlType::Double, "1e300", &CqlType::Int), "2147483647");
        assert_eq!(convert(&CqlType::Double, "1e300", &CqlType::TinyInt), "-1");
        assert_eq!(convert(&CqlType::Double, "-2.9", &CqlType::BigInt), "-2");
        assert_eq!(convert(&CqlType::Decimal, "-12.99", &CqlType::Varint), "-12");
        assert_eq!(convert(&CqlType::Decimal, "12e3", &CqlType::Int), "12000");
        assert_eq!(convert(&CqlType::Double, "1.1", &CqlType::Decimal), "1.1");
        assert_eq!(convert(&CqlType::Varint, "-1", &CqlType::BigInt), "-1");
        assert_eq!(
            convert(&CqlType::Varint, "18446744073709551617", &CqlType::BigInt),
            "1"
        );
        assert_eq!(convert(&CqlType::BigInt, "7", &CqlType::Double), "7.0");
    }

    #[test]
    fn huge_scales_are_refused_not_computed() {
        let huge = Number::Decimal("1e100000".parse().unwrap());
        assert!(huge.encode(&CqlType::Int).is_err());
        let tiny = Number::Decimal("1e-2000000000".parse().unwrap());
        assert_eq!(tiny.to_integer().unwrap(), 0);
    }
}
