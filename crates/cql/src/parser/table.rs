//! Tables and views.

use super::{Parser, Result};
use crate::ast::{
    AlterTable, AlterView, ColumnDefinition, ColumnMask, CreateTable, CreateTableLike, CreateView,
    Identifier, PrimaryKey, Properties, QualifiedName, Statement, TableChange,
};
use crate::fault::Fault;
use crate::keyword::Keyword;
use crate::token::Kind;

impl Parser<'_> {
    pub(super) fn create_table(&mut self) -> Result<Statement> {
        self.advance();
        self.advance();
        let if_not_exists = self.if_not_exists()?;
        let table = self.table_name()?;
        if self.at_word(Keyword::Like) {
            return self.create_table_like(if_not_exists, table);
        }
        let mut create = CreateTable {
            if_not_exists,
            table,
            columns: Vec::new(),
            primary_key: None,
            clustering_order: Vec::new(),
            compact_storage: false,
            properties: Properties::default(),
        };
        self.expect(Kind::OpenParen)?;
        self.table_member(&mut create)?;
        while self.eat(Kind::Comma) {
            if self.kind().is_name() || self.at_word(Keyword::Primary) {
                self.table_member(&mut create)?;
            }
        }
        self.expect(Kind::CloseParen)?;
        if self.eat_word(Keyword::With) {
            self.joined_by_and(|parser| parser.table_property(&mut create))?;
        }
        Ok(Statement::CreateTable(Box::new(create)))
    }

    fn create_table_like(&mut self, if_not_exists: bool, table: QualifiedName) -> Result<Statement> {
        self.advance();
        let source = self.table_name()?;
        let mut with_indexes = false;
        let mut properties = Properties::default();
        if self.eat_word(Keyword::With) {
            self.joined_by_and(|parser| {
                if parser.eat_indexes() {
                    with_indexes = true;
                    return Ok(());
                }
                parser.property(&mut properties)
            })?;
        }
        let like = CreateTableLike {
            if_not_exists,
            table,
            source,
            with_indexes,
            properties,
        };
        Ok(Statement::CreateTableLike(Box::new(like)))
    }

    /// Takes `INDEXES`, which is not a keyword in this version of CQL.
    fn eat_indexes(&mut self) -> bool {
        let found = self.at(Kind::Identifier)
            && self.slice(self.token(0)).eq_ignore_ascii_case("indexes")
            && self.peek(1) != Kind::Equal;
        if found {
            self.advance();
        }
        found
    }

    /// A column, or `PRIMARY KEY (..)`.
    fn table_member(&mut self, create: &mut CreateTable) -> Result<()> {
        if self.at_word(Keyword::Primary) {
            let key = self.primary_key()?;
            return set_primary_key(create, key);
        }
        let column = self.column_definition()?;
        if self.eat_word(Keyword::Primary) {
            self.expect_word(Keyword::Key)?;
            let partition_key = vec![column.name.clone()];
            set_primary_key(
                create,
                PrimaryKey {
                    partition_key,
                    clustering: Vec::new(),
                },
            )?;
        }
        create.columns.push(column);
        Ok(())
    }

    fn column_definition(&mut self) -> Result<ColumnDefinition> {
        Ok(ColumnDefinition {
            name: self.identifier()?,
            type_name: self.type_name()?,
            is_static: self.eat_word(Keyword::Static),
            mask: self.optional_mask()?,
        })
    }

    fn optional_mask(&mut self) -> Result<Option<ColumnMask>> {
        if self.at_word(Keyword::Masked) {
            self.mask().map(Some)
        } else {
            Ok(None)
        }
    }

    /// `MASKED WITH function(arguments)` or `MASKED WITH DEFAULT`
    fn mask(&mut self) -> Result<ColumnMask> {
        self.expect_word(Keyword::Masked)?;
        self.expect_word(Keyword::With)?;
        let is_default =
            self.at_word(Keyword::Default) && !matches!(self.peek(1), Kind::OpenParen | Kind::Dot);
        if is_default {
            self.advance();
            let function = QualifiedName::qualified("system", "mask_default");
            return Ok(ColumnMask {
                function,
                arguments: Vec::new(),
            });
        }
        let function = self.function_name()?;
        Ok(ColumnMask {
            function,
            arguments: self.parenthesized_or_empty(Self::term)?,
        })
    }

    /// `PRIMARY KEY ((a, b), c)`
    fn primary_key(&mut self) -> Result<PrimaryKey> {
        self.expect_word(Keyword::Primary)?;
        self.expect_word(Keyword::Key)?;
        self.expect(Kind::OpenParen)?;
        let partition_key = match self.kind() {
            Kind::OpenParen => self.parenthesized(Self::identifier)?,
            _ => vec![self.identifier()?],
        };
        let mut clustering = Vec::new();
        while self.eat(Kind::Comma) {
            clustering.push(self.identifier()?);
        }
        self.expect(Kind::CloseParen)?;
        Ok(PrimaryKey {
            partition_key,
            clustering,
        })
    }

    fn table_property(&mut self, create: &mut CreateTable) -> Result<()> {
        if self.at_word(Keyword::Compact) && self.peek_word(1, Keyword::Storage) {
            self.advance();
            self.advance();
            create.compact_storage = true;
            return Ok(());
        }
        if self.at_word(Keyword::Clustering) && self.peek_word(1, Keyword::Order) {
            self.advance();
            create.clustering_order.extend(self.clustering_order()?);
            return Ok(());
        }
        self.property(&mut create.properties)
    }

    pub(super) fn alter_table(&mut self) -> Result<Statement> {
        self.advance();
        self.advance();
        let if_exists = self.if_exists()?;
        let table = self.table_name()?;
        let change = match self.kind() {
            Kind::Keyword(Keyword::Alter) => self.alter_column()?,
            Kind::Keyword(Keyword::Add) => self.add_columns()?,
            Kind::Keyword(Keyword::Drop) => self.drop_columns()?,
            Kind::Keyword(Keyword::Rename) => {
                self.advance();
                let if_exists = self.if_exists()?;
                TableChange::RenameColumns {
                    if_exists,
                    renames: self.joined_by_and(Self::rename)?,
                }
            }
            Kind::Keyword(Keyword::With) => TableChange::Properties(self.required_properties()?),
            _ => return self.unexpected(),
        };
        Ok(Statement::AlterTable(Box::new(AlterTable {
            if_exists,
            table,
            change,
        })))
    }

    fn alter_column(&mut self) -> Result<TableChange> {
        self.advance();
        let if_exists = self.if_exists()?;
        let column = self.column()?;
        if !if_exists && self.eat_word(Keyword::Type) {
            return Ok(TableChange::AlterColumnType {
                column,
                type_name: self.type_name()?,
            });
        }
        let mask = if self.eat_word(Keyword::Drop) {
            self.expect_word(Keyword::Masked)?;
            None
        } else if self.at_word(Keyword::Masked) {
            Some(self.mask()?)
        } else {
            return self.unexpected();
        };
        Ok(TableChange::AlterColumnMask {
            if_exists,
            column,
            mask,
        })
    }

    fn add_columns(&mut self) -> Result<TableChange> {
        self.advance();
        let if_not_exists = self.if_not_exists()?;
        let columns = match self.kind() {
            Kind::OpenParen => self.parenthesized(Self::column_definition)?,
            _ => vec![self.column_definition()?],
        };
        Ok(TableChange::AddColumns {
            if_not_exists,
            columns,
        })
    }

    fn drop_columns(&mut self) -> Result<TableChange> {
        self.advance();
        if self.at_word(Keyword::Compact) && self.peek_word(1, Keyword::Storage) {
            self.advance();
            self.advance();
            return Ok(TableChange::DropCompactStorage);
        }
        let if_exists = self.if_exists()?;
        let columns = match self.kind() {
            Kind::OpenParen => self.parenthesized(Self::identifier)?,
            _ => vec![self.identifier()?],
        };
        let mut timestamp_micros = None;
        if self.eat_word(Keyword::Using) {
            self.expect_word(Keyword::Timestamp)?;
            let token = self.expect(Kind::Integer)?;
            timestamp_micros = Some(self.slice(token).into());
        }
        Ok(TableChange::DropColumns {
            if_exists,
            columns,
            timestamp_micros,
        })
    }

    /// `a TO b`
    pub(super) fn rename(&mut self) -> Result<(Identifier, Identifier)> {
        let from = self.identifier()?;
        self.expect_word(Keyword::To)?;
        Ok((from, self.identifier()?))
    }

    pub(super) fn create_view(&mut self) -> Result<Statement> {
        self.advance();
        self.advance();
        self.expect_word(Keyword::View)?;
        let if_not_exists = self.if_not_exists()?;
        let view = self.table_name()?;
        self.expect_word(Keyword::As)?;
        self.expect_word(Keyword::Select)?;
        let selection = self.selection()?;
        self.expect_word(Keyword::From)?;
        let base = self.table_name()?;
        let relations = self.optional_where()?;
        let primary_key = self.primary_key()?;
        let mut create = CreateView {
            if_not_exists,
            view,
            selection,
            base,
            relations,
            primary_key,
            clustering_order: Vec::new(),
            properties: Properties::default(),
        };
        if self.eat_word(Keyword::With) {
            self.joined_by_and(|parser| parser.view_property(&mut create))?;
        }
        Ok(Statement::CreateView(Box::new(create)))
    }

    fn view_property(&mut self, create: &mut CreateView) -> Result<()> {
        if self.at_word(Keyword::Compact) && self.peek_word(1, Keyword::Storage) {
            return Err(Fault::Rule(
                "COMPACT STORAGE tables are not allowed starting with version 4.0".into(),
            ));
        }
        if self.at_word(Keyword::Clustering) && self.peek_word(1, Keyword::Order) {
            self.advance();
            create.clustering_order.extend(self.clustering_order()?);
            return Ok(());
        }
        self.property(&mut create.properties)
    }

    pub(super) fn alter_view(&mut self) -> Result<Statement> {
        self.advance();
        self.advance();
        self.expect_word(Keyword::View)?;
        let if_exists = self.if_exists()?;
        let view = self.table_name()?;
        Ok(Statement::AlterView(AlterView {
            if_exists,
            view,
            properties: self.required_properties()?,
        }))
    }
}

fn set_primary_key(create: &mut CreateTable, key: PrimaryKey) -> Result<()> {
    if create.primary_key.is_some() {
        let table = &create.table.name;
        return Err(Fault::Invalid(format!(
            "Multiple PRIMARY KEY specified for table '{table}' (exactly one required)"
        )));
    }
    create.primary_key = Some(key);
    Ok(())
}
