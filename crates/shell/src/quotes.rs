//! Quotes of CQL.

/// The text between quotes; a text without quotes is returned unchanged.
pub fn unquote(text: &str) -> String {
    for (quote, doubled) in [("'", "''"), ("\"", "\"\"")] {
        let inner = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        if let Some(inner) = inner {
            return inner.replace(doubled, quote);
        }
    }
    let inner = text.strip_prefix("$$").and_then(|rest| rest.strip_suffix("$$"));
    inner.unwrap_or(text).to_owned()
}
