//! From a relation of the text to a restriction: names are resolved, and terms are planned with the type of the column.
//!
//! This file has relations on one column; the others are in `tuple_relation` and `token_relation`. Compat:
//! `SingleColumnRelation` of Cassandra 5.0.

use ilion_cql::ast::{Operand, Operator, Relation, Subject};
use ilion_schema::{Column, IndexKind, TableSchema};
use ilion_types::{CqlType, quote_name};

use super::expression::{Expression, Expressions};
use super::restriction::{Contained, Edge, Predicate, Restriction};
use super::token::TokenRestriction;
use crate::context::PlanContext;
use crate::term::{Term, Terms};
use crate::{ColumnSpec, Error};

/// A relation that was resolved.
pub(super) enum Resolved {
    Columns(Restriction),
    Token(TokenRestriction),
}

/// Resolves one relation.
pub(super) fn resolve(
    relation: &Relation,
    table: &TableSchema,
    context: &PlanContext<'_>,
) -> Result<Resolved, Error> {
    let resolver = RelationResolver {
        relation,
        table,
        context,
    };
    match &relation.subject {
        Subject::Column(name) => resolver.single(existing(table, name)?).map(Resolved::Columns),
        Subject::Element { column, key } => {
            let column = existing(table, column)?;
            let predicate = resolver.entry(column, key)?;
            Ok(Resolved::Columns(restriction(vec![column.clone()], predicate)))
        }
        Subject::Columns(names) => resolver.multi(names).map(Resolved::Columns),
        Subject::Token(names) => resolver.token(names).map(Resolved::Token),
        Subject::Index(name) => Err(index_expression(name, table, context)),
        Subject::AnyOf(_) => Err(Error::invalid(
            "OR is only supported in the WHERE clause of SELECT",
        )),
    }
}

/// The refusal of `expr(index, ..)`: no index has custom expressions.
fn index_expression(name: &str, table: &TableSchema, context: &PlanContext<'_>) -> Error {
    let keyspace = context.schema.keyspace(&table.keyspace);
    let found = keyspace
        .and_then(|keyspace| keyspace.indexes.get(name))
        .filter(|index| index.table == table.name);
    Error::Invalid(match found {
        None => format!(
            "Invalid index expression, index {name} not found for {}.{}",
            table.keyspace, table.name
        ),
        Some(index) if index.kind == IndexKind::Custom => {
            format!("Index {name} does not support custom expressions")
        }
        Some(_) => {
            format!("Only CUSTOM indexes may be used in custom index expressions, {name} is not valid")
        }
    })
}

/// The column of this name. If it does not exist, the error is Cassandra's.
pub(crate) fn existing<'t>(table: &'t TableSchema, name: &str) -> Result<&'t Column, Error> {
    table.shown_named(name).ok_or_else(|| {
        Error::invalid(format!(
            "Undefined column name {} in table {}.{}",
            quote_name(name),
            quote_name(&table.keyspace),
            quote_name(&table.name)
        ))
    })
}

fn restriction(columns: Vec<Column>, predicate: Predicate) -> Restriction {
    Restriction {
        columns,
        is_multi: false,
        predicate,
    }
}

/// Resolves one relation.
pub(super) struct RelationResolver<'a> {
    pub relation: &'a Relation,
    pub table: &'a TableSchema,
    pub context: &'a PlanContext<'a>,
}

