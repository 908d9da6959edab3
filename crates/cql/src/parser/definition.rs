//! Keyspaces, user types, indexes and triggers.

use super::{Parser, Result};
use crate::ast::{
    AlterKeyspace, AlterType, CqlTypeName, CreateIndex, CreateKeyspace, CreateTrigger, CreateType,
    DropTrigger, Identifier, IndexTarget, IndexTargetKind, Statement, TypeChange,
};
use crate::keyword::Keyword;
use crate::token::Kind;

impl Parser<'_> {
    pub(super) fn create_keyspace(&mut self) -> Result<Statement> {
        self.advance();
        self.advance();
        let if_not_exists = self.if_not_exists()?;
        let keyspace = self.keyspace()?;
        let properties = self.required_properties()?;
        Ok(Statement::CreateKeyspace(CreateKeyspace {
            if_not_exists,
            keyspace,
            properties,
        }))
    }

    pub(super) fn alter_keyspace(&mut self) -> Result<Statement> {
        self.advance();
        self.advance();
        let if_exists = self.if_exists()?;
        let keyspace = self.keyspace()?;
        let properties = self.required_properties()?;
        Ok(Statement::AlterKeyspace(AlterKeyspace {
            if_exists,
            keyspace,
            properties,
        }))
    }

    pub(super) fn create_type(&mut self) -> Result<Statement> {
        self.advance();
        self.advance();
        let if_not_exists = self.if_not_exists()?;
        let name = self.user_type_name()?;
        self.expect(Kind::OpenParen)?;
        let mut fields = vec![self.field_definition()?];
        while self.eat(Kind::Comma) {
            if self.kind().is_name() {
                fields.push(self.field_definition()?);
            }
        }
        self.expect(Kind::CloseParen)?;
        Ok(Statement::CreateType(CreateType {
            if_not_exists,
            name,
            fields,
        }))
    }

    fn field_definition(&mut self) -> Result<(Identifier, CqlTypeName)> {
        Ok((self.identifier()?, self.type_name()?))
    }

    pub(super) fn alter_type(&mut self) -> Result<Statement> {
        self.advance();
        self.advance();
        let if_exists = self.if_exists()?;
        let name = self.user_type_name()?;
        let change = match self.kind() {
            Kind::Keyword(Keyword::Alter) => {
                self.advance();
                let field = self.identifier()?;
                self.expect_word(Keyword::Type)?;
                TypeChange::AlterField {
                    field,
                    type_name: self.type_name()?,
                }
            }
            Kind::Keyword(Keyword::Add) => {
                self.advance();
                let if_not_exists = self.if_not_exists()?;
                let (field, type_name) = self.field_definition()?;
                TypeChange::AddField {
                    if_not_exists,
                    field,
                    type_name,
                }
            }
            Kind::Keyword(Keyword::Rename) => {
                self.advance();
                let if_exists = self.if_exists()?;
                TypeChange::RenameFields {
                    if_exists,
                    renames: self.joined_by_and(Self::rename)?,
                }
            }
            _ => return self.unexpected(),
        };
        Ok(Statement::AlterType(AlterType {
            if_exists,
            name,
            change,
        }))
    }

    pub(super) fn create_index(&mut self) -> Result<Statement> {
        self.advance();
        let is_custom = self.eat_word(Keyword::Custom);
        self.expect_word(Keyword::Index)?;
        let if_not_exists = self.if_not_exists()?;
        let name = if self.at_word(Keyword::On) {
            None
        } else {
            Some(self.name_of("index")?)
        };
        self.expect_word(Keyword::On)?;
        let table = self.table_name()?;
        let targets = self.parenthesized_or_empty(Self::index_target)?;
        let using = if self.eat_word(Keyword::Using) {
            Some(self.string()?)
        } else {
            None
        };
        let properties = self.optional_properties()?;
        let create = CreateIndex {
            is_custom,
            if_not_exists,
            name,
            table,
            targets,
            using,
            properties,
        };
        Ok(Statement::CreateIndex(Box::new(create)))
    }

    fn index_target(&mut self) -> Result<IndexTarget> {
        let kind = match self.kind() {
            Kind::Keyword(Keyword::Entries) => IndexTargetKind::Entries,
            Kind::Keyword(Keyword::Full) => IndexTargetKind::Full,
            Kind::Keyword(Keyword::Values) if self.peek(1) == Kind::OpenParen => IndexTargetKind::Values,
            Kind::Keyword(Keyword::Keys) if self.peek(1) == Kind::OpenParen => IndexTargetKind::Keys,
            _ => {
                return Ok(IndexTarget {
                    kind: IndexTargetKind::Simple,
                    column: self.column()?,
                });
            }
        };
        self.advance();
        self.expect(Kind::OpenParen)?;
        let column = self.column()?;
        self.expect(Kind::CloseParen)?;
        Ok(IndexTarget { kind, column })
    }

    pub(super) fn create_trigger(&mut self) -> Result<Statement> {
        self.advance();
        self.advance();
        let if_not_exists = self.if_not_exists()?;
        let name = self.identifier()?;
        self.expect_word(Keyword::On)?;
        let table = self.table_name()?;
        self.expect_word(Keyword::Using)?;
        let class = self.string()?;
        Ok(Statement::CreateTrigger(CreateTrigger {
            if_not_exists,
            name,
            table,
            class,
        }))
    }

    pub(super) fn drop_trigger(&mut self) -> Result<Statement> {
        self.advance();
        self.advance();
        let if_exists = self.if_exists()?;
        let name = self.identifier()?;
        self.expect_word(Keyword::On)?;
        Ok(Statement::DropTrigger(DropTrigger {
            if_exists,
            name,
            table: self.table_name()?,
        }))
    }
}
