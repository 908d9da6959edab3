//! Native aggregates over values: `count`, `min`, `max`, `sum` and `avg`, of rows and of the elements of a collection.
//!
//! Compat: `AggregateFcts` of Cassandra 5.0. Nulls are not counted. Sums of integers wrap in their own type. Averages are
//! computed from a sum that cannot overflow. The average of decimals moves by a rounded step for each value. Without values,
//! `min` and `max` are null, and all others are zero.

use std::cmp::Ordering;

use bytes::Bytes;
use ilion_types::{CqlType, Decimal, decode_varint, encode_varint};
use num_bigint::{BigInt, Sign};

use crate::Error;

/// The kind of a native aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AggregateKind {
    Count,
    Min,
    Max,
    Sum,
    Avg,
}

impl AggregateKind {
    /// The aggregate of this name; `None` if no native aggregate has it.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "count" => Self::Count,
            "min" => Self::Min,
            "max" => Self::Max,
            "sum" => Self::Sum,
            "avg" => Self::Avg,
            _ => return None,
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Min => "min",
            Self::Max => "max",
            Self::Sum => "sum",
            Self::Avg => "avg",
        }
    }

    /// The error message for a number of arguments other than one.
    pub fn wrong_count(self, count: usize) -> String {
        match self {
            Self::Count => {
                format!(
                    "Invalid number of arguments in call to function system.count: 1 required but {count} provided"
                )
            }
            Self::Min | Self::Max => format!(
                "Invalid number of arguments for function system.{}(any)",
                self.name()
            ),
            Self::Sum | Self::Avg => self.no_signature(),
        }
    }

    /// The error message for an argument that is not a number.
    pub fn no_signature(self) -> String {
        const SUM: [&str; 9] = [
            "tinyint", "double", "decimal", "bigint", "float", "smallint", "counter", "varint", "int",
        ];
        const AVG: [&str; 9] = [
            "int", "counter", "tinyint", "bigint", "varint", "smallint", "double", "decimal", "float",
        ];
        let name = self.name();
        let types = if self == Self::Sum { SUM } else { AVG };
        let signatures = types.map(|ty| format!("system.{name} : ({ty}) -> {ty}"));
        format!(
            "Invalid call to function {name}, none of its type signatures match (known type signatures: {})",
            signatures.join(", ")
        )
    }

    /// The type of the result for values of `ty`; `None` if the aggregate does not take them.
    pub fn result_type(self, ty: &CqlType) -> Option<CqlType> {
        match self {
            Self::Count => Some(CqlType::BigInt),
            Self::Min | Self::Max => Some(ty.clone()),
            Self::Sum | Self::Avg => (ty.is_numeric() || *ty == CqlType::Counter).then(|| ty.clone()),
        }
    }
}

/// Several values to add at once.
pub(crate) trait Addends<'v> {
    /// The number of values.
    fn count(&self) -> usize;

    /// Calls `add` with each value, in order.
    fn each(&self, add: impl FnMut(&'v [u8]));
}

/// One value.
struct One<'v>(&'v [u8]);

impl<'v> Addends<'v> for One<'v> {
    fn count(&self) -> usize {
        1
    }

    #[inline]
    fn each(&self, mut add: impl FnMut(&'v [u8])) {
        add(self.0);
    }
}

/// The state of an aggregate while rows are added.
#[derive(Debug)]
pub(crate) struct Running<'t> {
    kind: AggregateKind,
    ty: &'t CqlType,
    count: i64,
    state: State,
}

#[derive(Debug)]
enum State {
    Count,
    Extreme(Option<Vec<u8>>),
    Integer(i128),
    Big(BigInt),
    /// Kahan's sum and its compensation; the uncompensated sum, which keeps infinity and NaN; the mean, which does not overflow.
    Float {
        sum: f64,
        lost: f64,
        simple: f64,
        mean: f64,
    },
    /// The sum or the mean.
    Decimal(Decimal),
}

