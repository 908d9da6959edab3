//! `WHERE`: relations between columns and terms.

use super::{Parser, Result};
use crate::ast::{Identifier, Operand, Operator, Relation, Span, Subject, Term};
use crate::keyword::Keyword;
use crate::token::Kind;

impl Parser<'_> {
    /// An optional `WHERE`.
    pub(super) fn optional_where(&mut self) -> Result<Vec<Relation>> {
        if !self.eat_word(Keyword::Where) {
            return Ok(Vec::new());
        }
        self.alternatives()
    }

    /// A required `WHERE`.
    pub(super) fn required_where(&mut self) -> Result<Vec<Relation>> {
        self.expect_word(Keyword::Where)?;
        self.alternatives()
    }

    /// Relations joined by `AND` and by `OR`, which binds more weakly.
    fn alternatives(&mut self) -> Result<Vec<Relation>> {
        let start = self.token(0).start as usize;
        let first = self.conjunction()?;
        if !self.at_word(Keyword::Or) {
            return Ok(first);
        }
        let mut branches = vec![first];
        while self.eat_word(Keyword::Or) {
            branches.push(self.conjunction()?);
        }
        Ok(vec![Relation {
            subject: Subject::AnyOf(branches),
            operator: Operator::Or,
            operand: Operand::None,
            span: self.span_from(start),
        }])
    }

    fn conjunction(&mut self) -> Result<Vec<Relation>> {
        let mut relations = Vec::new();
        loop {
            if self.at(Kind::OpenParen) && !self.is_tuple_of_columns() {
                relations.extend(self.nested(Self::parenthesized_relations)?);
            } else {
                relations.push(self.relation()?);
            }
            if !self.eat_word(Keyword::And) {
                return Ok(relations);
            }
        }
    }

    fn span_from(&self, start: usize) -> Span {
        let last = self.tokens.get(self.position.wrapping_sub(1));
        Span {
            start,
            end: last.map_or(start, |token| token.end as usize),
        }
    }

    fn relation(&mut self) -> Result<Relation> {
        let start = self.token(0).start as usize;
        let (subject, operator, operand) = match self.kind() {
            Kind::ExprOpen => self.index_expression()?,
            Kind::OpenParen => self.columns_relation()?,
            Kind::Keyword(Keyword::Token) => self.token_relation()?,
            _ => self.column_relation()?,
        };
        Ok(Relation {
            subject,
            operator,
            operand,
            span: self.span_from(start),
        })
    }

    fn parenthesized_relations(&mut self) -> Result<Vec<Relation>> {
        self.advance();
        let relations = self.alternatives()?;
        self.expect(Kind::CloseParen)?;
        Ok(relations)
    }

    /// True if the parenthesis here opens `(a, b)` or `(a)`, not a relation.
    fn is_tuple_of_columns(&self) -> bool {
        (self.peek(1).is_name() || self.peek(1) == Kind::EmptyQuotedName)
            && matches!(self.peek(2), Kind::Comma | Kind::CloseParen)
    }

    fn index_expression(&mut self) -> Result<(Subject, Operator, Operand)> {
        self.advance();
        let index = self.name_of("index")?;
        self.expect(Kind::Comma)?;
        let term = self.term()?;
        self.expect(Kind::CloseParen)?;
        Ok((
            Subject::Index(index),
            Operator::IndexExpression,
            Operand::Term(term),
        ))
    }

    fn token_relation(&mut self) -> Result<(Subject, Operator, Operand)> {
        self.advance();
        let subject = Subject::Token(self.parenthesized(Self::column)?);
        let operator = self.comparison()?;
        Ok((subject, operator, Operand::Term(self.term()?)))
    }

    fn columns_relation(&mut self) -> Result<(Subject, Operator, Operand)> {
        let subject = Subject::Columns(self.parenthesized(Self::column)?);
        if self.eat_word(Keyword::In) {
            return Ok((subject, Operator::In, self.tuples_in()?));
        }
        // Compat: the following token is checked before the operator is taken.
        if !matches!(self.peek(1), Kind::OpenParen | Kind::Question | Kind::Colon) {
            self.comparison_at(0)?;
            return self.unexpected_at(1);
        }
        let operator = self.comparison()?;
        Ok((subject, operator, Operand::Term(self.tuple_or_marker()?)))
    }

    /// The right side of `(a, b) IN`: a marker, or a list with only tuples or only markers.
    fn tuples_in(&mut self) -> Result<Operand> {
        if !self.at(Kind::OpenParen) {
            return self.marker().map(|marker| Operand::Term(Term::Bind(marker)));
        }
        let members = match self.peek(1) {
            Kind::OpenParen => self.parenthesized(|parser| {
                if !parser.at(Kind::OpenParen) {
                    parser.expect(Kind::OpenParen)?;
                }
                parser.tuple_literal()
            })?,
            _ => self.parenthesized_or_empty(|parser| parser.marker().map(Term::Bind))?,
        };
        Ok(Operand::List(members))
    }

    fn tuple_or_marker(&mut self) -> Result<Term> {
        match self.kind() {
            Kind::OpenParen => self.tuple_literal(),
            _ => self.marker().map(Term::Bind),
        }
    }

    fn column_relation(&mut self) -> Result<(Subject, Operator, Operand)> {
        if !self.is_followed_by_operator() {
            return self.unexpected_at(1);
        }
        let is_bad_in = self.peek_word(1, Keyword::In)
            && !matches!(self.peek(2), Kind::OpenParen | Kind::Question | Kind::Colon);
        if is_bad_in {
            return self.unexpected_at(2);
        }
        let column = self.column()?;
        if self.eat(Kind::OpenBracket) {
            return self.element_relation(column);
        }
        let subject = Subject::Column(column);
        match self.kind() {
            Kind::Keyword(Keyword::Is) => {
                self.advance();
                self.expect_word(Keyword::Not)?;
                self.expect_word(Keyword::Null)?;
                Ok((subject, Operator::IsNotNull, Operand::None))
            }
            Kind::Keyword(Keyword::Like) => {
                self.advance();
                Ok((subject, Operator::Like, Operand::Term(self.term()?)))
            }
            Kind::Colon => {
                self.advance();
                Ok((subject, Operator::AnalyzerMatches, Operand::Term(self.term()?)))
            }
            _ => {
                let (operator, operand) = self.comparison_or_membership()?;
                Ok((subject, operator, operand))
            }
        }
    }

    /// Compat: Cassandra checks the token after the column before it takes the column, so its message is about the column.
    fn is_followed_by_operator(&self) -> bool {
        let is_column = self.kind().is_name() || self.at(Kind::EmptyQuotedName);
        !is_column
            || matches!(
                self.peek(1),
                Kind::Equal
                    | Kind::NotEqual
                    | Kind::Less
                    | Kind::LessOrEqual
                    | Kind::Greater
                    | Kind::GreaterOrEqual
                    | Kind::OpenBracket
                    | Kind::Colon
                    | Kind::Keyword(Keyword::In | Keyword::Contains | Keyword::Like | Keyword::Is)
            )
    }

    fn element_relation(&mut self, column: Identifier) -> Result<(Subject, Operator, Operand)> {
        let key = self.term()?;
        self.expect(Kind::CloseBracket)?;
        let operator = self.comparison()?;
        Ok((
            Subject::Element { column, key },
            operator,
            Operand::Term(self.term()?),
        ))
    }

    /// `CONTAINS`, `CONTAINS KEY`, `IN` or a comparison, with its right side.
    pub(super) fn comparison_or_membership(&mut self) -> Result<(Operator, Operand)> {
        if self.at_word(Keyword::In) {
            return self.membership();
        }
        let operator = if self.eat_word(Keyword::Contains) {
            if self.peek(1) != Kind::Dot && self.eat_word(Keyword::Key) {
                Operator::ContainsKey
            } else {
                Operator::Contains
            }
        } else {
            self.comparison()?
        };
        Ok((operator, Operand::Term(self.term()?)))
    }

    /// `IN` or a comparison, with its right side.
    pub(super) fn comparison_or_in(&mut self) -> Result<(Operator, Operand)> {
        if self.at_word(Keyword::In) {
            return self.membership();
        }
        let operator = self.comparison()?;
        Ok((operator, Operand::Term(self.term()?)))
    }

    fn membership(&mut self) -> Result<(Operator, Operand)> {
        self.advance();
        let operand = match self.kind() {
            Kind::OpenParen => Operand::List(self.parenthesized_or_empty(Self::term)?),
            _ => Operand::Term(Term::Bind(self.marker()?)),
        };
        Ok((Operator::In, operand))
    }

    fn comparison(&mut self) -> Result<Operator> {
        let operator = self.comparison_at(0)?;
        self.advance();
        Ok(operator)
    }

    fn comparison_at(&self, ahead: usize) -> Result<Operator> {
        Ok(match self.peek(ahead) {
            Kind::Equal => Operator::Equal,
            Kind::NotEqual => Operator::NotEqual,
            Kind::Less => Operator::Less,
            Kind::LessOrEqual => Operator::LessOrEqual,
            Kind::Greater => Operator::Greater,
            Kind::GreaterOrEqual => Operator::GreaterOrEqual,
            _ => return self.unexpected(),
        })
    }
}
