//! Names and strings in CQL.

use std::borrow::Cow;
use std::fmt::{Display, Formatter, Result, Write};

use crate::keyword::{self, Class, Keyword};

/// True if this word, in any case, is not allowed as an unquoted name.
pub fn is_reserved(word: &str) -> bool {
    keyword::parse(word).is_some_and(|keyword| !keyword.is_name())
}

/// A name in CQL: quoted if it is reserved or not `[a-z][a-z0-9_]*`.
pub fn quote_identifier(name: &str) -> Cow<'_, str> {
    if is_plain(name) && !is_reserved(name) {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(quoted(name))
    }
}

fn is_plain(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A name of a column, table, keyspace or field, quoted if necessary.
pub(crate) struct Name<'a>(pub(crate) &'a str);

impl Display for Name<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        out.write_str(&quote_identifier(self.0))
    }
}

/// A name in a place where every keyword needs quotes.
pub(crate) struct SafeName<'a>(pub(crate) &'a str);

impl Display for SafeName<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let is_safe = is_plain(self.0) && keyword::parse(self.0).is_none();
        if is_safe {
            out.write_str(self.0)
        } else {
            out.write_str(&quoted(self.0))
        }
    }
}

/// A column in a selection, where three more words need quotes.
pub(crate) struct SelectedName<'a>(pub(crate) &'a str);

impl Display for SelectedName<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match keyword::parse(self.0) {
            Some(Keyword::Json | Keyword::Distinct | Keyword::As) => SafeName(self.0).fmt(out),
            _ => Name(self.0).fmt(out),
        }
    }
}

/// A name of a function, without its keyspace.
pub(crate) struct FunctionName<'a>(pub(crate) &'a str);

impl Display for FunctionName<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match keyword::parse(self.0) {
            // `expr(` is a token of its own.
            None if is_plain(self.0) && self.0 != "expr" => out.write_str(self.0),
            Some(keyword) if is_plain(self.0) && keyword.is_function_name() => out.write_str(self.0),
            _ => out.write_str(&quoted(self.0)),
        }
    }
}

/// A name of a user type, without its keyspace.
pub(crate) struct TypeName<'a>(pub(crate) &'a str);

impl Display for TypeName<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let needs_quotes = match keyword::parse(self.0) {
            None => crate::parser::RESERVED_TYPE_NAMES.contains(&self.0),
            Some(keyword) => keyword.class() != Class::Basic,
        };
        if needs_quotes {
            out.write_str(&quoted(self.0))
        } else {
            Name(self.0).fmt(out)
        }
    }
}

/// A name of a role: unquoted if that is unambiguous, otherwise a string.
pub(crate) struct Role<'a>(pub(crate) &'a str);

impl Display for Role<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let is_safe = is_plain(self.0) && keyword::parse(self.0).is_none();
        if is_safe {
            out.write_str(self.0)
        } else {
            Text(self.0).fmt(out)
        }
    }
}

/// A string literal.
pub(crate) struct Text<'a>(pub(crate) &'a str);

impl Display for Text<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        out.write_char('\'')?;
        let mut parts = self.0.split('\'');
        out.write_str(parts.next().unwrap_or_default())?;
        for part in parts {
            out.write_str("''")?;
            out.write_str(part)?;
        }
        out.write_char('\'')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_only_where_needed() {
        assert_eq!(quote_identifier("abc_1"), "abc_1");
        assert_eq!(quote_identifier("Abc"), "\"Abc\"");
        assert_eq!(quote_identifier("1abc"), "\"1abc\"");
        assert_eq!(quote_identifier("a\"b"), "\"a\"\"b\"");
        assert_eq!(quote_identifier("table"), "\"table\"");
        assert_eq!(quote_identifier("key"), "key");
        assert_eq!(quote_identifier(""), "\"\"");
        assert_eq!(Text("it's").to_string(), "'it''s'");
        assert!(is_reserved("SELECT") && is_reserved("token") && !is_reserved("ttl") && !is_reserved("foo"));
    }
}