impl<'t> Running<'t> {
    /// An aggregate without values so far; its values will be of type `ty`.
    pub fn new(kind: AggregateKind, ty: &'t CqlType) -> Self {
        let state = match (kind, ty) {
            (AggregateKind::Count, _) => State::Count,
            (AggregateKind::Min | AggregateKind::Max, _) => State::Extreme(None),
            (_, CqlType::Varint) => State::Big(BigInt::ZERO),
            (_, CqlType::Float | CqlType::Double) => State::Float {
                sum: 0.0,
                lost: 0.0,
                simple: 0.0,
                mean: 0.0,
            },
            (_, CqlType::Decimal) => State::Decimal(Decimal {
                unscaled: BigInt::ZERO,
                scale: 0,
            }),
            _ => State::Integer(0),
        };
        Self {
            kind,
            ty,
            count: 0,
            state,
        }
    }

    /// Counts rows without their values.
    pub fn add_rows(&mut self, count: usize) {
        self.count += signed(count);
    }

    /// Adds a value.
    ///
    /// # Errors
    /// The value is not a number, or has too many digits.
    pub fn add(&mut self, value: &[u8]) -> Result<(), Error> {
        self.add_each(One(value))
    }

    /// Adds several values. The result is the same as after [`Self::add`] of each.
    ///
    /// # Errors
    /// A value is not a number, or has too many digits. The state is then undefined.
    pub fn add_each<'v>(&mut self, values: impl Addends<'v>) -> Result<(), Error> {
        let (kind, ty, count) = (self.kind, self.ty, &mut self.count);
        match &mut self.state {
            State::Count => *count += signed(values.count()),
            State::Extreme(best) => {
                let ty = comparable(ty);
                let wanted = if kind == AggregateKind::Min {
                    Ordering::Less
                } else {
                    Ordering::Greater
                };
                let mut found: Option<&[u8]> = None;
                values.each(|value| {
                    if found.is_none_or(|found| ty.compare(value, found) == wanted) {
                        found = Some(value);
                    }
                });
                *count += signed(values.count());
                // A copy, since a slice would keep the source's whole buffer alive.
                if let Some(found) = found
                    && best
                        .as_deref()
                        .is_none_or(|best| ty.compare(found, best) == wanted)
                {
                    let best = best.get_or_insert_default();
                    best.clear();
                    best.extend_from_slice(found);
                }
            }
            // An empty value is not a number.
            State::Integer(sum) => values.each(|value| {
                if !value.is_empty() {
                    *sum += i128::from(integer(value));
                    *count += 1;
                }
            }),
            State::Big(sum) => values.each(|value| {
                if !value.is_empty() {
                    *sum += decode_varint(value);
                    *count += 1;
                }
            }),
            State::Float {
                sum,
                lost,
                simple,
                mean,
            } => values.each(|value| {
                if value.is_empty() {
                    return;
                }
                *count += 1;
                let number = float(ty, value);
                *simple += number;
                #[expect(clippy::cast_precision_loss, reason = "the nearest double is meant")]
                let count = *count as f64;
                *mean += number / count - *mean / count;
                let corrected = number - *lost;
                let next = *sum + corrected;
                *lost = (next - *sum) - corrected;
                *sum = next;
            }),
            State::Decimal(result) => {
                let mut added = Ok(());
                values.each(|value| {
                    if added.is_ok() && !value.is_empty() {
                        *count += 1;
                        added = add_decimal(kind, result, value, *count);
                    }
                });
                return added;
            }
        }
        Ok(())
    }

    /// The result.
    pub fn result(&self) -> Option<Bytes> {
        let is_average = self.kind == AggregateKind::Avg && self.count > 0;
        match &self.state {
            State::Count => Some(Bytes::copy_from_slice(&self.count.to_be_bytes())),
            State::Extreme(best) => best.as_deref().map(Bytes::copy_from_slice),
            State::Integer(sum) => {
                let value = if is_average {
                    sum / i128::from(self.count)
                } else {
                    *sum
                };
                Some(narrow(value, self.ty))
            }
            State::Big(sum) if is_average => Some(encode_varint(&(sum / BigInt::from(self.count))).into()),
            State::Big(sum) => Some(encode_varint(sum).into()),
            State::Float {
                sum, simple, mean, ..
            } => {
                let sum = if sum.is_nan() && simple.is_infinite() {
                    *simple
                } else {
                    *sum
                };
                #[expect(clippy::cast_precision_loss, reason = "the nearest double is meant")]
                let value = match is_average {
                    true if sum.is_infinite() && mean.is_finite() => *mean,
                    true => sum / self.count as f64,
                    false => sum,
                };
                Some(float_bytes(value, self.ty))
            }
            State::Decimal(result) => {
                let mut out = Vec::new();
                result.encode(&mut out);
                Some(out.into())
            }
        }
    }
}

