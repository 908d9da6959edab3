//! Cuts a text into tokens.
//!
//! ```text
//! hidden    := space | '--' to the line's end | '//' to the line's end | '/*' .. '*/'
//! word      := letter (letter | digit | '_')*        a keyword in any case, or an identifier
//! name      := '"' (any but '"' | '""')* '"'
//! string    := '\'' (any but '\'' | '\'\'')* '\'' | '$$' .. '$$'
//! integer   := '-'? digit+                           float, duration, uuid, hex: see `number`
//! ```
//!
//! Compat: a minus belongs to the number after it, so `a -1` is two tokens, as in Cassandra. Unlike in Cassandra, the last line
//! may be a comment without a line break after it.

mod number;

use crate::keyword::{self, Hash};
use crate::token::{BadToken, Kind, Token};

/// Cuts the whole text into tokens, except hidden ones. The last token is `End` or `Bad`. Requires: less than 4 GiB of text.
pub(crate) fn tokenize(text: &str) -> Vec<Token> {
    // A typical statement has a token for every four bytes, including white space.
    let mut tokens = Vec::with_capacity(text.len() / 4 + 8);
    let mut lexer = Lexer::new(text);
    loop {
        let token = lexer.scan();
        match token.kind {
            Kind::Hidden => continue,
            Kind::End | Kind::Bad(_) => {
                tokens.push(token);
                return tokens;
            }
            _ => tokens.push(token),
        }
    }
}

