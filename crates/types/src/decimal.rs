//! Decimals: `scale: i32`, then the unscaled value as a varint. The value is `unscaled * 10^-scale`.
//!
//! The scale is part of the bytes (1.0 and 1.00 differ), but not of the order (they compare equal). A scale can be huge, so
//! no code here computes `10^scale` unless the result is no longer than the operands.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use num_bigint::{BigInt, Sign};
use num_traits::{Signed, Zero};

use crate::Error;

/// A decimal with its scale, as Java's `BigDecimal`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    /// The digits.
    pub unscaled: BigInt,
    /// Number of digits after the point; if negative, the number of zeros after the digits.
    pub scale: i32,
}

/// Maximum number of digits of a literal. Compat: Cassandra has no limit; this one avoids quadratic time.
const DIGITS_MAX: usize = 100_000;

impl Decimal {
    /// Decodes the serialized form.
    ///
    /// # Errors
    /// There are fewer than four bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        match bytes.split_first_chunk::<4>() {
            Some((scale, unscaled)) => Ok(Self {
                unscaled: BigInt::from_signed_bytes_be(unscaled),
                scale: i32::from_be_bytes(*scale),
            }),
            None => Err(Error::bytes(format!(
                "Expected 0 or at least 4 bytes ({})",
                bytes.len()
            ))),
        }
    }

    /// Appends the serialized form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.scale.to_be_bytes());
        out.extend_from_slice(&self.unscaled.to_signed_bytes_be());
    }
}

/// Parses `[sign] digits [. digits] [e exponent]`, as `new BigDecimal(text)` does.
impl FromStr for Decimal {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parse(text).ok_or_else(|| Error::literal(format!("unable to make BigDecimal from '{text}'")))
    }
}

fn parse(text: &str) -> Option<Decimal> {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (negative, digits) = match mantissa.as_bytes().first()? {
        b'-' => (true, &mantissa[1..]),
        b'+' => (false, &mantissa[1..]),
        _ => (false, mantissa),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || digits.len() > DIGITS_MAX {
        return None;
    }
    let unscaled = BigInt::parse_bytes(digits.as_bytes(), 10)?;
    let scale = i64::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    Some(Decimal {
        unscaled: if negative { -unscaled } else { unscaled },
        scale: i32::try_from(scale).ok()?,
    })
}

/// Prints as `BigDecimal.toString`: plain if the scale is not negative and there are few leading zeros, otherwise scientific.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.unscaled.magnitude().to_string();
        if self.unscaled.sign() == Sign::Minus {
            f.write_str("-")?;
        }
        if self.scale == 0 {
            return f.write_str(&digits);
        }
        let scale = i64::from(self.scale);
        #[expect(clippy::cast_possible_wrap, reason = "a length of text in memory")]
        let adjusted = digits.len() as i64 - 1 - scale;
        if scale > 0 && adjusted >= -6 {
            return write_plain(f, &digits, scale.unsigned_abs());
        }
        let (first, rest) = digits.split_at(1);
        f.write_str(first)?;
        if !rest.is_empty() {
            write!(f, ".{rest}")?;
        }
        if adjusted == 0 {
            return Ok(());
        }
        write!(f, "E{adjusted:+}")
    }
}

fn write_plain(f: &mut fmt::Formatter<'_>, digits: &str, scale: u64) -> fmt::Result {
    // Requires: at most six leading zeros, so `scale` is near the number of digits.
    let scale = usize::try_from(scale).unwrap_or(usize::MAX);
    match digits.len().checked_sub(scale) {
        None | Some(0) => write!(f, "0.{digits:0>scale$}"),
        Some(whole) => write!(f, "{}.{}", &digits[..whole], &digits[whole..]),
    }
}

/// Compares serialized decimals by number; empty ones are first.
pub(crate) fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let (Some((scale_a, digits_a)), Some((scale_b, digits_b))) =
        (a.split_first_chunk::<4>(), b.split_first_chunk::<4>())
    else {
        return (a.len() >= 4).cmp(&(b.len() >= 4)).then_with(|| a.cmp(b));
    };
    let (scale_a, scale_b) = (i32::from_be_bytes(*scale_a), i32::from_be_bytes(*scale_b));
    compare_values(
        &BigInt::from_signed_bytes_be(digits_a),
        scale_a,
        &BigInt::from_signed_bytes_be(digits_b),
        scale_b,
    )
}

fn compare_values(a: &BigInt, scale_a: i32, b: &BigInt, scale_b: i32) -> Ordering {
    if scale_a == scale_b {
        return a.cmp(b);
    }
    if a.sign() != b.sign() || a.is_zero() {
        return a.sign().cmp(&b.sign());
    }
    let magnitudes = compare_magnitudes(&a.abs(), scale_a, &b.abs(), scale_b);
    if a.is_negative() {
        magnitudes.reverse()
    } else {
        magnitudes
    }
}

/// Compares positive numbers. They are brought to the same scale only if their orders of magnitude overlap: then the factor has no
/// more digits than the longer number.
fn compare_magnitudes(a: &BigInt, scale_a: i32, b: &BigInt, scale_b: i32) -> Ordering {
    let (low_a, high_a) = order_of_magnitude(a, scale_a);
    let (low_b, high_b) = order_of_magnitude(b, scale_b);
    if high_a < low_b {
        return Ordering::Less;
    }
    if high_b < low_a {
        return Ordering::Greater;
    }
    let shift = i64::from(scale_b) - i64::from(scale_a);
    let factor = |shift: i64| BigInt::from(10).pow(u32::try_from(shift.unsigned_abs()).unwrap_or(u32::MAX));
    if shift >= 0 {
        (a * factor(shift)).cmp(b)
    } else {
        a.cmp(&(b * factor(shift)))
    }
}

/// Bounds of the decimal exponent of the first digit, from the number of bits.
fn order_of_magnitude(unscaled: &BigInt, scale: i32) -> (i64, i64) {
    let bits = i64::try_from(unscaled.bits()).unwrap_or(i64::MAX / 2);
    // log10(2) lies between 0.30102 and 0.30103; i128 keeps the product exact.
    let low = i128::from(bits - 1) * 30102 / 100_000;
    let high = i128::from(bits) * 30103 / 100_000;
    let scale = i128::from(scale);
    let clamp = |value: i128| i64::try_from(value).unwrap_or(i64::MAX);
    (clamp(low - scale), clamp(high - scale))
}
