//! The parser: recursive descent over the tokens of one statement.
//!
//! This file has the cursor, names and other shared parts; the submodules have the statements by family. Compat: the order of
//! alternatives and the faults follow the grammar of Cassandra 5.0, so that messages are the same.
//!
//! Invariant: recursion and the height of every tree are bounded by `DEPTH_MAX`, whatever the text. For types the bound is
//! twice as high, since `frozen` around a type is not counted.

mod data;
mod definition;
mod describe;
mod explain;
mod function;
mod name;
mod permission;
mod property;
mod relation;
mod role;
mod select;
mod selection;
mod statement;
mod table;
mod term;
mod type_name;

pub(crate) use type_name::RESERVED_TYPE_NAMES;

use crate::Marker;
use crate::fault::Fault;
use crate::keyword::Keyword;
use crate::lexer::{tokenize, unquoted};
use crate::token::{Kind, Token};

/// How deep terms, selectors, relations and types may nest, and how high their trees may be.
const DEPTH_MAX: u32 = 128;
const TOO_DEEP: Fault = Fault::TooDeep {
    levels_max: DEPTH_MAX,
};

pub(crate) type Result<T> = std::result::Result<T, Fault>;

/// The tokens of a text, and a position in them.
pub(crate) struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    position: usize,
    /// The token up to which Cassandra would have looked ahead; for messages.
    seen_to: usize,
    /// The number of nested constructs around the position.
    depth: u32,
    /// The largest height among the parts of the innermost construct so far.
    height: u32,
    /// The bind markers so far.
    pub(crate) markers: Vec<Marker>,
}

