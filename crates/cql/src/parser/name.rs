//! Names of keyspaces, tables, columns and functions.

use super::{Parser, Result};
use crate::ast::{Identifier, QualifiedName};
use crate::fault::Fault;
use crate::keyword::Keyword;
use crate::lexer::unquoted;
use crate::token::{Kind, Token};

impl<'a> Parser<'a> {
    /// The text of a token.
    pub(super) fn slice(&self, token: Token) -> &'a str {
        self.text
            .get(token.start as usize..token.end as usize)
            .unwrap_or_default()
    }

    /// The name in a token, case-folded.
    pub(super) fn folded(&self, token: Token) -> Identifier {
        match token.kind {
            Kind::QuotedName | Kind::EmptyQuotedName => unquoted_name(self.text, token),
            _ => self.slice(token).to_ascii_lowercase(),
        }
    }

    /// The name of a column in a definition, of a field, or of an alias.
    pub(super) fn identifier(&mut self) -> Result<Identifier> {
        if !self.kind().is_name() {
            return self.unexpected();
        }
        let token = self.advance();
        Ok(self.folded(token))
    }

    /// The name of a column; may be `""`, in tables from Thrift.
    pub(super) fn column(&mut self) -> Result<Identifier> {
        if self.eat(Kind::EmptyQuotedName) {
            return Ok(Identifier::new());
        }
        self.identifier()
    }

    pub(super) fn keyspace(&mut self) -> Result<Identifier> {
        self.name_of("keyspace")
    }

    pub(super) fn name_of(&mut self, what: &str) -> Result<Identifier> {
        if self.at(Kind::Question) {
            return Err(Fault::Rule(format!(
                "Bind variables cannot be used for {what} names"
            )));
        }
        self.identifier()
    }

    pub(super) fn table_name(&mut self) -> Result<QualifiedName> {
        self.qualified_name("table")
    }

    /// `(keyspace '.')? name`
    pub(super) fn qualified_name(&mut self, what: &str) -> Result<QualifiedName> {
        if self.peek(1) == Kind::Dot {
            let keyspace = self.keyspace()?;
            self.advance();
            return Ok(QualifiedName {
                keyspace: Some(keyspace),
                name: self.name_of(what)?,
            });
        }
        let is_name = self.kind().is_name() || self.at(Kind::Question);
        if is_name && !ends_table_name(self.peek(1)) {
            return self.unexpected_at(1);
        }
        let name = self.name_of(what)?;
        self.look_past();
        Ok(QualifiedName { keyspace: None, name })
    }

    /// True if the token `ahead` is a name of any kind of object.
    pub(super) fn is_any_name(&self, ahead: usize) -> bool {
        self.peek(ahead).is_name() || self.peek(ahead).is_function_name()
    }

    /// `(keyspace '.')? name` of a function.
    pub(super) fn function_name(&mut self) -> Result<QualifiedName> {
        let mut keyspace = None;
        if self.peek(1) == Kind::Dot {
            keyspace = Some(self.keyspace()?);
            self.advance();
        } else if self.kind().is_name() && !self.kind().is_function_name() {
            // A keyword that cannot name a function can only be a keyspace here.
            self.advance();
            self.expect(Kind::Dot)?;
        }
        Ok(QualifiedName {
            keyspace,
            name: self.bare_function_name()?,
        })
    }

    pub(super) fn bare_function_name(&mut self) -> Result<Identifier> {
        if !self.kind().is_function_name() {
            return self.unexpected();
        }
        let token = self.advance();
        Ok(self.folded(token))
    }
}

/// True if this token may follow the name of a table. Compat: Cassandra looks at it to distinguish a table from a keyspace, so
/// its message is about the name.
fn ends_table_name(kind: Kind) -> bool {
    match kind {
        Kind::Keyword(word) => matches!(
            word,
            Keyword::Add
                | Keyword::Allow
                | Keyword::Alter
                | Keyword::As
                | Keyword::Drop
                | Keyword::From
                | Keyword::Group
                | Keyword::Json
                | Keyword::Like
                | Keyword::Limit
                | Keyword::Norecursive
                | Keyword::Of
                | Keyword::Order
                | Keyword::Per
                | Keyword::Primary
                | Keyword::Rename
                | Keyword::Set
                | Keyword::To
                | Keyword::Using
                | Keyword::Where
                | Keyword::With
        ),
        Kind::OpenParen | Kind::CloseParen | Kind::Comma | Kind::Semicolon | Kind::End => true,
        _ => false,
    }
}

fn unquoted_name(text: &str, token: Token) -> Identifier {
    if token.kind == Kind::EmptyQuotedName {
        Identifier::new()
    } else {
        unquoted(text, token)
    }
}
