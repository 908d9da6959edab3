//! The parser: recursive descent over the tokens of one statement.
//!
//! This file has the cursor, names and what all statements share; the submodules have the statements by family.
//! Compat: which alternative is tried, and which fault is raised where none fits, follows the grammar of
//! Cassandra 5.0, so that messages come out alike.
//!
//! Invariant: recursion, and the height of every tree, is bounded by `DEPTH_MAX`, whatever the text.

mod data;
mod definition;
mod describe;
mod function;
mod permission;
mod property;
mod relation;
mod role;
mod selection;
mod statement;
mod table;
mod term;
mod type_name;

pub(crate) use type_name::RESERVED_TYPE_NAMES;

use crate::Marker;
use crate::ast::{Identifier, QualifiedName};
use crate::fault::Fault;
use crate::keyword::Keyword;
use crate::lexer::{tokenize, unquoted};
use crate::token::{Kind, Token};

/// How deep terms, selectors, relations and types may nest, and how high their trees may be.
pub(crate) const DEPTH_MAX: u32 = 128;

pub(crate) type Result<T> = std::result::Result<T, Fault>;

/// The tokens of a text and how far they are consumed.
pub(crate) struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    position: usize,
    /// How many constructs the parser is inside of.
    depth: u32,
    /// The height of the highest tree yet among the parts of the innermost construct.
    height: u32,
    /// The bind markers met so far.
    pub(crate) markers: Vec<Marker>,
}

impl<'a> Parser<'a> {
    /// Requires: less than 4 GiB of text.
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            tokens: tokenize(text),
            position: 0,
            depth: 0,
            height: 0,
            markers: Vec::new(),
        }
    }

    // The cursor.

    fn token(&self, ahead: usize) -> Token {
        let nothing = Token {
            kind: Kind::End,
            start: self.text.len() as u32,
            end: self.text.len() as u32,
        };
        self.tokens
            .get(self.position + ahead)
            .or(self.tokens.last())
            .copied()
            .unwrap_or(nothing)
    }

    fn kind(&self) -> Kind {
        self.token(0).kind
    }

    fn peek(&self, ahead: usize) -> Kind {
        self.token(ahead).kind
    }

    /// Consumes a token; never the last.
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
        })
    }

    fn expect_word(&mut self, word: Keyword) -> Result<()> {
        self.expect(Kind::Keyword(word)).map(|_| ())
    }

    /// The end of the text, after any semicolons.
    pub(crate) fn end(&mut self) -> Result<()> {
        while self.eat(Kind::Semicolon) {}
        self.expect(Kind::End).map(|_| ())
    }

    // Faults.

    /// No alternative goes on with the token here.
    fn unexpected<T>(&self) -> Result<T> {
        self.unexpected_at(0)
    }

    /// No alternative of what begins here goes on with the token `ahead`.
    fn unexpected_at<T>(&self, ahead: usize) -> Result<T> {
        Err(Fault::NoAlternative {
            decision: self.token(0),
            offending: self.token(ahead),
        })
    }

    // Depth.

    /// Runs `parse` for what is nested in the construct here.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= DEPTH_MAX {
            return Err(too_deep());
        }
        self.depth += 1;
        let outer_height = std::mem::take(&mut self.height);
        let parsed = parse(self)?;
        self.depth -= 1;
        self.grow()?;
        self.height = self.height.max(outer_height);
        Ok(parsed)
    }

    /// Puts one more node on top of the highest tree.
    fn grow(&mut self) -> Result<()> {
        self.height += 1;
        if self.height > DEPTH_MAX {
            Err(too_deep())
        } else {
            Ok(())
        }
    }

    // Shapes that come up everywhere.

    /// `item (',' item)*`
    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = vec![item(self)?];
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

    // Names.

    /// What a token says, as it was written.
    fn slice(&self, token: Token) -> &'a str {
        self.text
            .get(token.start as usize..token.end as usize)
            .unwrap_or_default()
    }

    /// The name in a token that can be one.
    fn folded(&self, token: Token) -> Identifier {
        match token.kind {
            Kind::QuotedName | Kind::EmptyQuotedName => unquoted_name(self.text, token),
            _ => self.slice(token).to_ascii_lowercase(),
        }
    }

    /// A name of a column in a definition, of a field, or of an alias.
    fn identifier(&mut self) -> Result<Identifier> {
        if !self.kind().is_name() {
            return self.unexpected();
        }
        let token = self.advance();
        Ok(self.folded(token))
    }

    /// A name of a column; `""` is one, too, in tables that came from Thrift.
    fn column(&mut self) -> Result<Identifier> {
        if self.eat(Kind::EmptyQuotedName) {
            return Ok(Identifier::new());
        }
        self.identifier()
    }

    fn keyspace(&mut self) -> Result<Identifier> {
        self.name_of("keyspace")
    }

    fn name_of(&mut self, what: &str) -> Result<Identifier> {
        if self.at(Kind::Question) {
            return Err(Fault::Rule(format!(
                "Bind variables cannot be used for {what} names"
            )));
        }
        self.identifier()
    }

    fn table_name(&mut self) -> Result<QualifiedName> {
        self.qualified_name("table")
    }

    /// `(keyspace '.')? name`
    fn qualified_name(&mut self, what: &str) -> Result<QualifiedName> {
        if self.peek(1) == Kind::Dot {
            let keyspace = self.keyspace()?;
            self.advance();
            return Ok(QualifiedName {
                keyspace: Some(keyspace),
                name: self.name_of(what)?,
            });
        }
        let followed_badly = self.kind().is_name() && self.is_open_end(1);
        if followed_badly {
            return self.unexpected_at(1);
        }
        Ok(QualifiedName {
            keyspace: None,
            name: self.name_of(what)?,
        })
    }

    /// Whether the token `ahead` can follow no name of a table at all. Compat: Cassandra looks at it before it takes the
    /// name, and so blames it on the name.
    fn is_open_end(&self, ahead: usize) -> bool {
        matches!(self.peek(ahead), Kind::Identifier | Kind::QuotedName)
    }

    /// Whether the token `ahead` is a name of a table, function or whatever else.
    fn is_any_name(&self, ahead: usize) -> bool {
        self.peek(ahead).is_name() || self.peek(ahead).is_function_name()
    }

    /// `(keyspace '.')? name` of a function.
    fn function_name(&mut self) -> Result<QualifiedName> {
        let mut keyspace = None;
        if self.peek(1) == Kind::Dot {
            keyspace = Some(self.keyspace()?);
            self.advance();
        } else if self.kind().is_name() && !self.kind().is_function_name() {
            // Such a word could only be a keyspace.
            self.advance();
            self.expect(Kind::Dot)?;
        }
        Ok(QualifiedName {
            keyspace,
            name: self.bare_function_name()?,
        })
    }

    fn bare_function_name(&mut self) -> Result<Identifier> {
        if !self.kind().is_function_name() {
            return self.unexpected();
        }
        let token = self.advance();
        Ok(self.folded(token))
    }
}

fn unquoted_name(text: &str, token: Token) -> Identifier {
    if token.kind == Kind::EmptyQuotedName {
        Identifier::new()
    } else {
        unquoted(text, token)
    }
}

fn too_deep() -> Fault {
    Fault::Rule(format!("Statement is nested deeper than {DEPTH_MAX} levels"))
}