impl<'a> Parser<'a> {
    /// Requires: less than 4 GiB of text.
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            tokens: tokenize(text),
            position: 0,
            seen_to: 0,
            depth: 0,
            height: 0,
            markers: Vec::new(),
        }
    }

    // The cursor.

    #[inline]
    fn token(&self, ahead: usize) -> Token {
        match self.tokens.get(self.position + ahead) {
            Some(token) => *token,
            None => self.last(),
        }
    }

    /// The last token.
    #[cold]
    fn last(&self) -> Token {
        let end = self.text.len() as u32;
        self.tokens.last().copied().unwrap_or(Token {
            kind: Kind::End,
            start: end,
            end,
        })
    }

    #[inline]
    fn kind(&self) -> Kind {
        self.token(0).kind
    }

    fn peek(&self, ahead: usize) -> Kind {
        self.token(ahead).kind
    }

    /// Consumes a token, unless it is the last.
    fn advance(&mut self) -> Token {
        let token = self.token(0);
        if self.position + 1 < self.tokens.len() {
            self.position += 1;
        }
        token
    }

    fn at(&self, kind: Kind) -> bool {
        self.kind() == kind
    }

    fn at_word(&self, word: Keyword) -> bool {
        self.kind() == Kind::Keyword(word)
    }

    fn peek_word(&self, ahead: usize, word: Keyword) -> bool {
        self.peek(ahead) == Kind::Keyword(word)
    }

    fn eat(&mut self, kind: Kind) -> bool {
        let found = self.at(kind);
        if found {
            self.advance();
        }
        found
    }

    fn eat_word(&mut self, word: Keyword) -> bool {
        self.eat(Kind::Keyword(word))
    }

    fn expect(&mut self, kind: Kind) -> Result<Token> {
        if self.at(kind) {
            return Ok(self.advance());
        }
        Err(Fault::Mismatch {
            offending: self.token(0),
            expecting: kind,
            seen: self.seen(0),
        })
    }

    fn expect_word(&mut self, word: Keyword) -> Result<()> {
        self.expect(Kind::Keyword(word)).map(|_| ())
    }

    /// The end of the text, after optional semicolons.
    pub(crate) fn end(&mut self) -> Result<()> {
        while self.eat(Kind::Semicolon) {}
        self.expect(Kind::End).map(|_| ())
    }

    // Faults.

    /// Fails: no alternative continues with this token.
    fn unexpected<T>(&self) -> Result<T> {
        self.unexpected_at(0)
    }

    /// Fails: no alternative that starts here continues with the token `ahead`.
    fn unexpected_at<T>(&self, ahead: usize) -> Result<T> {
        Err(Fault::NoAlternative {
            decision: self.token(0),
            offending: self.token(ahead),
            seen: self.seen(ahead),
        })
    }

    /// The last token that Cassandra would have seen in a failure at the token `ahead`.
    fn seen(&self, ahead: usize) -> Token {
        self.token(ahead.max(self.seen_to.saturating_sub(self.position)))
    }

    /// Records that Cassandra has looked past this token, which only affects its messages.
    fn look_past(&mut self) {
        self.seen_to = self.position + 1;
    }

    // Depth.

    /// Runs `parse` for a nested construct. Fails if the nesting or the tree gets deeper than `DEPTH_MAX`.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= DEPTH_MAX {
            return Err(TOO_DEEP);
        }
        self.depth += 1;
        let outer_height = std::mem::take(&mut self.height);
        let parsed = parse(self)?;
        self.depth -= 1;
        self.grow()?;
        self.height = self.height.max(outer_height);
        Ok(parsed)
    }

    /// Runs `parse`. If it fails, restores the state and returns `None`; but `TooDeep` and `Invalid` are returned as errors.
    fn attempt<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<Option<T>> {
        let (position, depth, height) = (self.position, self.depth, self.height);
        let marker_count = self.markers.len();
        match parse(self) {
            Ok(parsed) => Ok(Some(parsed)),
            Err(fault @ (Fault::TooDeep { .. } | Fault::Invalid(_))) => Err(fault),
            Err(_) => {
                (self.position, self.depth, self.height) = (position, depth, height);
                self.markers.truncate(marker_count);
                Ok(None)
            }
        }
    }

    /// Adds a node on top of the highest tree.
    fn grow(&mut self) -> Result<()> {
        self.height += 1;
        if self.height > DEPTH_MAX {
            Err(TOO_DEEP)
        } else {
            Ok(())
        }
    }

    // Shapes of several statements.

    /// `item (',' item)*`
    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let first = item(self)?;
        if !self.at(Kind::Comma) {
            return Ok(vec![first]);
        }
        // Lists with two items often have more.
        let mut items = Vec::with_capacity(6);
        items.push(first);
        while self.eat(Kind::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// `'(' item (',' item)* ')'`
    fn parenthesized<T>(&mut self, item: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.expect(Kind::OpenParen)?;
        let items = self.list(item)?;
        self.expect(Kind::CloseParen)?;
        Ok(items)
    }

    /// `'(' (item (',' item)*)? ')'`
    fn parenthesized_or_empty<T>(&mut self, item: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        if self.at(Kind::OpenParen) && self.peek(1) == Kind::CloseParen {
            self.position += 2;
            return Ok(Vec::new());
        }
        self.parenthesized(item)
    }

    /// `item (AND item)*`
    fn joined_by_and<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.eat_word(Keyword::And) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn if_not_exists(&mut self) -> Result<bool> {
        if !self.eat_word(Keyword::If) {
            return Ok(false);
        }
        self.expect_word(Keyword::Not)?;
        self.expect_word(Keyword::Exists)?;
        Ok(true)
    }

    fn if_exists(&mut self) -> Result<bool> {
        if !self.eat_word(Keyword::If) {
            return Ok(false);
        }
        self.expect_word(Keyword::Exists)?;
        Ok(true)
    }

    fn string(&mut self) -> Result<String> {
        let token = if self.at(Kind::DollarString) {
            self.advance()
        } else {
            self.expect(Kind::String)?
        };
        Ok(unquoted(self.text, token))
    }

    fn at_string(&self) -> bool {
        matches!(self.kind(), Kind::String | Kind::DollarString)
    }
}
