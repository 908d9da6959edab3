//! Selections: `*`, or expressions over columns.

use super::{Parser, Result};
use crate::ast::{ArithmeticOperator, QualifiedName, SelectItem, Selection, Selector};
use crate::keyword::Keyword;
use crate::token::Kind;

impl Parser<'_> {
    /// `*` or a list of expressions.
    pub(super) fn selection(&mut self) -> Result<Selection> {
        if self.eat(Kind::Star) {
            return Ok(Selection::All);
        }
        self.list(Self::select_item).map(Selection::Items)
    }

    fn select_item(&mut self) -> Result<SelectItem> {
        let selector = self.selector()?;
        let alias = if self.eat_word(Keyword::As) {
            Some(self.identifier()?)
        } else {
            None
        };
        Ok(SelectItem { selector, alias })
    }

    /// `product (('+' | '-') product)*`
    pub(crate) fn selector(&mut self) -> Result<Selector> {
        let outer_height = std::mem::take(&mut self.height);
        let selector = self.arithmetic(Self::additive_operator, Self::selector_product)?;
        self.height = self.height.max(outer_height);
        Ok(selector)
    }

    fn selector_product(&mut self) -> Result<Selector> {
        self.arithmetic(Self::multiplicative_operator, Self::selector_group)
    }

    /// `operand (operator operand)*`, from left to right.
    fn arithmetic(
        &mut self,
        operator: impl Fn(&Self) -> Option<ArithmeticOperator>,
        operand: impl Fn(&mut Self) -> Result<Selector>,
    ) -> Result<Selector> {
        let mut selector = operand(self)?;
        while let Some(operator) = operator(self) {
            self.advance();
            let right = Box::new(operand(self)?);
            self.grow()?;
            selector = Selector::Arithmetic {
                operator,
                left: Box::new(selector),
                right,
            };
        }
        Ok(selector)
    }

    fn selector_group(&mut self) -> Result<Selector> {
        if self.eat(Kind::Minus) {
            return self
                .nested(Self::selector_group)
                .map(|selector| Selector::Negate(Box::new(selector)));
        }
        let primary = self.primary()?;
        if matches!(primary, Selector::Column(_) | Selector::Literal(_)) {
            self.look_past();
        }
        if !matches!(self.kind(), Kind::Dot | Kind::OpenBracket) {
            return Ok(primary);
        }
        // Compat: if an element, slice or field after the primary cannot be parsed, the selector ends before all of them.
        let whole = primary.clone();
        Ok(self.attempt(|parser| parser.modified(primary))?.unwrap_or(whole))
    }

    /// Parses the elements, slices and fields that follow `selector`.
    fn modified(&mut self, mut selector: Selector) -> Result<Selector> {
        loop {
            if self.eat(Kind::Dot) {
                selector = Selector::Field {
                    of: Box::new(selector),
                    field: self.identifier()?,
                };
            } else if self.eat(Kind::OpenBracket) {
                selector = self.element_or_slice(selector)?;
                self.expect(Kind::CloseBracket)?;
            } else {
                return Ok(selector);
            }
            self.grow()?;
        }
    }

    fn element_or_slice(&mut self, of: Selector) -> Result<Selector> {
        let of = Box::new(of);
        if self.eat(Kind::Range) {
            return Ok(Selector::Slice {
                of,
                from: None,
                to: Some(self.term()?),
            });
        }
        let key = self.term()?;
        if !self.eat(Kind::Range) {
            return Ok(Selector::Element { of, key });
        }
        let to = if self.at(Kind::CloseBracket) {
            None
        } else {
            Some(self.term()?)
        };
        Ok(Selector::Slice {
            of,
            from: Some(key),
            to,
        })
    }

    fn primary(&mut self) -> Result<Selector> {
        match self.kind() {
            kind if kind.is_literal() => self.literal().map(Selector::Literal),
            Kind::Question | Kind::Colon => self.marker().map(Selector::Bind),
            Kind::OpenParen => self.nested(Self::parenthesized_selector),
            Kind::OpenBracket => self.nested(Self::selector_list),
            Kind::OpenBrace => self.nested(Self::braced_selector),
            Kind::Keyword(Keyword::Key | Keyword::Json | Keyword::Distinct)
                if self.peek(1) == Kind::OpenParen =>
            {
                self.unexpected_at(1)
            }
            Kind::Keyword(word) if self.peek(1) == Kind::OpenParen => self.nested(|p| p.keyword_call(word)),
            Kind::Keyword(Keyword::Token) => self.call_of_selectors(),
            kind if kind.is_name() => {
                let is_call = match self.peek(1) {
                    Kind::OpenParen => true,
                    Kind::Dot => self.peek(2).is_function_name() && self.peek(3) == Kind::OpenParen,
                    _ => false,
                };
                if is_call {
                    return self.nested(Self::call_of_selectors);
                }
                if !ends_selected_column(self.peek(1)) {
                    return self.unexpected_at(1);
                }
                self.identifier().map(Selector::Column)
            }
            _ => self.unexpected(),
        }
    }

    /// A keyword before a parenthesis: a special form, or a function of that name.
    fn keyword_call(&mut self, word: Keyword) -> Result<Selector> {
        match word {
            Keyword::Count if self.peek(2) == Kind::Star => {
                self.advance();
                self.advance();
                self.advance();
                self.expect(Kind::CloseParen)?;
                Ok(Selector::CountRows)
            }
            Keyword::Writetime => self.metadata(Selector::Writetime),
            Keyword::Maxwritetime => self.metadata(Selector::MaxWritetime),
            Keyword::Ttl => self.metadata(Selector::Ttl),
            Keyword::Cast => self.selector_cast(),
            _ => self.call_of_selectors(),
        }
    }

    fn metadata(&mut self, form: fn(Box<Selector>) -> Selector) -> Result<Selector> {
        self.advance();
        self.advance();
        let column = self.identifier().map(Selector::Column)?;
        let part = self.modified(column)?;
        self.expect(Kind::CloseParen)?;
        Ok(form(Box::new(part)))
    }

    fn selector_cast(&mut self) -> Result<Selector> {
        self.advance();
        self.advance();
        let selector = Box::new(self.selector()?);
        self.expect_word(Keyword::As)?;
        let native_type = self.native_type()?;
        self.expect(Kind::CloseParen)?;
        Ok(Selector::Cast {
            selector,
            native_type,
        })
    }

    fn call_of_selectors(&mut self) -> Result<Selector> {
        let name: QualifiedName = self.function_name()?;
        Ok(Selector::Function {
            name,
            arguments: self.selector_arguments()?,
        })
    }

    fn selector_arguments(&mut self) -> Result<Vec<Selector>> {
        self.expect(Kind::OpenParen)?;
        let arguments = self.selectors_before(Kind::CloseParen)?;
        self.expect(Kind::CloseParen)?;
        Ok(arguments)
    }

    /// Selectors up to `end`; none if no selector starts here.
    fn selectors_before(&mut self, end: Kind) -> Result<Vec<Selector>> {
        let is_there = self.begins_primary(0) || self.at(Kind::Minus) || self.at_word(Keyword::As);
        if is_there && !self.at(end) {
            self.list(Self::selector)
        } else {
            Ok(Vec::new())
        }
    }

    /// A type hint, a tuple, or one selector in parentheses.
    fn parenthesized_selector(&mut self) -> Result<Selector> {
        if let Some(hint) = self.selector_hint()? {
            return Ok(hint);
        }
        let mut members = self.parenthesized(Self::selector)?;
        match members.pop() {
            Some(only) if members.is_empty() => Ok(only),
            last => {
                members.extend(last);
                Ok(Selector::Tuple(members))
            }
        }
    }

    /// A type hint, if the parentheses contain a type and a value follows them.
    fn selector_hint(&mut self) -> Result<Option<Selector>> {
        let could_be_type = matches!(self.peek(1), Kind::String | Kind::DollarString)
            || self.peek_word(1, Keyword::Set)
            || self.peek(1).is_name();
        if !could_be_type {
            return Ok(None);
        }
        self.attempt(|parser| {
            parser.advance();
            let type_name = parser.type_name()?;
            parser.expect(Kind::CloseParen)?;
            if !parser.begins_primary(0) {
                return parser.unexpected();
            }
            let selector = Box::new(parser.primary()?);
            Ok(Selector::TypeHint { type_name, selector })
        })
    }

    /// True if the token `ahead` starts a selector other than a negation.
    pub(super) fn begins_primary(&self, ahead: usize) -> bool {
        match self.peek(ahead) {
            Kind::Question | Kind::Colon | Kind::OpenParen | Kind::OpenBracket | Kind::OpenBrace => true,
            // `(a) AS b` has an alias, although a column may be named `as`.
            Kind::Keyword(Keyword::As) => matches!(self.peek(ahead + 1), Kind::OpenParen | Kind::Dot),
            Kind::Keyword(Keyword::Token) => true,
            kind => kind.is_literal() || kind.is_name(),
        }
    }

    fn selector_list(&mut self) -> Result<Selector> {
        self.advance();
        let members = self.selectors_before(Kind::CloseBracket)?;
        self.expect(Kind::CloseBracket)?;
        Ok(Selector::List(members))
    }

    fn braced_selector(&mut self) -> Result<Selector> {
        self.advance();
        if self.eat(Kind::CloseBrace) {
            return Ok(Selector::Set(Vec::new()));
        }
        let first = self.selector()?;
        if self.eat(Kind::Colon) {
            let value = self.selector()?;
            return self.map_of_selectors(first, value);
        }
        let mut members = vec![first];
        while self.eat(Kind::Comma) {
            members.push(self.selector()?);
        }
        self.expect(Kind::CloseBrace)?;
        Ok(Selector::Set(members))
    }

    fn map_of_selectors(&mut self, key: Selector, value: Selector) -> Result<Selector> {
        let mut entries = vec![(key, value)];
        while self.eat(Kind::Comma) {
            let key = self.selector()?;
            self.expect(Kind::Colon)?;
            entries.push((key, self.selector()?));
        }
        self.expect(Kind::CloseBrace)?;
        Ok(Selector::MapOrUserType(entries))
    }
}

/// True if this token may follow a column in a selector. Compat: Cassandra looks at it to distinguish a column from a call.
fn ends_selected_column(kind: Kind) -> bool {
    match kind {
        Kind::Keyword(word) => matches!(
            word,
            Keyword::Allow | Keyword::As | Keyword::From | Keyword::Limit | Keyword::Order | Keyword::Per
        ),
        Kind::CloseParen
        | Kind::CloseBracket
        | Kind::CloseBrace
        | Kind::OpenBracket
        | Kind::Comma
        | Kind::Colon
        | Kind::Dot
        | Kind::Plus
        | Kind::Minus
        | Kind::Star
        | Kind::Slash
        | Kind::Percent
        | Kind::Semicolon
        | Kind::End => true,
        _ => false,
    }
}
