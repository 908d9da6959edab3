//! Selectors of parts of values: elements, slices, fields, and the facts of their cells.

use ilion_cql::ast::{self, Selector};
use ilion_schema::ColumnKind;
use ilion_types::CqlType;

use super::cell_facts::{Fact, FactTarget};
use super::compile::{Compiled, Compiler};
use super::expression::Expr;
use crate::Error;
use crate::restrictions::relation::existing;
use crate::term::Term;

impl Compiler<'_> {
    /// `of[key]`
    pub(super) fn element(&mut self, of: &Selector, key: &ast::Term) -> Result<Compiled, Error> {
        let of = self.compile(of, None)?;
        let key_term = self.plan_key(&of, key, "Element")?;
        let ty = match &of.ty {
            CqlType::Map { value, .. } => CqlType::clone(value),
            CqlType::Set { element, .. } => CqlType::clone(element),
            other => other.clone(),
        };
        Ok(Compiled {
            text: format!("{}[{}]", of.text, print_key(key)),
            expr: Expr::Element {
                of: Box::new(of.expr),
                ty: of.ty,
                key: key_term,
                text: of.text,
            },
            ty,
            is_aggregate: of.is_aggregate,
            has_column: of.has_column,
        })
    }

    /// `of[from..to]`
    pub(super) fn slice(
        &mut self,
        of: &Selector,
        from: Option<&ast::Term>,
        to: Option<&ast::Term>,
    ) -> Result<Compiled, Error> {
        let of = self.compile(of, None)?;
        let (from_term, to_term) = self.plan_ends(&of, from, to)?;
        let print = |term: Option<&ast::Term>| term.map(print_key).unwrap_or_default();
        Ok(Compiled {
            text: format!("{}[{}..{}]", of.text, print(from), print(to)),
            expr: Expr::Slice {
                of: Box::new(of.expr),
                ty: of.ty.clone(),
                from: from_term,
                to: to_term,
                text: of.text,
            },
            ty: of.ty,
            is_aggregate: of.is_aggregate,
            has_column: of.has_column,
        })
    }

    fn plan_ends(
        &self,
        of: &Compiled,
        from: Option<&ast::Term>,
        to: Option<&ast::Term>,
    ) -> Result<(Option<Term>, Option<Term>), Error> {
        let end = |term: Option<&ast::Term>| term.map(|term| self.plan_key(of, term, "Slice")).transpose();
        Ok((end(from)?, end(to)?))
    }

    /// A key of a map or an element of a set.
    fn plan_key(&self, of: &Compiled, key: &ast::Term, selection: &str) -> Result<Term, Error> {
        let (part, key_type) = match &of.ty {
            CqlType::Map { key, .. } => ("key", key),
            CqlType::Set { element, .. } => ("value", element),
            CqlType::List { .. } => {
                return Err(Error::invalid(format!(
                    "{selection} selection is only allowed on sets and maps, but {} is a list",
                    of.text
                )));
            }
            ty => {
                return Err(Error::invalid(format!(
                    "Invalid {} selection: {} is of type {ty} is not a collection",
                    selection.to_lowercase(),
                    of.text
                )));
            }
        };
        let spec = self.spec(&format!("{part}({})", of.text), CqlType::clone(key_type));
        Term::plan(key, &spec, self.context)
    }

    /// `of.field`
    pub(super) fn field(&mut self, of: &Selector, field: &str) -> Result<Compiled, Error> {
        let of = self.compile(of, None)?;
        let (index, ty) = field_of(&of, field)?;
        Ok(Compiled {
            text: format!("{}.{field}", of.text),
            expr: Expr::Field {
                of: Box::new(of.expr),
                index,
            },
            ty,
            ..of
        })
    }

    /// `writetime(of)` and the like.
    pub(super) fn fact(&mut self, fact: Fact, of: &Selector) -> Result<Compiled, Error> {
        let (column_name, part) = match of {
            Selector::Column(name) => (name, None),
            Selector::Element { of, .. } | Selector::Slice { of, .. } | Selector::Field { of, .. } => {
                match &**of {
                    Selector::Column(name) => (name, Some(())),
                    _ => return Err(not_a_column(fact)),
                }
            }
            _ => return Err(not_a_column(fact)),
        };
        let whole = self.column(column_name)?;
        let part = match (part, of) {
            (Some(()), of) => self.part(&whole, of)?,
            (None, _) => FactTarget::Whole,
        };
        // Compat: times of masked columns are not masked.
        let column = existing(self.table, column_name)?.clone();
        if matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Clustering) {
            return Err(Error::invalid(format!(
                "Cannot use selection function {} on PRIMARY KEY part {}",
                fact.name(),
                column.name
            )));
        }
        Ok(Compiled {
            ty: fact.result_type(&column, &part),
            expr: Expr::Fact { column, part, fact },
            text: format!("{}({})", fact.name(), unquoted(of)),
            is_aggregate: false,
            has_column: true,
        })
    }

    fn part(&mut self, column: &Compiled, of: &Selector) -> Result<FactTarget, Error> {
        Ok(match of {
            Selector::Element { key, .. } => FactTarget::Element(self.plan_key(column, key, "Element")?),
            Selector::Slice { from, to, .. } => {
                let (from, to) = self.plan_ends(column, from.as_ref(), to.as_ref())?;
                FactTarget::Slice(from, to)
            }
            Selector::Field { field, .. } => FactTarget::Field(field_of(column, field)?.0),
            _ => FactTarget::Whole,
        })
    }
}

fn not_a_column(fact: Fact) -> Error {
    Error::invalid(format!("{} takes a column or a part of one", fact.name()))
}

/// The text of a column or a part of one, with unquoted names.
fn unquoted(selector: &Selector) -> String {
    match selector {
        Selector::Column(name) => name.clone(),
        Selector::Field { of, field } => format!("{}.{field}", unquoted(of)),
        Selector::Element { of, key } => format!("{}[{}]", unquoted(of), print_key(key)),
        other => other.to_string(),
    }
}

fn field_of(of: &Compiled, field: &str) -> Result<(usize, CqlType), Error> {
    let CqlType::Udt { definition, .. } = &of.ty else {
        return Err(Error::invalid(format!(
            "Invalid field selection: {} of type {} is not a user type",
            of.text, of.ty
        )));
    };
    let (index, ty) = definition
        .field(field)
        .ok_or_else(|| Error::invalid(format!("{} of type {} has no field {field}", of.text, of.ty)))?;
    Ok((index, ty.clone()))
}

/// A key in the name of a result's column. Compat: a named marker is a `?`.
fn print_key(key: &ast::Term) -> String {
    match key {
        ast::Term::Bind(_) => "?".to_owned(),
        key => key.to_string(),
    }
}
