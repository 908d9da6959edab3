//! `DESCRIBE`

use super::{Parser, Result};
use crate::ast::{Describe, DescribeTarget, QualifiedName, Statement};
use crate::keyword::Keyword;
use crate::token::Kind;

impl Parser<'_> {
    pub(super) fn describe(&mut self) -> Result<Statement> {
        self.advance();
        let target = self.describe_target()?;
        let mut with_internals = false;
        if self.eat_word(Keyword::With) {
            self.expect_word(Keyword::Internals)?;
            with_internals = true;
        }
        Ok(Statement::Describe(Describe {
            target,
            with_internals,
        }))
    }

    fn describe_target(&mut self) -> Result<DescribeTarget> {
        let Kind::Keyword(word) = self.kind() else {
            return self.describe_name();
        };
        let by_itself = match word {
            Keyword::Cluster => Some(DescribeTarget::Cluster),
            Keyword::Schema => Some(DescribeTarget::Schema),
            Keyword::Keyspaces => Some(DescribeTarget::Keyspaces),
            Keyword::Tables => Some(DescribeTarget::Tables),
            Keyword::Types => Some(DescribeTarget::Types),
            Keyword::Functions => Some(DescribeTarget::Functions),
            Keyword::Aggregates => Some(DescribeTarget::Aggregates),
            _ => None,
        };
        if let Some(target) = by_itself {
            self.advance();
            return Ok(target);
        }
        match word {
            Keyword::Full => {
                self.advance();
                self.expect_word(Keyword::Schema)?;
                Ok(DescribeTarget::FullSchema)
            }
            Keyword::Keyspace => self.described_keyspace().map(DescribeTarget::Keyspace),
            Keyword::Only if self.peek_word(1, Keyword::Keyspace) => {
                self.advance();
                self.described_keyspace().map(DescribeTarget::OnlyKeyspace)
            }
            Keyword::Table => self.described(Self::table_name).map(DescribeTarget::Table),
            Keyword::Index => self.described(Self::table_name).map(DescribeTarget::Index),
            Keyword::Materialized => {
                self.advance();
                if !self.at_word(Keyword::View) {
                    self.expect_word(Keyword::View)?;
                }
                self.described(Self::table_name).map(DescribeTarget::View)
            }
            // These three may also be names of objects.
            Keyword::Type if self.peek(1).is_name() => {
                self.described(Self::user_type_name).map(DescribeTarget::Type)
            }
            Keyword::Function if self.is_any_name(1) => {
                self.described(Self::function_name).map(DescribeTarget::Function)
            }
            Keyword::Aggregate if self.is_any_name(1) => {
                self.described(Self::function_name).map(DescribeTarget::Aggregate)
            }
            _ => self.describe_name(),
        }
    }

    fn described(&mut self, name: impl Fn(&mut Self) -> Result<QualifiedName>) -> Result<QualifiedName> {
        self.advance();
        name(self)
    }

    fn described_keyspace(&mut self) -> Result<Option<String>> {
        self.advance();
        match self.kind() {
            Kind::End | Kind::Semicolon | Kind::Keyword(Keyword::With) => Ok(None),
            _ => self.keyspace().map(Some),
        }
    }

    fn describe_name(&mut self) -> Result<DescribeTarget> {
        if !self.kind().is_name() {
            return self.unexpected();
        }
        self.qualified_name("table").map(DescribeTarget::Any)
    }
}
