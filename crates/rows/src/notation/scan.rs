//! One line of the notation, read from left to right.

use bytes::Bytes;
use ilion_types::{CqlType, hex};

/// A place where a text breaks the notation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: expected {expected}")]
pub struct NotationError {
    /// Line, from 1.
    pub line: usize,
    /// Column in bytes, from 1.
    pub column: usize,
    /// What the notation requires here.
    pub expected: String,
}

pub(super) struct Scanner<'a> {
    number: usize,
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(number: usize, text: &'a str) -> Self {
        Self { number, text, at: 0 }
    }

    pub(super) fn error(&self, expected: impl Into<String>) -> NotationError {
        NotationError {
            line: self.number,
            column: self.at + 1,
            expected: expected.into(),
        }
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// True at the end of the line or at a comment.
    pub(super) fn is_end(&mut self) -> bool {
        self.skip_blanks();
        self.rest().is_empty() || self.rest().starts_with('#')
    }

    pub(super) fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    pub(super) fn expect(&mut self, text: &str) -> Result<(), NotationError> {
        match self.eat(text) {
            true => Ok(()),
            false => Err(self.error(format!("`{text}`"))),
        }
    }

    fn take_while(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c: char| !fits(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// Parses a quoted text, in which a doubled quote means one quote. Requires: the first quote is not consumed yet.
    fn quoted(&mut self, quote: char) -> Result<String, NotationError> {
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1).peekable();
        while let Some((at, c)) = chars.next() {
            if c != quote {
                text.push(c);
            } else if chars.next_if(|(_, next)| *next == quote).is_some() {
                text.push(quote);
            } else {
                self.at += at + 1;
                return Ok(text);
            }
        }
        Err(self.error(format!("a closing {quote}")))
    }

    /// A word, or any name in double quotes.
    pub(super) fn name(&mut self) -> Result<String, NotationError> {
        if self.rest().starts_with('"') {
            return self.quoted('"');
        }
        match self.take_while(|c| c.is_ascii_alphanumeric() || c == '_') {
            "" => Err(self.error("a name")),
            word => Ok(word.to_owned()),
        }
    }

    pub(super) fn number<T: std::str::FromStr>(&mut self, what: &str) -> Result<T, NotationError> {
        let at = self.at;
        let digits = self.take_while(|c| c.is_ascii_digit() || c == '-' || c == '+');
        digits.parse().map_err(|_| {
            self.at = at;
            self.error(what)
        })
    }

    /// Parses the number behind `mark`; `None` if `mark` does not follow.
    pub(super) fn number_after<T: std::str::FromStr>(
        &mut self,
        mark: &str,
        what: &str,
    ) -> Result<Option<T>, NotationError> {
        match self.eat(mark) {
            true => self.number(what).map(Some),
            false => Ok(None),
        }
    }

    pub(super) fn hex(&mut self) -> Result<Vec<u8>, NotationError> {
        let at = self.at;
        let digits = self.take_while(|c| c.is_ascii_hexdigit());
        hex::parse(digits).ok_or_else(|| {
            self.at = at;
            self.error("pairs of hex digits")
        })
    }

    /// A constant of `ty`, or `0x` and its bytes.
    pub(super) fn value(&mut self, ty: &CqlType) -> Result<Bytes, NotationError> {
        if self.eat("0x") {
            return self.hex().map(Bytes::from);
        }
        let at = self.at;
        let text = match self.rest().starts_with('\'') {
            true => self.quoted('\'')?,
            false => self
                .take_while(|c| !c.is_whitespace() && !"@,:[](){}".contains(c))
                .to_owned(),
        };
        let is_word = !self.text[at..].starts_with('\'');
        let parsed = match is_word && (text.is_empty() || matches!(ty, CqlType::Text | CqlType::Ascii)) {
            true => None,
            false => ty.parse_plain(&text).ok(),
        };
        parsed.map(Bytes::from).ok_or_else(|| {
            self.at = at;
            self.error(format!("a value of type {ty}"))
        })
    }
}
