//! Parses JSON text to a tree. Numbers are kept as text, since varints and decimals have any number of digits.

use crate::Error;

/// A JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json {
    /// `null`
    Null,
    /// `true`, `false`
    Boolean(bool),
    /// A number, as written.
    Number(String),
    /// A string, unescaped.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object: its members in order. Names may be repeated.
    Object(Vec<(String, Json)>),
}

/// Deepest nesting that is parsed.
const DEPTH_MAX: usize = 128;

impl Json {
    /// Parses one JSON value, which must be the whole text.
    ///
    /// # Errors
    /// The text is not JSON.
    pub fn parse(text: &str) -> Result<Json, Error> {
        let mut parser = Parser { text, at: 0 };
        let value = parser.value(0)?;
        parser.skip_spaces();
        if parser.at == text.len() {
            Ok(value)
        } else {
            Err(parser.error())
        }
    }

    /// The name of the Java class of this value in Cassandra's messages.
    pub(crate) fn java_class(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "Boolean",
            Self::Number(text) if text.contains(['.', 'e', 'E']) => "Double",
            Self::Number(text) if text.parse::<i32>().is_ok() => "Integer",
            Self::Number(text) if text.parse::<i64>().is_ok() => "Long",
            Self::Number(_) => "BigInteger",
            Self::String(_) => "String",
            Self::Array(_) => "ArrayList",
            Self::Object(_) => "LinkedHashMap",
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn value(&mut self, depth: usize) -> Result<Json, Error> {
        if depth > DEPTH_MAX {
            return Err(self.error());
        }
        self.skip_spaces();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Json::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        }
    }

    fn word(&mut self) -> Result<Json, Error> {
        for (word, value) in [
            ("null", Json::Null),
            ("true", Json::Boolean(true)),
            ("false", Json::Boolean(false)),
        ] {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.error())
    }

    fn array(&mut self, depth: usize) -> Result<Json, Error> {
        self.at += 1;
        let mut elements = Vec::new();
        if self.accept(b']') {
            return Ok(Json::Array(elements));
        }
        loop {
            elements.push(self.value(depth + 1)?);
            if self.accept(b']') {
                return Ok(Json::Array(elements));
            }
            self.expect(b',')?;
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json, Error> {
        self.at += 1;
        let mut members = Vec::new();
        if self.accept(b'}') {
            return Ok(Json::Object(members));
        }
        loop {
            self.skip_spaces();
            let name = self.string()?;
            self.expect(b':')?;
            members.push((name, self.value(depth + 1)?));
            if self.accept(b'}') {
                return Ok(Json::Object(members));
            }
            self.expect(b',')?;
        }
    }

    /// Parses `-? (0 | [1-9][0-9]*) (. digits)? ([eE] [+-]? digits)?`.
    fn number(&mut self) -> Result<Json, Error> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        let whole = self.digits()?;
        if whole > 1 && self.text.as_bytes()[self.at - whole] == b'0' {
            return Err(self.error());
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(Json::Number(self.text[start..self.at].to_owned()))
    }

    fn digits(&mut self) -> Result<usize, Error> {
        let rest = &self.text.as_bytes()[self.at..];
        match rest.iter().take_while(|byte| byte.is_ascii_digit()).count() {
            0 => Err(self.error()),
            len => {
                self.at += len;
                Ok(len)
            }
        }
    }

    fn string(&mut self) -> Result<String, Error> {
        self.expect(b'"')?;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let end = rest
                .find(|c: char| c == '"' || c == '\\' || c < ' ')
                .ok_or_else(|| self.error())?;
            out.push_str(&rest[..end]);
            self.at += end + 1;
            match rest.as_bytes()[end] {
                b'"' => return Ok(out),
                b'\\' => out.push(self.escape()?),
                _ => return Err(self.error()),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Error> {
        let escaped = self.peek().ok_or_else(|| self.error())?;
        self.at += 1;
        Ok(match escaped {
            b'"' | b'\\' | b'/' => char::from(escaped),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(),
            _ => {
                self.at -= 1;
                return Err(self.error());
            }
        })
    }

    /// Parses four hex digits, or two escapes that form a surrogate pair.
    fn unicode_escape(&mut self) -> Result<char, Error> {
        let first = self.hex4()?;
        if !(0xD800..0xDC00).contains(&first) {
            return char::from_u32(first).ok_or_else(|| self.error());
        }
        if !self.text[self.at..].starts_with("\\u") {
            return Err(self.error());
        }
        self.at += 2;
        let second = self.hex4()?;
        if !(0xDC00..0xE000).contains(&second) {
            return Err(self.error());
        }
        char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)).ok_or_else(|| self.error())
    }

    fn hex4(&mut self) -> Result<u32, Error> {
        let digits = self.text.get(self.at..self.at + 4);
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let value = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let value = value.ok_or_else(|| self.error())?;
        self.at += 4;
        Ok(value)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_spaces(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn accept(&mut self, wanted: u8) -> bool {
        self.skip_spaces();
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, wanted: u8) -> Result<(), Error> {
        if self.accept(wanted) {
            Ok(())
        } else {
            Err(self.error())
        }
    }

    #[cold]
    fn error(&self) -> Error {
        Error::literal(format!(
            "Could not decode JSON string as a map: unexpected character at offset {}",
            self.at
        ))
    }
}
