//! Numbers with a fraction as text. Compat: `%.5g` of C, as in cqlsh.

/// Significant digits behind the point, as in cqlsh.
const PRECISION: i32 = 5;

/// A number with five digits behind the point, or in scientific notation if it is very large or very small.
pub fn print_float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let mut precision = PRECISION;
    if value.abs() > f64::EPSILON {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a decimal exponent, which is below 309"
        )]
        let exponent = value.abs().log10() as i32;
        // `%g` counts the digits to the left of the point, too, so they are added.
        if (-4..PRECISION).contains(&exponent) {
            precision += exponent + 1;
        }
    }
    print_general(value, precision)
}

/// `%.{precision}g`
fn print_general(value: f64, precision: i32) -> String {
    let digits = usize::try_from(precision.max(1) - 1).unwrap_or_default();
    let scientific = format!("{value:.digits$e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..precision).contains(&exponent) {
        let decimals = usize::try_from(precision - 1 - exponent).unwrap_or_default();
        return without_zeros(&format!("{value:.decimals$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.abs())
}

/// Removes the zeros at the end of a fraction.
fn without_zeros(text: &str) -> &str {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::print_float;

    #[test]
    fn floats_are_printed_as_by_cqlsh() {
        for (value, text) in [
            (0.0, "0"),
            (1.5, "1.5"),
            (-2.0, "-2"),
            (0.1, "0.1"),
            (2.345_678_9, "2.34568"),
            (1_234.567_891, "1234.56789"),
            (123_456.789, "1.2346e+05"),
            (1_234_567.0, "1.2346e+06"),
            (0.000_012_3, "1.2e-05"),
            (1e300, "1e+300"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(print_float(value), text, "{value:e}");
        }
    }
}
