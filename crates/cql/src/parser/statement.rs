//! Chooses the statement by its first words.

use super::{Parser, Result};
use crate::ast::{DropKeyspace, DropObject, QualifiedName, Statement};
use crate::keyword::Keyword;
use crate::token::Kind;

impl Parser<'_> {
    /// One statement, without the end of the text.
    pub(crate) fn statement(&mut self) -> Result<Statement> {
        let Kind::Keyword(word) = self.kind() else {
            return match self.explain()? {
                Some(explain) => Ok(explain),
                None => self.unexpected(),
            };
        };
        match word {
            Keyword::Select => self.select(),
            Keyword::Insert => self.insert().map(|insert| Statement::Insert(Box::new(insert))),
            Keyword::Update => self.update().map(|update| Statement::Update(Box::new(update))),
            Keyword::Delete => self.delete().map(|delete| Statement::Delete(Box::new(delete))),
            Keyword::Begin => self.batch(),
            Keyword::Use => self.use_keyspace(),
            Keyword::Truncate => self.truncate(),
            Keyword::Create => self.create(),
            Keyword::Alter => self.alter(),
            Keyword::Drop => self.drop_object(),
            Keyword::Grant => self.grant(),
            Keyword::Revoke => self.revoke(),
            Keyword::List => self.list_statement(),
            Keyword::Add => self.add_identity(),
            Keyword::Describe | Keyword::Desc => self.describe(),
            _ => self.unexpected(),
        }
    }

    fn use_keyspace(&mut self) -> Result<Statement> {
        self.advance();
        self.keyspace().map(Statement::Use)
    }

    fn truncate(&mut self) -> Result<Statement> {
        self.advance();
        self.eat_word(Keyword::Table);
        self.table_name().map(Statement::Truncate)
    }

    fn create(&mut self) -> Result<Statement> {
        let Kind::Keyword(word) = self.peek(1) else {
            return self.unexpected_at(1);
        };
        match word {
            Keyword::Keyspace => self.create_keyspace(),
            Keyword::Table => self.create_table(),
            Keyword::Type => self.create_type(),
            Keyword::Index => self.create_index(),
            Keyword::Custom => match self.peek(2) {
                Kind::Keyword(Keyword::Index) => self.create_index(),
                _ => self.unexpected_at(2),
            },
            Keyword::Materialized => self.create_view(),
            Keyword::Trigger => self.create_trigger(),
            Keyword::Function | Keyword::Aggregate | Keyword::Or => self.create_function_or_aggregate(),
            Keyword::Role => self.create_role(),
            Keyword::User => self.create_user(),
            _ => self.unexpected_at(1),
        }
    }

    fn alter(&mut self) -> Result<Statement> {
        let Kind::Keyword(word) = self.peek(1) else {
            return self.unexpected_at(1);
        };
        match word {
            Keyword::Keyspace => self.alter_keyspace(),
            Keyword::Table => self.alter_table(),
            Keyword::Type => self.alter_type(),
            Keyword::Materialized => self.alter_view(),
            Keyword::Role => self.alter_role(),
            Keyword::User => self.alter_user(),
            _ => self.unexpected_at(1),
        }
    }

    fn drop_object(&mut self) -> Result<Statement> {
        let Kind::Keyword(word) = self.peek(1) else {
            return self.unexpected_at(1);
        };
        match word {
            Keyword::Keyspace => self.drop_keyspace(),
            Keyword::Table => self.dropped(Self::table_name).map(Statement::DropTable),
            Keyword::Type => self.dropped(Self::user_type_name).map(Statement::DropType),
            Keyword::Index => self
                .dropped(|parser| parser.qualified_name("index"))
                .map(Statement::DropIndex),
            Keyword::Materialized => {
                self.advance();
                if !self.peek_word(1, Keyword::View) {
                    self.advance();
                    self.expect_word(Keyword::View)?;
                }
                self.dropped(Self::table_name).map(Statement::DropView)
            }
            Keyword::Trigger => self.drop_trigger(),
            Keyword::Function => self.dropped_function().map(Statement::DropFunction),
            Keyword::Aggregate => self.dropped_function().map(Statement::DropAggregate),
            Keyword::Role => self.drop_role(),
            Keyword::User => self.drop_user(),
            Keyword::Identity => self.drop_identity(),
            _ => self.unexpected_at(1),
        }
    }

    /// The rest of a `DROP`, whose verb and kind are the next two tokens.
    fn dropped(&mut self, name: impl Fn(&mut Self) -> Result<QualifiedName>) -> Result<DropObject> {
        self.advance();
        self.advance();
        Ok(DropObject {
            if_exists: self.if_exists()?,
            name: name(self)?,
        })
    }

    fn drop_keyspace(&mut self) -> Result<Statement> {
        self.advance();
        self.advance();
        let if_exists = self.if_exists()?;
        Ok(Statement::DropKeyspace(DropKeyspace {
            if_exists,
            keyspace: self.keyspace()?,
        }))
    }
}
