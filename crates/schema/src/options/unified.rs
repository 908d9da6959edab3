//! Options of `UnifiedCompactionStrategy`, with the rules and messages of Cassandra's `Controller.validateOptions`.

use std::collections::BTreeMap;

use crate::Error;
use crate::error::config;

/// Smallest target and flush size in bytes.
const SIZE_MIN: f64 = (1 << 20) as f64;
const TARGET_DEFAULT: f64 = (1_u64 << 30) as f64;

/// Parses a size in bytes: a number, an optional decimal or binary prefix, and a final B. The error is the reason for the message.
/// Compat: `FBUtilities.parseHumanReadableBytes`.
fn size_of(text: &str) -> Result<f64, String> {
    let Some(rest) = text.strip_suffix('B') else {
        return Err(format!("{text} does not end in unit B"));
    };
    let (rest, base) = match rest.strip_suffix('i') {
        Some(rest) => (rest, 1024.0),
        None => (rest, 1000.0),
    };
    let prefix = rest
        .chars()
        .last()
        .filter(|last| !last.is_ascii_digit() && !last.is_whitespace());
    let (number, exponent) = match prefix {
        None => (rest, 0),
        Some(prefix) => {
            let exponent = "KMGTPEZY"
                .find(prefix)
                .and_then(|place| i32::try_from(place + 1).ok());
            let exponent = exponent.ok_or_else(|| format!("Invalid prefix: {prefix}"))?;
            (&rest[..rest.len() - prefix.len_utf8()], exponent)
        }
    };
    let number: f64 = number.trim_end().parse().map_err(|_| "null".to_owned())?;
    Ok((number * f64::powi(base, exponent)).trunc())
}

/// Prints like `FBUtilities.prettyPrintMemory`.
fn printed(bytes: f64) -> String {
    let mut units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"].into_iter();
    let (mut size, mut unit) = (bytes, units.next().unwrap_or_default());
    while size >= 1024.0 {
        let Some(next) = units.next() else { break };
        (size, unit) = (size / 1024.0, next);
    }
    match unit {
        "B" => format!("{size}B"),
        unit => format!("{size:.3}{unit}"),
    }
}

pub(super) fn check_size(name: &str, value: &str) -> Result<(), Error> {
    match size_of(value) {
        Err(reason) => config(format!("{name} {value} is not a valid size in bytes: {reason}")),
        Ok(size) if size < SIZE_MIN => config(format!(
            "{name} {value} is not acceptable, size must be at least {}",
            printed(SIZE_MIN)
        )),
        Ok(_) => Ok(()),
    }
}

pub(super) fn check_min_size(name: &str, value: &str) -> Result<(), Error> {
    match size_of(value) {
        Err(_) => config(format!("{value} is not a valid size in bytes for {name}")),
        Ok(size) if size < 0.0 => config(format!(
            "Invalid configuration, {name} should be greater than or equal to 0 (zero)"
        )),
        Ok(_) => Ok(()),
    }
}

/// Checks the smallest size of SSTables against the target size.
pub(super) fn check_sizes(given: &BTreeMap<String, String>) -> Result<(), Error> {
    let size = |name: &str| given.get(name).and_then(|text| size_of(text).ok());
    let target = size("target_sstable_size").unwrap_or(TARGET_DEFAULT);
    let limit = (target * 0.5_f64.sqrt()).ceil();
    match size("min_sstable_size") {
        Some(min) if min >= limit => config(format!(
            "Invalid configuration, min_sstable_size ({}) should be less than the target size minimum: {}",
            printed(min),
            printed(limit)
        )),
        _ => Ok(()),
    }
}

pub(super) fn check_inclusion(_: &str, value: &str) -> Result<(), Error> {
    let upper = value.to_ascii_uppercase();
    if ["NONE", "SINGLE", "TRANSITIVE"].contains(&upper.as_str()) {
        return Ok(());
    }
    config(format!(
        "Invalid overlap inclusion method {value}. The valid options are [NONE, SINGLE, TRANSITIVE]."
    ))
}

/// `T4, L8, N, -3`: one parameter per level.
pub(super) fn check_scaling(_: &str, value: &str) -> Result<(), Error> {
    value
        .split(',')
        .map(str::trim)
        .try_for_each(check_scaling_of_level)
}

fn check_scaling_of_level(word: &str) -> Result<(), Error> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(digits) = word.strip_prefix(['T', 'L']).filter(|digits| is_number(digits)) {
        return match digits.parse::<i32>() {
            Ok(fanout) if fanout >= 2 => Ok(()),
            _ => config(format!("Fan factor cannot be lower than 2 in {word}")),
        };
    }
    let unsigned = word.strip_prefix(['+', '-']).unwrap_or(word);
    if word == "N" || (is_number(unsigned) && unsigned.parse::<i32>().is_ok()) {
        return Ok(());
    }
    config(format!(
        "Scaling parameter {word} must match N|L[0-9]+|T[0-9]+|[+-]?[0-9]+"
    ))
}

/// A fraction, or a percentage.
pub(super) fn check_growth(name: &str, value: &str) -> Result<(), Error> {
    let parsed = match value.strip_suffix('%') {
        Some(percents) => percents.trim().parse::<f64>().map(|percents| percents / 100.0),
        None => value.trim().parse(),
    };
    match parsed {
        Ok(growth) if (0.0..=1.0).contains(&growth) => Ok(()),
        Ok(_) => config(format!("{name} {value} must be between 0 and 1")),
        Err(_) => config(format!("{name} is not a valid number between 0 and 1: {value}")),
    }
}