/// The type to compare by: a counter compares as the number that clients see.
fn comparable(ty: &CqlType) -> &CqlType {
    match ty {
        CqlType::Counter => &CqlType::BigInt,
        ty => ty,
    }
}

/// Saturates, but no query reads that many rows.
fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A signed integer of 1, 2, 4 or 8 bytes.
#[inline]
fn integer(bytes: &[u8]) -> i64 {
    if let Ok(bytes) = bytes.try_into() {
        return i64::from_be_bytes(bytes);
    }
    if let Ok(bytes) = bytes.try_into() {
        return i64::from(i32::from_be_bytes(bytes));
    }
    let start = if bytes.first().is_some_and(|byte| *byte >= 0x80) {
        -1
    } else {
        0
    };
    bytes
        .iter()
        .take(8)
        .fold(start, |value: i64, byte| (value << 8) | i64::from(*byte))
}

/// The low bytes, in the width of the type.
fn narrow(value: i128, ty: &CqlType) -> Bytes {
    let len = match ty {
        CqlType::TinyInt => 1,
        CqlType::SmallInt => 2,
        CqlType::Int => 4,
        _ => 8,
    };
    Bytes::copy_from_slice(&value.to_be_bytes()[16 - len..])
}

fn float(ty: &CqlType, bytes: &[u8]) -> f64 {
    match (ty, bytes.first_chunk::<4>(), bytes.first_chunk::<8>()) {
        (CqlType::Float, Some(bytes), _) => f64::from(f32::from_be_bytes(*bytes)),
        (CqlType::Double, _, Some(bytes)) => f64::from_be_bytes(*bytes),
        _ => f64::NAN,
    }
}

fn float_bytes(value: f64, ty: &CqlType) -> Bytes {
    #[expect(clippy::cast_possible_truncation, reason = "the nearest float is meant")]
    let narrow = value as f32;
    match ty {
        CqlType::Float => Bytes::copy_from_slice(&narrow.to_be_bytes()),
        _ => Bytes::copy_from_slice(&value.to_be_bytes()),
    }
}

/// Largest difference between the scales of two added decimals. It bounds the memory of a sum.
const DIGITS_MAX: i64 = 10_000;

/// Adds a value to a sum, or moves a mean, which then is the mean of `count` numbers.
fn add_decimal(kind: AggregateKind, result: &mut Decimal, value: &[u8], count: i64) -> Result<(), Error> {
    let number = Decimal::decode(value)?;
    *result = match kind {
        AggregateKind::Avg => moved_mean(result, &number, count)?,
        _ => add_decimals(result, &number)?,
    };
    Ok(())
}

fn add_decimals(a: &Decimal, b: &Decimal) -> Result<Decimal, Error> {
    let scale = a.scale.max(b.scale);
    let at_scale = |number: &Decimal| {
        let digits = i64::from(scale) - i64::from(number.scale);
        match u32::try_from(digits) {
            Ok(digits) if i64::from(digits) <= DIGITS_MAX => {
                Ok(&number.unscaled * BigInt::from(10).pow(digits))
            }
            _ => Err(Error::invalid("a decimal has too many digits to be added")),
        }
    };

    Ok(Decimal {
        unscaled: at_scale(a)? + at_scale(b)?,
        scale,
    })
}

