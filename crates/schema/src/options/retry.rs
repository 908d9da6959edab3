//! `speculative_retry`, `additional_write_policy` and `read_repair`: kept and printed in Cassandra's form; a single
//! node has nobody to ask again.

use crate::Error;
use crate::error::config;

/// One policy, or the lesser or greater of two.
pub(crate) fn parse(text: &str) -> Result<String, Error> {
    let upper = text.trim().to_ascii_uppercase();
    for function in ["MIN", "MAX"] {
        let inner = upper
            .strip_prefix(function)
            .and_then(|rest| rest.trim().strip_prefix('(')?.strip_suffix(')')?.split_once(','));
        if let Some((one, two)) = inner {
            let parts = (percentile(one)?.or(fixed(one)?), percentile(two)?.or(fixed(two)?));
            if let (Some(one), Some(two)) = parts {
                return Ok(format!("{function}({one},{two})"));
            }
        }
    }
    match upper.as_str() {
        "ALWAYS" => return Ok(upper),
        "NEVER" | "NONE" => return Ok("NEVER".to_owned()),
        _ => {}
    }
    match percentile(text)?.or(fixed(text)?) {
        Some(policy) => Ok(policy),
        None => config(format!("Invalid value {text} for option 'speculative_retry'")),
    }
}

/// `99p`, `99.9PERCENTILE`
fn percentile(text: &str) -> Result<Option<String>, Error> {
    let upper = text.trim().to_ascii_uppercase();
    let number = upper
        .strip_suffix("PERCENTILE")
        .or_else(|| upper.strip_suffix('P'));
    let Some(number) = number.map(str::trim).filter(|number| is_number(number)) else {
        return Ok(None);
    };
    match number.parse::<f64>() {
        Ok(value) if (0.0..=100.0).contains(&value) => Ok(Some(format!("{value}p"))),
        Ok(_) => config(format!(
            "Invalid value {text} for PERCENTILE option 'speculative_retry': must be between (0.0 and 100.0)"
        )),
        Err(_) => config(format!("Invalid value {text} for option 'speculative_retry'")),
    }
}

/// `10ms`
fn fixed(text: &str) -> Result<Option<String>, Error> {
    let upper = text.trim().to_ascii_uppercase();
    let number = upper
        .strip_suffix("MS")
        .map(str::trim)
        .filter(|number| is_number(number));
    let Some(number) = number else { return Ok(None) };
    match number.parse::<f64>() {
        Ok(millis) if millis <= f64::from(i32::MAX) => Ok(Some(format!("{}ms", millis.trunc()))),
        _ => config(format!("Invalid value {text} for option 'speculative_retry'")),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

pub(crate) fn parse_read_repair(text: &str) -> Result<String, Error> {
    match text.to_ascii_uppercase() {
        known if known == "BLOCKING" || known == "NONE" => Ok(known),
        _ => config(format!(
            "Invalid value {text} for option 'read_repair': must be NONE or BLOCKING"
        )),
    }
}
