//! `speculative_retry`, `additional_write_policy` and `read_repair`: stored and printed in Cassandra's form, without effect on
//! a single node.
//!
//! Compat: `SpeculativeRetryPolicy` and its kinds of Cassandra 5.0.

use crate::Error;
use crate::error::config;

/// When to try another replica.
enum Delay {
    /// A percentile of past latencies.
    Percentile(String),
    Fixed(String),
}

impl Delay {
    fn kind(&self) -> &'static str {
        match self {
            Self::Percentile(_) => "PERCENTILE",
            Self::Fixed(_) => "FIXED",
        }
    }
}

/// Parses one policy, or the minimum or maximum of two; returns the stored form.
pub(crate) fn parse(text: &str) -> Result<String, Error> {
    let upper = text.to_ascii_uppercase();
    for function in ["MIN", "MAX"] {
        let inner = upper
            .strip_prefix(function)
            .and_then(|rest| rest.strip_prefix('(')?.strip_suffix(')')?.split_once(','));
        if let Some((one, two)) = inner {
            return hybrid(text, function, one.trim_end(), two.trim_start());
        }
    }
    match upper.as_str() {
        "ALWAYS" => return Ok(upper),
        "NEVER" | "NONE" => return Ok("NEVER".to_owned()),
        _ => {}
    }
    match delay(text, &upper)? {
        Some(Delay::Percentile(policy) | Delay::Fixed(policy)) => Ok(policy),
        None => invalid(text),
    }
}

/// `MIN(99p,10ms)`
fn hybrid(text: &str, function: &str, one: &str, two: &str) -> Result<String, Error> {
    let part = |part: &str| delay(part, part).ok().flatten();
    match (part(one), part(two)) {
        (Some(Delay::Percentile(percentile)), Some(Delay::Fixed(fixed)))
        | (Some(Delay::Fixed(fixed)), Some(Delay::Percentile(percentile))) => {
            Ok(format!("{function}({percentile},{fixed})"))
        }
        (Some(one), Some(_)) => config(format!(
            "Invalid value {text} for option 'speculative_retry': MIN()/MAX() arguments should be of different types, but \
             both are of type {}",
            one.kind()
        )),
        _ => invalid(text),
    }
}

fn delay(text: &str, upper: &str) -> Result<Option<Delay>, Error> {
    let percentile = upper
        .strip_suffix("PERCENTILE")
        .or_else(|| upper.strip_suffix('P'))
        .and_then(number);
    if let Some(percentile) = percentile {
        if percentile <= 0.0 || percentile >= 100.0 {
            return config(format!(
                "Invalid value {text} for PERCENTILE option 'speculative_retry': must be between (0.0 and 100.0)"
            ));
        }
        // Rounds to four decimals, unless the rounded value would not be allowed.
        let rounded = Some((percentile * 10_000.0).round() / 10_000.0);
        let rounded = rounded.filter(|rounded| *rounded > 0.0 && *rounded < 100.0);
        let rounded = rounded.unwrap_or(percentile);
        return Ok(Some(Delay::Percentile(format!("{rounded}p"))));
    }
    let fixed = upper.strip_suffix("MS").and_then(number);
    Ok(fixed
        .filter(|millis| *millis <= f64::from(i32::MAX))
        .map(|millis| Delay::Fixed(format!("{}ms", millis.trunc()))))
}

fn number(text: &str) -> Option<f64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|_| is_plain)
}

fn invalid(text: &str) -> Result<String, Error> {
    config(format!("Invalid value {text} for option 'speculative_retry'"))
}

pub(crate) fn parse_read_repair(text: &str) -> Result<String, Error> {
    match text.to_ascii_uppercase() {
        known if known == "BLOCKING" || known == "NONE" => Ok(known),
        _ => config(format!(
            "Invalid value {text} for option 'read_repair': must be NONE or BLOCKING"
        )),
    }
}