/// The mean of `count` numbers, given the mean of all but the last.
fn moved_mean(mean: &Decimal, number: &Decimal, count: i64) -> Result<Decimal, Error> {
    let negated = Decimal {
        unscaled: -&mean.unscaled,
        scale: mean.scale,
    };
    let mut step = add_decimals(number, &negated)?;
    step.unscaled = half_even(&step.unscaled, &BigInt::from(count));
    add_decimals(mean, &step)
}

/// The quotient by a positive number, rounded half to even.
fn half_even(numerator: &BigInt, denominator: &BigInt) -> BigInt {
    let quotient = numerator / denominator;
    let rest = numerator % denominator;
    let twice: BigInt = BigInt::from(rest.magnitude().clone()) * 2;
    let is_odd = (&quotient % BigInt::from(2)).sign() != Sign::NoSign;
    let rounds_away = match twice.cmp(denominator) {
        Ordering::Greater => true,
        Ordering::Equal => is_odd,
        Ordering::Less => false,
    };
    if !rounds_away {
        return quotient;
    }
    if numerator.sign() == Sign::Minus {
        quotient - 1
    } else {
        quotient + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aggregate(kind: AggregateKind, ty: CqlType, texts: &[&str]) -> Option<String> {
        let mut running = Running::new(kind, &ty);
        for text in texts {
            running.add(&ty.parse_plain(text).unwrap()).unwrap();
        }
        let result = kind.result_type(&ty).unwrap();
        running.result().map(|bytes| result.print_plain(&bytes).unwrap())
    }

    #[test]
    fn sums_wrap_and_averages_do_not() {
        let max = "2147483647";
        assert_eq!(
            aggregate(AggregateKind::Sum, CqlType::Int, &[max, "1"]).as_deref(),
            Some("-2147483648")
        );
        assert_eq!(
            aggregate(AggregateKind::Avg, CqlType::Int, &[max, "1"]).as_deref(),
            Some("1073741824")
        );
        assert_eq!(
            aggregate(AggregateKind::Avg, CqlType::Int, &["-1", "-2"]).as_deref(),
            Some("-1")
        );
        assert_eq!(
            aggregate(AggregateKind::Sum, CqlType::TinyInt, &["-100", "-100"]).as_deref(),
            Some("56")
        );
    }

    #[test]
    fn averages_of_decimals_move_by_rounded_steps() {
        let average = |texts: &[&str]| aggregate(AggregateKind::Avg, CqlType::Decimal, texts).unwrap();
        assert_eq!(average(&["1", "2"]), "1");
        assert_eq!(average(&["2", "3"]), "2");
        assert_eq!(average(&["1", "1", "3"]), "2");
        assert_eq!(average(&["0.1", "0.2"]), "0.1");
        assert_eq!(average(&["1.25", "1.5"]), "1.37");
        assert_eq!(average(&["-1.5", "-1"]), "-1.3");
        assert_eq!(average(&["1.25", "1.5", "1"]), "1.25");
    }

    #[test]
    fn nothing_sums_to_zero_and_has_no_extremes() {
        for kind in [AggregateKind::Sum, AggregateKind::Avg] {
            assert_eq!(aggregate(kind, CqlType::Int, &[]).as_deref(), Some("0"));
            assert_eq!(aggregate(kind, CqlType::Double, &[]).as_deref(), Some("0.0"));
        }
        assert_eq!(aggregate(AggregateKind::Min, CqlType::Int, &[]), None);
        assert_eq!(
            aggregate(AggregateKind::Max, CqlType::Text, &["b", "c", "a"]).as_deref(),
            Some("c")
        );
    }
}
