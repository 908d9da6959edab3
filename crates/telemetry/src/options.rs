//! [`TelemetryOptions`], and parsers for the texts of its settings.

use std::time::Duration;

/// Where spans and metrics are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TelemetryOptions {
    /// URL for spans; `None` sends no spans.
    pub traces_url: Option<String>,
    /// URL for metrics; `None` sends no metrics.
    pub metrics_url: Option<String>,
    /// Headers of each request.
    pub headers: Vec<(String, String)>,
    /// How long a request may take.
    pub timeout: Duration,
    /// How often metrics are sent.
    pub metrics_interval: Duration,
    /// Attributes of the node.
    pub resource: Vec<(String, String)>,
    /// Version of the program.
    pub version: &'static str,
}

/// Parses `name=value,name=value`, with `%` before two hexadecimal digits for other bytes: the form of `OTEL_EXPORTER_OTLP_HEADERS` and
/// `OTEL_RESOURCE_ATTRIBUTES`.
///
/// # Errors
/// A part has no `=` or no name, or its decoded bytes are not UTF-8. The message leaves out the value, which may be a secret.
pub fn parse_pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let pairs = parts.map(|part| {
        let (name, value) = part
            .split_once('=')
            .ok_or_else(|| "expected NAME=VALUE, separated by commas".to_owned())?;
        let (name, value) = (decoded(name.trim()), decoded(value.trim()));
        match (name, value) {
            (Some(name), Some(value)) if !name.is_empty() => Ok((name, value)),
            (name, _) => Err(format!("{} is not NAME=VALUE", name.unwrap_or_default())),
        }
    });
    pairs.collect()
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits)
            .ok()
            .filter(|digits| !digits.starts_with('+'))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

/// The URL of a signal: the collector's URL, which may end with a slash, and `path`.
pub fn url_below(endpoint: &str, path: &str) -> String {
    format!("{}{path}", endpoint.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_may_have_encoded_bytes() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            parse_pairs(" a=1, authorization=Bearer%20x%3D%2c ,,c=d=e").unwrap(),
            [
                pair("a", "1"),
                pair("authorization", "Bearer x=,"),
                pair("c", "d=e")
            ]
        );
        assert!(parse_pairs("").unwrap().is_empty());
        for bad in ["a", "=b", "a=%4", "a=%zz", "a=%+4", "a=%ff"] {
            assert!(parse_pairs(bad).is_err(), "{bad}");
        }
        assert!(!parse_pairs("key=%ffsecret").unwrap_err().contains("secret"));
    }

    #[test]
    fn a_signal_has_a_path_below_the_endpoint() {
        for endpoint in ["http://127.0.0.1:4318", "http://127.0.0.1:4318/"] {
            assert_eq!(
                url_below(endpoint, "/v1/traces"),
                "http://127.0.0.1:4318/v1/traces"
            );
        }
    }
}
