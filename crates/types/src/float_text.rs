//! Floating point numbers as Java prints and parses them.
//!
//! Prints the shortest digits that parse to the same number, but at least two; plain from 10^-3 to 10^7, otherwise as `1.5E10`. Of two
//! candidates that are equally short and near (502345.625 as a float), the even one is printed.

use std::fmt::{Display, LowerExp, Write as _};
use std::str::FromStr;

/// Appends `Double.toString(value)`.
pub(crate) fn print_double(value: f64, out: &mut String) {
    print(value, value.abs(), out);
}

/// Appends `Float.toString(value)`.
pub(crate) fn print_float(value: f32, out: &mut String) {
    print(value, f64::from(value.abs()), out);
}

fn print<F: Display + LowerExp + FromStr + PartialEq>(value: F, magnitude: f64, out: &mut String) {
    if magnitude.is_nan() {
        out.push_str("NaN");
    } else if magnitude.is_infinite() {
        let _ = write!(out, "{}", format!("{value}").replace("inf", "Infinity"));
    } else if magnitude == 0.0 || (1e-3..1e7).contains(&magnitude) {
        print_plain(&value, out);
    } else {
        print_scientific(&value, out);
    }
}

fn print_plain<F: Display + FromStr + PartialEq>(value: &F, out: &mut String) {
    let shortest = value.to_string();
    let Some((_, fraction)) = shortest.split_once('.') else {
        let _ = write!(out, "{shortest}.0");
        return;
    };
    let even = format!("{value:.*}", fraction.len());
    out.push_str(if even.parse().is_ok_and(|read: F| read == *value) {
        &even
    } else {
        &shortest
    });
}

fn print_scientific<F: LowerExp + FromStr + PartialEq>(value: &F, out: &mut String) {
    let shortest = format!("{value:e}");
    let fraction = shortest
        .split_once('.')
        .map_or(0, |(_, rest)| rest.find('e').unwrap_or(0));
    // Java prefers the closest two digits to a single one (4.9E-324, not 5E-324).
    let even = format!("{value:.*e}", fraction.max(1));
    let digits = if fraction == 0 || even.parse().is_ok_and(|read: F| read == *value) {
        even
    } else {
        shortest
    };
    let _ = write!(out, "{}", digits.replace('e', "E"));
}

/// Parses a number like `Double.parseDouble`, but only the forms that CQL has.
pub(crate) fn parse_double(text: &str) -> Option<f64> {
    match text {
        "NaN" | "-NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ if is_java_number(text) => text.parse().ok(),
        _ => None,
    }
}

/// Parses a number like `Float.parseFloat`, but only the forms that CQL has.
pub(crate) fn parse_float(text: &str) -> Option<f32> {
    match text {
        "NaN" | "-NaN" => Some(f32::NAN),
        "Infinity" => Some(f32::INFINITY),
        "-Infinity" => Some(f32::NEG_INFINITY),
        _ if is_java_number(text) => text.parse().ok(),
        _ => None,
    }
}

/// False for `inf`, `nan` and `infinity`, which Rust parses and Java does not.
fn is_java_number(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_print_as_in_java() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-3.25, "-3.25"),
            (0.001, "0.001"),
            (0.00099, "9.9E-4"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (12_345_678.9, "1.23456789E7"),
            (4.9e-324, "4.9E-324"),
            (2e-323, "2.0E-323"),
            (-f64::MAX, "-1.7976931348623157E308"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            let mut out = String::new();
            print_double(value, &mut out);
            assert_eq!(out, text);
        }
        for (value, text) in [
            (0.1, "0.1"),
            (1.4e-45, "1.4E-45"),
            (f32::MAX, "3.4028235E38"),
            (-502_345.63, "-502345.62"),
            (290_669.13, "290669.12"),
            (1_100_569.3, "1100569.2"),
            (2_332_192.8, "2332192.8"),
            (f32::INFINITY, "Infinity"),
        ] {
            let mut out = String::new();
            print_float(value, &mut out);
            assert_eq!(out, text);
        }
    }

    #[test]
    fn what_java_does_not_read_is_refused() {
        for text in ["", "inf", "nan", "infinity", "0x1", "1_0", "e", "."] {
            assert_eq!(parse_double(text).map(f64::to_bits), None, "{text}");
        }
        assert_eq!(parse_double("1e400"), Some(f64::INFINITY));
        assert_eq!(parse_float("1."), Some(1.0));
    }
}
