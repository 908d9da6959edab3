//! User-defined functions and aggregates.

use super::{Parser, Result};
use crate::ast::{
    CqlTypeName, CreateAggregate, CreateFunction, CreateMode, DropFunction, Identifier, Statement,
};
use crate::keyword::Keyword;
use crate::token::Kind;

impl Parser<'_> {
    pub(super) fn create_function_or_aggregate(&mut self) -> Result<Statement> {
        self.advance();
        let mut or_replace = false;
        if self.eat_word(Keyword::Or) {
            self.expect_word(Keyword::Replace)?;
            or_replace = true;
        }
        let is_aggregate = self.at_word(Keyword::Aggregate);
        if !is_aggregate && !self.at_word(Keyword::Function) {
            return self.unexpected();
        }
        self.advance();
        let mode = CreateMode {
            or_replace,
            if_not_exists: self.if_not_exists()?,
        };
        if is_aggregate {
            self.create_aggregate(mode)
        } else {
            self.create_function(mode)
        }
    }

    fn create_function(&mut self, mode: CreateMode) -> Result<Statement> {
        let name = self.function_name()?;
        let arguments = self.parenthesized_or_empty(Self::argument_definition)?;
        let called_on_null_input = self.called_on_null_input()?;
        self.expect_word(Keyword::Returns)?;
        let return_type = self.type_name()?;
        self.expect_word(Keyword::Language)?;
        let language = self.expect(Kind::Identifier)?;
        let language = self.folded(language);
        self.expect_word(Keyword::As)?;
        let body = self.string()?;
        let create = CreateFunction {
            mode,
            name,
            arguments,
            called_on_null_input,
            return_type,
            language,
            body,
        };
        Ok(Statement::CreateFunction(Box::new(create)))
    }

    fn argument_definition(&mut self) -> Result<(Identifier, CqlTypeName)> {
        Ok((self.identifier()?, self.type_name()?))
    }

    /// `RETURNS NULL ON NULL INPUT` or `CALLED ON NULL INPUT`
    fn called_on_null_input(&mut self) -> Result<bool> {
        let is_called = self.eat_word(Keyword::Called);
        if !is_called {
            if !self.eat_word(Keyword::Returns) {
                return self.unexpected();
            }
            self.expect_word(Keyword::Null)?;
        }
        self.expect_word(Keyword::On)?;
        self.expect_word(Keyword::Null)?;
        self.expect_word(Keyword::Input)?;
        Ok(is_called)
    }

    fn create_aggregate(&mut self, mode: CreateMode) -> Result<Statement> {
        let name = self.function_name()?;
        let argument_types = self.parenthesized_or_empty(Self::type_name)?;
        self.expect_word(Keyword::Sfunc)?;
        let state_function = self.bare_function_name()?;
        self.expect_word(Keyword::Stype)?;
        let state_type = self.type_name()?;
        let final_function = if self.eat_word(Keyword::Finalfunc) {
            Some(self.bare_function_name()?)
        } else {
            None
        };
        let initial_state = if self.eat_word(Keyword::Initcond) {
            Some(self.term()?)
        } else {
            None
        };
        Ok(Statement::CreateAggregate(Box::new(CreateAggregate {
            mode,
            name,
            argument_types,
            state_function,
            state_type,
            final_function,
            initial_state,
        })))
    }

    pub(super) fn dropped_function(&mut self) -> Result<DropFunction> {
        self.advance();
        self.advance();
        let if_exists = self.if_exists()?;
        let name = self.function_name()?;
        let argument_types = match self.kind() {
            Kind::OpenParen => Some(self.parenthesized_or_empty(Self::type_name)?),
            _ => None,
        };
        Ok(DropFunction {
            if_exists,
            name,
            argument_types,
        })
    }
}
