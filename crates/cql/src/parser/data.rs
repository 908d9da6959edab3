//! `INSERT`, `UPDATE`, `DELETE` and batches of them.

use super::{Parser, Result};
use crate::ast::{
    Assignment, AssignmentOperation, Batch, BatchKind, ColumnPart, Condition, Delete, IfClause, Insert,
    InsertSource, Literal, Modification, Statement, Term, Update, Using,
};
use crate::fault::Fault;
use crate::keyword::Keyword;
use crate::token::Kind;

impl Parser<'_> {
    pub(super) fn insert(&mut self) -> Result<Insert> {
        self.expect_word(Keyword::Insert)?;
        self.expect_word(Keyword::Into)?;
        let table = self.table_name()?;
        let source = match self.kind() {
            Kind::OpenParen => self.insert_values()?,
            Kind::Keyword(Keyword::Json) => self.insert_json()?,
            _ => return self.unexpected(),
        };
        Ok(Insert {
            table,
            source,
            if_not_exists: self.if_not_exists()?,
            using: self.optional_using()?,
        })
    }

    fn insert_values(&mut self) -> Result<InsertSource> {
        let columns = self.parenthesized(Self::column)?;
        self.expect_word(Keyword::Values)?;
        self.expect(Kind::OpenParen)?;
        let mut values = Vec::with_capacity(columns.len());
        values.push(self.term()?);
        while self.eat(Kind::Comma) {
            values.push(self.term()?);
        }
        self.expect(Kind::CloseParen)?;
        Ok(InsertSource::Values { columns, values })
    }

    fn insert_json(&mut self) -> Result<InsertSource> {
        self.advance();
        let value = if self.at_string() {
            Term::Literal(self.literal()?)
        } else {
            self.marker().map(Term::Bind)?
        };
        let mut default_unset = false;
        if self.eat_word(Keyword::Default) {
            default_unset = self.eat_word(Keyword::Unset);
            if !default_unset && !self.eat_word(Keyword::Null) {
                return self.unexpected();
            }
        }
        Ok(InsertSource::Json { value, default_unset })
    }

    /// An optional `USING`. Compat: the last of repeated options counts. Unlike in Cassandra, an option whose value is a marker cannot
    /// be repeated, since the client would send the marker's value in vain.
    fn optional_using(&mut self) -> Result<Using> {
        let mut using = Using::default();
        if !self.eat_word(Keyword::Using) {
            return Ok(using);
        }
        self.joined_by_and(|parser| {
            let slot = match parser.kind() {
                Kind::Keyword(Keyword::Timestamp) => &mut using.timestamp,
                Kind::Keyword(Keyword::Ttl) => &mut using.ttl,
                _ => return parser.unexpected(),
            };
            parser.advance();
            match slot.replace(parser.integer_or_marker()?) {
                Some(Term::Bind(_)) => Err(Fault::Rule("A bind variable in USING is overwritten".into())),
                _ => Ok(()),
            }
        })?;
        Ok(using)
    }

    pub(super) fn update(&mut self) -> Result<Update> {
        self.expect_word(Keyword::Update)?;
        let table = self.table_name()?;
        let using = self.optional_using()?;
        self.expect_word(Keyword::Set)?;
        let assignments = self.list(Self::assignment)?;
        self.look_past();
        refuse_incompatible(&assignments)?;
        let relations = self.required_where()?;
        Ok(Update {
            table,
            using,
            assignments,
            relations,
            condition: self.optional_if()?,
        })
    }

    fn assignment(&mut self) -> Result<Assignment> {
        let column = self.column()?;
        let operation = match self.kind() {
            Kind::Equal => {
                self.advance();
                self.set_column(&column)?
            }
            Kind::PlusEqual => {
                self.advance();
                AssignmentOperation::Add(self.term()?)
            }
            Kind::MinusEqual => {
                self.advance();
                AssignmentOperation::Subtract(self.term()?)
            }
            Kind::OpenBracket => {
                self.advance();
                let key = self.term()?;
                self.expect(Kind::CloseBracket)?;
                self.expect(Kind::Equal)?;
                AssignmentOperation::SetElement {
                    key,
                    value: self.term()?,
                }
            }
            Kind::Dot => {
                self.advance();
                let field = self.identifier()?;
                self.expect(Kind::Equal)?;
                AssignmentOperation::SetField {
                    field,
                    value: self.term()?,
                }
            }
            _ => return self.unexpected(),
        };
        Ok(Assignment { column, operation })
    }

    /// The text after `column =`.
    fn set_column(&mut self, column: &str) -> Result<AssignmentOperation> {
        if self.is_bare_column(0) {
            return self.change_of_column(column);
        }
        let value = self.term()?;
        if !self.eat(Kind::Plus) {
            return Ok(AssignmentOperation::Set(value));
        }
        if self.column()? != column {
            return Err(Fault::Rule(
                "Only expressions of the form X = <value> + X are supported.".into(),
            ));
        }
        Ok(AssignmentOperation::Prepend(value))
    }

    /// `c + term`, `c - term`, or `c -1`, where the minus belongs to the number.
    fn change_of_column(&mut self, column: &str) -> Result<AssignmentOperation> {
        let sign = self.token(1);
        if !matches!(sign.kind, Kind::Plus | Kind::Minus | Kind::Integer) {
            return self.unexpected_at(1);
        }
        let is_same = self.column()? == column;
        if sign.kind == Kind::Integer {
            let literal = self.literal()?;
            return if is_same {
                Ok(added_integer(literal))
            } else {
                Err(not_the_same_column(self.slice(sign)))
            };
        }
        self.advance();
        let term = self.term()?;
        if !is_same {
            return Err(Fault::Rule(format!(
                "Only expressions of the form X = X {}<value> are supported.",
                self.slice(sign)
            )));
        }
        Ok(match sign.kind {
            Kind::Plus => AssignmentOperation::Add(term),
            _ => AssignmentOperation::Subtract(term),
        })
    }

    pub(super) fn delete(&mut self) -> Result<Delete> {
        self.expect_word(Keyword::Delete)?;
        let begins_target = self.kind().is_name() || self.at(Kind::EmptyQuotedName);
        let targets = if begins_target {
            self.list(Self::deleted)?
        } else {
            Vec::new()
        };
        self.expect_word(Keyword::From)?;
        let table = self.table_name()?;
        let mut using = Using::default();
        if self.eat_word(Keyword::Using) {
            self.expect_word(Keyword::Timestamp)?;
            using.timestamp = Some(self.integer_or_marker()?);
        }
        let relations = self.required_where()?;
        Ok(Delete {
            targets,
            table,
            using,
            relations,
            condition: self.optional_if()?,
        })
    }

    fn deleted(&mut self) -> Result<ColumnPart> {
        // Compat: the following token is checked before the column is taken.
        let is_followed_well = matches!(
            self.peek(1),
            Kind::Comma | Kind::OpenBracket | Kind::Dot | Kind::Keyword(Keyword::From)
        );
        if !is_followed_well && (self.kind().is_name() || self.at(Kind::EmptyQuotedName)) {
            return self.unexpected_at(1);
        }
        self.column_part()
    }

    /// `c`, `c[key]` or `c.field`
    fn column_part(&mut self) -> Result<ColumnPart> {
        let column = self.column()?;
        if self.eat(Kind::OpenBracket) {
            let key = self.term()?;
            self.expect(Kind::CloseBracket)?;
            return Ok(ColumnPart::Element { column, key });
        }
        if self.eat(Kind::Dot) {
            return Ok(ColumnPart::Field {
                column,
                field: self.identifier()?,
            });
        }
        Ok(ColumnPart::Column(column))
    }

    fn optional_if(&mut self) -> Result<IfClause> {
        if !self.eat_word(Keyword::If) {
            return Ok(IfClause::None);
        }
        // A column may be named `exists`.
        let is_existence = self.at_word(Keyword::Exists)
            && matches!(
                self.peek(1),
                Kind::End | Kind::Semicolon | Kind::Keyword(_) | Kind::Bad(_)
            )
            && !matches!(self.peek(1), Kind::Keyword(Keyword::In | Keyword::Contains));
        if is_existence {
            self.advance();
            return Ok(IfClause::Exists);
        }
        self.joined_by_and(Self::condition).map(IfClause::Conditions)
    }

    fn condition(&mut self) -> Result<Condition> {
        let subject = self.column_part()?;
        let (operator, operand) = match subject {
            ColumnPart::Column(_) => self.comparison_or_membership()?,
            _ => self.comparison_or_in()?,
        };
        Ok(Condition {
            subject,
            operator,
            operand,
        })
    }

    pub(super) fn batch(&mut self) -> Result<Statement> {
        self.advance();
        let kind = if self.eat_word(Keyword::Unlogged) {
            BatchKind::Unlogged
        } else if self.eat_word(Keyword::Counter) {
            BatchKind::Counter
        } else {
            BatchKind::Logged
        };
        self.expect_word(Keyword::Batch)?;
        let using = self.optional_using()?;
        let mut modifications = Vec::new();
        while let Some(modification) = self.optional_modification()? {
            modifications.push(modification);
            self.eat(Kind::Semicolon);
        }
        self.expect_word(Keyword::Apply)?;
        self.expect_word(Keyword::Batch)?;
        Ok(Statement::Batch(Batch {
            kind,
            using,
            modifications,
        }))
    }

    fn optional_modification(&mut self) -> Result<Option<Modification>> {
        Ok(Some(match self.kind() {
            Kind::Keyword(Keyword::Insert) => Modification::Insert(Box::new(self.insert()?)),
            Kind::Keyword(Keyword::Update) => Modification::Update(Box::new(self.update()?)),
            Kind::Keyword(Keyword::Delete) => Modification::Delete(Box::new(self.delete()?)),
            _ => return Ok(None),
        }))
    }
}