/// A text and a position in it.
pub(crate) struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            position: 0,
        }
    }

    /// The next token, including hidden ones; `End` at the end of the text, however often it is called.
    #[inline]
    pub(crate) fn scan(&mut self) -> Token {
        let start = self.position;
        let kind = match self.peek(0) {
            None => Kind::End,
            Some(byte) => self.scan_from(byte),
        };
        Token {
            kind,
            start: start as u32,
            end: self.position as u32,
        }
    }

    /// Skips bytes that belong to no token.
    pub(crate) fn skip(&mut self, length: usize) {
        self.position += length;
    }

    fn scan_from(&mut self, byte: u8) -> Kind {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => self.white_space(),
            b'a'..=b'z' | b'A'..=b'Z' => self.word(byte),
            b'0'..=b'9' => self.number(),
            b'\'' => self.quoted(b'\'', Kind::String),
            b'"' => self.quoted_name(),
            b'-' => self.minus(),
            b'$' => self.dollar_string(),
            b'/' => self.slash(),
            b'.' if self.peek(1) == Some(b'.') => self.take(2, Kind::Range),
            b'+' if self.peek(1) == Some(b'=') => self.take(2, Kind::PlusEqual),
            b'<' if self.peek(1) == Some(b'=') => self.take(2, Kind::LessOrEqual),
            b'>' if self.peek(1) == Some(b'=') => self.take(2, Kind::GreaterOrEqual),
            b'!' if self.peek(1) == Some(b'=') => self.take(2, Kind::NotEqual),
            b'!' => self.take(1, Kind::Bad(BadToken::Expecting(b'='))),
            _ => match symbol(byte) {
                Some(kind) => self.take(1, kind),
                None => Kind::Bad(BadToken::Character),
            },
        }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.position + ahead).copied()
    }

    fn take(&mut self, length: usize, kind: Kind) -> Kind {
        self.position += length;
        kind
    }

    fn white_space(&mut self) -> Kind {
        while matches!(self.peek(0), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.position += 1;
        }
        Kind::Hidden
    }

    fn line_comment(&mut self) -> Kind {
        let rest = self.bytes.get(self.position..).unwrap_or_default();
        let length = rest
            .iter()
            .position(|byte| matches!(byte, b'\n' | b'\r'))
            .map_or(rest.len(), |at| at + 1);
        self.take(length, Kind::Hidden)
    }

    fn slash(&mut self) -> Kind {
        match self.peek(1) {
            Some(b'/') => self.line_comment(),
            Some(b'*') => self.block_comment(),
            _ => self.take(1, Kind::Slash),
        }
    }

    fn block_comment(&mut self) -> Kind {
        self.position += 2;
        self.up_to("*/", Kind::Hidden)
    }

    /// Takes everything up to and including `terminator`.
    fn up_to(&mut self, terminator: &str, kind: Kind) -> Kind {
        match self
            .text
            .get(self.position..)
            .and_then(|rest| rest.find(terminator))
        {
            Some(at) => self.take(at + terminator.len(), kind),
            None => {
                self.position = self.bytes.len();
                Kind::Bad(BadToken::Expecting(terminator.as_bytes()[0]))
            }
        }
    }

    fn dollar_string(&mut self) -> Kind {
        if self.peek(1) != Some(b'$') {
            return self.take(1, Kind::Bad(BadToken::Expecting(b'$')));
        }
        self.position += 2;
        self.up_to("$$", Kind::DollarString)
    }

    fn quoted_name(&mut self) -> Kind {
        if self.peek(1) == Some(b'"') && self.peek(2) != Some(b'"') {
            return self.take(2, Kind::EmptyQuotedName);
        }
        self.quoted(b'"', Kind::QuotedName)
    }

    /// Takes the text between two quotes; a doubled quote is one quote.
    fn quoted(&mut self, quote: u8, kind: Kind) -> Kind {
        self.position += 1;
        loop {
            let rest = self.bytes.get(self.position..).unwrap_or_default();
            match rest.iter().position(|byte| *byte == quote) {
                None => {
                    self.position = self.bytes.len();
                    return Kind::Bad(BadToken::Expecting(quote));
                }
                Some(at) if rest.get(at + 1) == Some(&quote) => self.position += at + 2,
                Some(at) => return self.take(at + 1, kind),
            }
        }
    }

    fn minus(&mut self) -> Kind {
        match self.peek(1) {
            Some(b'-') => self.line_comment(),
            Some(b'=') => self.take(2, Kind::MinusEqual),
            Some(b'0'..=b'9') => self.number(),
            Some(b'P') => match self.iso_duration(2) {
                Some(length) => self.take(length, Kind::Duration),
                None => self.take(1, Kind::Minus),
            },
            Some(b'n' | b'N') if self.continues_with(1, "nan") => self.take(4, Kind::NegativeNan),
            Some(b'i' | b'I') if self.continues_with(1, "infinity") => self.take(9, Kind::NegativeInfinity),
            _ => self.take(1, Kind::Minus),
        }
    }

    fn continues_with(&self, ahead: usize, word: &str) -> bool {
        let start = self.position + ahead;
        let found = self.bytes.get(start..start + word.len());
        found.is_some_and(|found| found.eq_ignore_ascii_case(word.as_bytes()))
    }

    fn word(&mut self, first: u8) -> Kind {
        if self.is_uuid() {
            return self.take(number::UUID_LENGTH, Kind::Uuid);
        }
        if first == b'P'
            && let Some(length) = self.iso_duration(1)
            && !self.peek(length).is_some_and(is_word_byte)
        {
            return self.take(length, Kind::Duration);
        }
        let start = self.position;
        let mut hash = Hash::new();
        while let Some(byte) = self.peek(0).filter(|byte| is_word_byte(*byte)) {
            hash = hash.push(byte);
            self.position += 1;
        }
        let word = self.text.get(start..self.position).unwrap_or_default();
        if word == "expr" && self.peek(0) == Some(b'(') {
            return self.take(1, Kind::ExprOpen);
        }
        keyword::find(word, hash).map_or(Kind::Identifier, Kind::Keyword)
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The tokens of one character that start no other token.
fn symbol(byte: u8) -> Option<Kind> {
    Some(match byte {
        b'(' => Kind::OpenParen,
        b')' => Kind::CloseParen,
        b'[' => Kind::OpenBracket,
        b']' => Kind::CloseBracket,
        b'{' => Kind::OpenBrace,
        b'}' => Kind::CloseBrace,
        b',' => Kind::Comma,
        b';' => Kind::Semicolon,
        b':' => Kind::Colon,
        b'.' => Kind::Dot,
        b'?' => Kind::Question,
        b'*' => Kind::Star,
        b'+' => Kind::Plus,
        b'%' => Kind::Percent,
        b'=' => Kind::Equal,
        b'<' => Kind::Less,
        b'>' => Kind::Greater,
        _ => return None,
    })
}

/// The content of a token: strings and quoted names without their quotes, others unchanged.
pub(crate) fn unquoted(text: &str, token: Token) -> String {
    let slice = text
        .get(token.start as usize..token.end as usize)
        .unwrap_or_default();
    match token.kind {
        Kind::String => undouble(slice, 1, "''", "'"),
        Kind::QuotedName => undouble(slice, 1, "\"\"", "\""),
        Kind::DollarString => undouble(slice, 2, "", ""),
        _ => slice.into(),
    }
}

fn undouble(slice: &str, margin: usize, double: &str, single: &str) -> String {
    let inner = slice
        .get(margin..slice.len().saturating_sub(margin))
        .unwrap_or_default();
    if double.is_empty() || !inner.contains(single) {
        return inner.into();
    }
    inner.replace(double, single)
}