impl RelationResolver<'_> {
    /// The spec of a term of this relation.
    pub(super) fn spec(&self, name: &str, ty: CqlType) -> ColumnSpec {
        ColumnSpec::of(self.table, name, ty)
    }

    /// An error about this relation.
    pub(super) fn refuse<T>(&self, reason: String) -> Result<T, Error> {
        Err(Error::invalid(reason))
    }

    /// The only member of an IN. Compat: an IN with one member is an `=`.
    pub(super) fn only_member(&self) -> Option<&ilion_cql::ast::Term> {
        match &self.relation.operand {
            Operand::List(members) if members.len() == 1 => members.first(),
            _ => None,
        }
    }

    /// The only value on the right side.
    pub(super) fn one_operand(&self) -> Result<&ilion_cql::ast::Term, Error> {
        let term = match &self.relation.operand {
            Operand::Term(term) => Some(term),
            _ => self.only_member(),
        };
        term.ok_or_else(|| Error::invalid(format!("Unsupported restriction: {}", self.relation)))
    }

    /// The only value on the right side, planned.
    pub(super) fn one(&self, name: &str, ty: &CqlType) -> Result<Term, Error> {
        Term::plan(self.one_operand()?, &self.spec(name, ty.clone()), self.context)
    }

    fn single(&self, column: &Column) -> Result<Restriction, Error> {
        let operator = self.relation.operator;
        match operator {
            Operator::NotEqual => {
                return self.refuse(format!("Unsupported \"!=\" relation: {}", self.relation));
            }
            Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
                check_no_duration(column)?;
            }
            _ => {}
        }
        if operator == Operator::IsNotNull {
            return self.refuse(format!("Unsupported restriction: {}", self.relation));
        }
        check_not_multi_cell(column, operator)?;
        let predicate = match operator {
            Operator::Equal => Predicate::Equal(self.single_expression(column)?),
            Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
                slice(operator, self.single_expression(column)?)
            }
            Operator::In if self.only_member().is_some() => Predicate::Equal(self.single_expression(column)?),
            Operator::In => Predicate::In(Expressions {
                terms: Terms::plan(
                    &self.relation.operand,
                    &self.spec(&column.name, column.ty.clone()),
                    self.context,
                )?,
                are_tuples: false,
            }),
            Operator::Contains | Operator::ContainsKey => {
                Predicate::Contains(vec![self.contained(column, operator)?])
            }
            Operator::Like => Predicate::Like(self.one(&column.name, &column.ty)?),
            Operator::AnalyzerMatches => Predicate::Matches(self.one(&column.name, &column.ty)?),
            Operator::NotEqual | Operator::IsNotNull | Operator::IndexExpression | Operator::Or => {
                return self.refuse(format!("Unsupported restriction: {}", self.relation));
            }
        };
        Ok(restriction(vec![column.clone()], predicate))
    }

    fn single_expression(&self, column: &Column) -> Result<Expression, Error> {
        Ok(Expression::One {
            term: self.one(&column.name, &column.ty)?,
        })
    }

    fn contained(&self, column: &Column, operator: Operator) -> Result<Contained, Error> {
        let name = &column.name;
        if operator == Operator::ContainsKey {
            return match &column.ty {
                CqlType::Map { key, .. } => Ok(Contained::Key(self.one(&format!("key({name})"), key)?)),
                _ => self.refuse(format!("Cannot use CONTAINS KEY on non-map column {name}")),
            };
        }
        match &column.ty {
            CqlType::List { element, .. }
            | CqlType::Set { element, .. }
            | CqlType::Map { value: element, .. } => {
                Ok(Contained::Value(self.one(&format!("value({name})"), element)?))
            }
            _ => self.refuse(format!("Cannot use CONTAINS on non-collection column {name}")),
        }
    }

    fn entry(&self, column: &Column, key_ast: &ilion_cql::ast::Term) -> Result<Predicate, Error> {
        let name = &column.name;
        let (key, value) = match &column.ty {
            CqlType::List { .. } => {
                return self.refuse(format!(
                    "Indexes on list entries ({name}[index] = value) are not currently supported."
                ));
            }
            CqlType::Map {
                key,
                value,
                frozen: false,
            } => (key, value),
            CqlType::Map { .. } => {
                return self.refuse(format!(
                    "Map-entry equality predicates on frozen map column {name} are not supported"
                ));
            }
            _ => return self.refuse(format!("Column {name} cannot be used as a map")),
        };
        if self.relation.operator != Operator::Equal {
            return self.refuse("Only EQ relations are supported on map entries".into());
        }
        let key_spec = self.spec(&format!("key({name})"), CqlType::clone(key));
        let key = Term::plan(key_ast, &key_spec, self.context)?;
        let value = self.one(&format!("value({name})"), value)?;
        Ok(Predicate::Contains(vec![Contained::Entry(key, value)]))
    }
}

/// A slice with one end.
pub(super) fn slice(operator: Operator, expression: Expression) -> Predicate {
    let edge = Some(Edge {
        expression,
        is_inclusive: matches!(operator, Operator::LessOrEqual | Operator::GreaterOrEqual),
    });
    if matches!(operator, Operator::Greater | Operator::GreaterOrEqual) {
        Predicate::Slice {
            start: edge,
            end: None,
        }
    } else {
        Predicate::Slice {
            start: None,
            end: edge,
        }
    }
}

/// Refuses unfrozen collections and user types, which are not one value to compare.
fn check_not_multi_cell(column: &Column, operator: Operator) -> Result<(), Error> {
    if !column.is_complex() || matches!(operator, Operator::Contains | Operator::ContainsKey) {
        return Ok(());
    }
    let (name, ty) = (&column.name, &column.ty);
    Err(Error::invalid(if ty.is_collection() {
        format!("Collection column '{name}' ({ty}) cannot be restricted by a '{operator}' relation")
    } else {
        format!("Non-frozen UDT column '{name}' ({ty}) cannot be restricted by any relation")
    }))
}

/// Refuses durations, which have no order.
pub(super) fn check_no_duration(column: &Column) -> Result<(), Error> {
    if !column.ty.contains_duration() {
        return Ok(());
    }
    let what = match &column.ty {
        CqlType::Tuple(_) => "tuples containing durations",
        CqlType::Udt { .. } => "UDTs containing durations",
        ty if ty.is_collection() => "collections containing durations",
        _ => "duration columns",
    };
    Err(Error::invalid(format!(
        "Slice restrictions are not supported on {what}"
    )))
}