fn added_integer(literal: Literal) -> AssignmentOperation {
    AssignmentOperation::Add(Term::Literal(literal))
}

fn not_the_same_column(integer: &str) -> Fault {
    let sign = if integer.starts_with('-') { '-' } else { '+' };
    Fault::Rule(format!(
        "Only expressions of the form X = X {sign} <value> are supported."
    ))
}

/// Compat: the grammar refuses two assignments to a column, and an assignment beside another change of it.
fn refuse_incompatible(assignments: &[Assignment]) -> Result<()> {
    if assignments.len() < 2 {
        return Ok(());
    }
    // Sorted, since a statement may have very many assignments; stable, since the order of two matters.
    let mut order: Vec<usize> = (0..assignments.len()).collect();
    order.sort_by_key(|index| {
        assignments
            .get(*index)
            .map(|assignment| assignment.column.as_str())
    });
    for pair in order.windows(2) {
        let [first, second] = pair else { continue };
        let (Some(first), Some(second)) = (assignments.get(*first), assignments.get(*second)) else {
            continue;
        };
        if first.column == second.column && !are_compatible(&first.operation, &second.operation) {
            return Err(Fault::Rule(format!(
                "Multiple incompatible setting of column {}",
                first.column
            )));
        }
    }
    Ok(())
}

/// True if one statement may apply both operations to the same column.
fn are_compatible(first: &AssignmentOperation, second: &AssignmentOperation) -> bool {
    use AssignmentOperation::{Set, SetField};
    match (first, second) {
        (SetField { field: first, .. }, SetField { field: second, .. }) => first != second,
        (Set(_), _) | (_, Set(_)) => false,
        _ => true,
    }
}
