//! Terms: constants, markers, collections, calls and arithmetic without columns.

use super::{Parser, Result};
use crate::Marker;
use crate::ast::{ArithmeticOperator, BindMarker, CqlTypeName, Literal, Term};
use crate::keyword::Keyword;
use crate::lexer::unquoted;
use crate::token::Kind;

impl Parser<'_> {
    /// `product (('+' | '-') product)*`
    pub(crate) fn term(&mut self) -> Result<Term> {
        // Most terms are one token; for these the descent below is skipped.
        if matches!(
            self.peek(1),
            Kind::Comma | Kind::CloseParen | Kind::End | Kind::Keyword(Keyword::And | Keyword::Or)
        ) {
            match self.kind() {
                kind if kind.is_literal() => return self.literal().map(Term::Literal),
                Kind::Question => return self.marker().map(Term::Bind),
                _ => {}
            }
        }
        let outer_height = std::mem::take(&mut self.height);
        let mut term = self.term_product()?;
        while let Some(operator) = self.additive_operator() {
            // In `SET l = [1] + l` the sum ends before the column; no term starts with a column.
            if operator == ArithmeticOperator::Add && self.is_bare_column(1) {
                match self.peek(2) {
                    Kind::Comma | Kind::Keyword(Keyword::Where) => break,
                    _ => return self.unexpected_at(2),
                }
            }
            self.advance();
            let right = self.term_product()?;
            self.grow()?;
            term = arithmetic(operator, term, right);
        }
        self.height = self.height.max(outer_height);
        Ok(term)
    }

    fn term_product(&mut self) -> Result<Term> {
        let mut term = self.signed_term()?;
        while let Some(operator) = self.multiplicative_operator() {
            self.advance();
            let right = self.signed_term()?;
            self.grow()?;
            term = arithmetic(operator, term, right);
        }
        if ends_term(self.kind()) {
            Ok(term)
        } else {
            self.unexpected()
        }
    }

    fn signed_term(&mut self) -> Result<Term> {
        if !self.eat(Kind::Minus) {
            return self.simple_term();
        }
        self.nested(Self::simple_term)
            .map(|term| Term::Negate(Box::new(term)))
    }

    /// The operator here, if it is `+` or `-`.
    pub(super) fn additive_operator(&self) -> Option<ArithmeticOperator> {
        match self.kind() {
            Kind::Plus => Some(ArithmeticOperator::Add),
            Kind::Minus => Some(ArithmeticOperator::Subtract),
            _ => None,
        }
    }

    /// The operator here, if it is `*`, `/` or `%`.
    pub(super) fn multiplicative_operator(&self) -> Option<ArithmeticOperator> {
        match self.kind() {
            Kind::Star => Some(ArithmeticOperator::Multiply),
            Kind::Slash => Some(ArithmeticOperator::Divide),
            Kind::Percent => Some(ArithmeticOperator::Modulo),
            _ => None,
        }
    }

    /// True if the token `ahead` is a column's name, not the start of a call.
    pub(super) fn is_bare_column(&self, ahead: usize) -> bool {
        let kind = self.peek(ahead);
        kind == Kind::EmptyQuotedName
            || kind.is_name() && !matches!(self.peek(ahead + 1), Kind::OpenParen | Kind::Dot)
    }

    fn simple_term(&mut self) -> Result<Term> {
        match self.kind() {
            kind if kind.is_literal() => self.literal().map(Term::Literal),
            Kind::Question | Kind::Colon => self.marker().map(Term::Bind),
            Kind::OpenBracket => self.nested(Self::list_literal),
            Kind::OpenBrace => self.nested(Self::braced_literal),
            Kind::OpenParen if self.is_type_hint() => self.nested(Self::term_hint),
            Kind::OpenParen => self.tuple_literal(),
            Kind::Keyword(Keyword::Cast) if self.peek(1) == Kind::OpenParen => self.nested(Self::term_cast),
            kind if kind.is_function_name() || kind.is_name() => self.nested(Self::call),
            _ => self.unexpected(),
        }
    }

    /// A constant or null.
    pub(super) fn literal(&mut self) -> Result<Literal> {
        let token = self.token(0);
        let slice = self.slice(token);
        let literal = match token.kind {
            Kind::String | Kind::DollarString => Literal::String(unquoted(self.text, token)),
            Kind::Integer => Literal::Integer(slice.into()),
            Kind::Float => Literal::Float(slice.into()),
            Kind::Duration => Literal::Duration(slice.into()),
            Kind::Uuid => Literal::Uuid(slice.into()),
            Kind::Hex => Literal::Blob(slice.get(2..).unwrap_or_default().into()),
            Kind::NegativeNan | Kind::Keyword(Keyword::Nan) => Literal::NaN,
            Kind::NegativeInfinity => Literal::NegativeInfinity,
            Kind::Keyword(Keyword::Infinity) => Literal::Infinity,
            Kind::Keyword(Keyword::True) => Literal::Boolean(true),
            Kind::Keyword(Keyword::False) => Literal::Boolean(false),
            Kind::Keyword(Keyword::Null) => Literal::Null,
            _ => return self.unexpected(),
        };
        self.advance();
        Ok(literal)
    }

    /// `'?'` or `':' name`
    pub(super) fn marker(&mut self) -> Result<BindMarker> {
        let name = match self.kind() {
            Kind::Question => {
                self.advance();
                None
            }
            Kind::Colon => {
                self.advance();
                Some(self.identifier()?)
            }
            _ => return self.unexpected(),
        };
        let index = self.markers.len();
        self.markers.push(Marker { name: name.clone() });
        Ok(BindMarker { index, name })
    }

    /// An integer or a marker, for `LIMIT` and `USING`.
    pub(super) fn integer_or_marker(&mut self) -> Result<Term> {
        match self.kind() {
            Kind::Integer => self.literal().map(Term::Literal),
            _ => self.marker().map(Term::Bind),
        }
    }

    fn list_literal(&mut self) -> Result<Term> {
        self.advance();
        let mut members = Vec::new();
        if !self.at(Kind::CloseBracket) {
            members = self.list(Self::term)?;
        }
        self.expect(Kind::CloseBracket)?;
        Ok(Term::List(members))
    }

    /// A set, map or user type.
    fn braced_literal(&mut self) -> Result<Term> {
        if self.peek(1).is_name() && self.peek(2) == Kind::Colon {
            self.advance();
            return self.user_type_literal();
        }
        if self.is_bare_column(1) {
            return self.unexpected_at(2);
        }
        self.advance();
        if self.eat(Kind::CloseBrace) {
            return Ok(Term::Set(Vec::new()));
        }
        let first = self.term()?;
        if self.eat(Kind::Colon) {
            let value = self.term()?;
            return self.map_literal(first, value);
        }
        let mut members = vec![first];
        while self.eat(Kind::Comma) {
            members.push(self.term()?);
        }
        self.expect(Kind::CloseBrace)?;
        Ok(Term::Set(members))
    }

    fn map_literal(&mut self, key: Term, value: Term) -> Result<Term> {
        let mut entries = vec![(key, value)];
        while self.eat(Kind::Comma) {
            let key = self.term()?;
            self.expect(Kind::Colon)?;
            entries.push((key, self.term()?));
        }
        self.expect(Kind::CloseBrace)?;
        Ok(Term::Map(entries))
    }

    fn user_type_literal(&mut self) -> Result<Term> {
        let fields = self.list(|parser| {
            let field = parser.identifier()?;
            parser.expect(Kind::Colon)?;
            Ok((field, parser.term()?))
        })?;
        self.expect(Kind::CloseBrace)?;
        Ok(Term::UserType(fields))
    }

    /// `'(' term (',' term)* ')'`
    pub(super) fn tuple_literal(&mut self) -> Result<Term> {
        self.nested(|parser| parser.parenthesized(Self::term))
            .map(Term::Tuple)
    }

    /// True if the parenthesis here opens a type hint, not a tuple.
    fn is_type_hint(&self) -> bool {
        match self.peek(1) {
            Kind::String | Kind::DollarString => self.peek(2) == Kind::CloseParen && self.begins_term(3),
            Kind::Keyword(Keyword::Set) => true,
            kind if kind.is_name() => match self.peek(2) {
                Kind::OpenParen => false,
                Kind::Dot => self.peek(4) != Kind::OpenParen,
                _ => true,
            },
            _ => false,
        }
    }

    fn begins_term(&self, ahead: usize) -> bool {
        match self.peek(ahead) {
            // Otherwise the colon of a map, before a word that cannot be a marker's name.
            Kind::Colon => self.is_bare_column(ahead + 1),
            Kind::Question | Kind::OpenBracket | Kind::OpenBrace | Kind::OpenParen => true,
            kind => kind.is_literal() || self.is_any_name(ahead) && !self.is_bare_column(ahead),
        }
    }

    fn term_hint(&mut self) -> Result<Term> {
        self.advance();
        let type_name = self.type_name()?;
        self.expect(Kind::CloseParen)?;
        Ok(Term::TypeHint {
            type_name,
            term: Box::new(self.simple_term()?),
        })
    }

    fn term_cast(&mut self) -> Result<Term> {
        self.advance();
        self.advance();
        let term = Box::new(self.simple_term()?);
        self.expect_word(Keyword::As)?;
        let type_name = CqlTypeName::Native(self.native_type()?);
        self.expect(Kind::CloseParen)?;
        Ok(Term::Cast { term, type_name })
    }

    fn call(&mut self) -> Result<Term> {
        if self.is_bare_column(0) {
            return self.unexpected_at(1);
        }
        if self.peek(1) == Kind::Dot && self.peek(2).is_function_name() && self.peek(3) != Kind::OpenParen {
            return self.unexpected_at(3);
        }
        let name = self.function_name()?;
        Ok(Term::Function {
            name,
            arguments: self.parenthesized_or_empty(Self::term)?,
        })
    }
}

/// True if this token may follow a term. Compat: Cassandra looks at it while it still reads the term, so its message names no
/// expected token.
fn ends_term(kind: Kind) -> bool {
    match kind {
        Kind::Keyword(word) => matches!(
            word,
            Keyword::Allow
                | Keyword::And
                | Keyword::Apply
                | Keyword::As
                | Keyword::Asc
                | Keyword::Delete
                | Keyword::Desc
                | Keyword::From
                | Keyword::Group
                | Keyword::If
                | Keyword::Insert
                | Keyword::Limit
                | Keyword::Or
                | Keyword::Order
                | Keyword::Per
                | Keyword::Primary
                | Keyword::Update
                | Keyword::Where
        ),
        Kind::CloseParen
        | Kind::CloseBracket
        | Kind::CloseBrace
        | Kind::Comma
        | Kind::Colon
        | Kind::Range
        | Kind::Plus
        | Kind::Minus
        | Kind::Semicolon
        | Kind::End => true,
        _ => false,
    }
}

fn arithmetic(operator: ArithmeticOperator, left: Term, right: Term) -> Term {
    Term::Arithmetic {
        operator,
        left: Box::new(left),
        right: Box::new(right),
    }
}
