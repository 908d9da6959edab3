//! The planned expressions of a selection, and their evaluation for a row.

use std::sync::Arc;

use bytes::Bytes;
use ilion_schema::Column;
use ilion_types::{
    CqlType, collection_elements, encode_list, encode_map, encode_tuple, map_entries, tuple_components,
};

use super::RowView;
use super::cell_facts::{Fact, FactTarget};
use super::collection_parts::{element_key, is_within, list_with_nulls, slice_end};
use crate::context::Execution;
use crate::masking::{Masker, Masks};
use crate::term::Term;
use crate::term::functions::ScalarFunction;
use crate::{Error, Value};

/// A planned expression.
#[derive(Debug)]
pub(super) enum Expr {
    Column(Column),
    /// A masked column.
    Masked {
        column: Column,
        masker: Arc<Masker>,
    },
    /// A term without columns.
    Term(Term),
    /// `writetime`, `maxwritetime` or `ttl` of a column or a part of it.
    Fact {
        column: Column,
        part: FactTarget,
        fact: Fact,
    },
    Call {
        function: Arc<ScalarFunction>,
        arguments: Vec<Expr>,
    },
    /// A member of a set or the value of a map's key.
    Element {
        of: Box<Expr>,
        ty: CqlType,
        key: Term,
        /// The name of the collection in messages.
        text: String,
    },
    /// The part of a set or map between two keys, both included.
    Slice {
        of: Box<Expr>,
        ty: CqlType,
        from: Option<Term>,
        to: Option<Term>,
        /// The name of the collection in messages.
        text: String,
    },
    /// A field of a user type.
    Field {
        of: Box<Expr>,
        index: usize,
    },
    /// A list, or a set of this type.
    List {
        members: Vec<Expr>,
        set_of: Option<CqlType>,
    },
    Map {
        entries: Vec<(Expr, Expr)>,
        key: CqlType,
    },
    /// A tuple or user type; `None` is null.
    Tuple(Vec<Option<Expr>>),
    /// The result of an aggregate, by its index in the selection's list.
    Aggregate(usize),
}

/// The inputs of an evaluation.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    /// `None` where only aggregates and constants are evaluated.
    pub row: Option<RowView<'a>>,
    pub aggregates: &'a [Option<Bytes>],
    pub execution: &'a Execution<'a>,
}

impl Expr {
    /// A column, with its mask if it has one.
    pub fn of_column(column: Column, masks: Option<&Masks>) -> Self {
        match masks.and_then(|masks| masks.of_column(column.id)) {
            Some(masker) => Self::Masked {
                masker: masker.clone(),
                column,
            },
            None => Self::Column(column),
        }
    }

    /// The serialized value; `None` is null.
    pub fn evaluate(&self, scope: Scope<'_>) -> Result<Option<Bytes>, Error> {
        Ok(match self {
            Self::Column(column) => scope.row.and_then(|row| row.value(column)),
            Self::Masked { column, masker } => match scope.row {
                Some(row) => masker.mask(row.value(column), scope.execution)?,
                None => None,
            },
            Self::Term(term) => constant(term, scope.execution)?,
            Self::Fact { column, part, fact } => match scope.row {
                Some(row) => fact.of(row, column, part, scope.execution)?,
                None => None,
            },
            Self::Call { function, arguments } => {
                let arguments = evaluate_all(arguments, scope)?;
                function.call(&arguments, scope.execution)?
            }
            Self::Element { of, ty, key, text } => {
                let key = element_key(key, text, scope.execution)?;
                match of.evaluate(scope)? {
                    Some(collection) => element(ty, &collection, &key)?,
                    None => None,
                }
            }
            Self::Slice {
                of,
                ty,
                from,
                to,
                text,
            } => {
                let from = slice_end(from.as_ref(), text, scope.execution)?;
                let to = slice_end(to.as_ref(), text, scope.execution)?;
                match of.evaluate(scope)? {
                    Some(collection) => slice(ty, &collection, from.as_deref(), to.as_deref())?,
                    None => None,
                }
            }
            Self::Field { of, index } => match of.evaluate(scope)? {
                Some(value) => field(&value, *index)?,
                None => None,
            },
            Self::List { members, set_of } => Some(list(members, set_of.as_ref(), scope)?),
            Self::Map { entries, key } => Some(map(entries, key, scope)?),
            Self::Tuple(members) => Some(tuple(members, scope)?),
            Self::Aggregate(index) => scope.aggregates.get(*index).cloned().flatten(),
        })
    }
}

/// The value of a term without columns; unset is null.
fn constant(term: &Term, execution: &Execution<'_>) -> Result<Option<Bytes>, Error> {
    Ok(match term.evaluate(execution)? {
        Value::Bytes(bytes) => Some(bytes),
        Value::Null | Value::Unset => None,
    })
}

fn evaluate_all(expressions: &[Expr], scope: Scope<'_>) -> Result<Vec<Option<Bytes>>, Error> {
    expressions.iter().map(|expr| expr.evaluate(scope)).collect()
}

/// A member of a set, or the value of a map's key; `None` if the collection does not have it.
fn element(ty: &CqlType, collection: &Bytes, wanted: &[u8]) -> Result<Option<Bytes>, Error> {
    match ty {
        CqlType::Map { key, .. } => {
            for entry in map_entries(collection)? {
                let (found, value) = entry?;
                if key.compare(found, wanted).is_eq() {
                    return Ok(Some(collection.slice_ref(value)));
                }
            }
        }
        CqlType::Set { element, .. } => {
            for found in collection_elements(collection)? {
                let found = found?;
                if element.compare(found, wanted).is_eq() {
                    return Ok(Some(collection.slice_ref(found)));
                }
            }
        }
        _ => {}
    }
    Ok(None)
}

/// The part of a set or map between two keys; an unfrozen collection without members is null.
fn slice(
    ty: &CqlType,
    collection: &[u8],
    from: Option<&[u8]>,
    to: Option<&[u8]>,
) -> Result<Option<Bytes>, Error> {
    let (bytes, is_empty) = match ty {
        CqlType::Map { key, .. } => {
            let mut entries = map_entries(collection)?.collect::<Result<Vec<_>, _>>()?;
            entries.retain(|(found, _)| is_within(key, found, from, to));
            (encode_map(entries.iter().copied()), entries.is_empty())
        }
        CqlType::Set { element, .. } => {
            let mut elements = collection_elements(collection)?.collect::<Result<Vec<_>, _>>()?;
            elements.retain(|found| is_within(element, found, from, to));
            (encode_list(elements.iter().copied()), elements.is_empty())
        }
        _ => return Ok(None),
    };
    Ok((!is_empty || !ty.is_multi_cell()).then(|| bytes.into()))
}

fn field(value: &Bytes, index: usize) -> Result<Option<Bytes>, Error> {
    let component = tuple_components(value).nth(index).transpose()?.flatten();
    Ok(component.map(|component| value.slice_ref(component)))
}

fn required(expr: &Expr, what: &str, scope: Scope<'_>) -> Result<Bytes, Error> {
    expr.evaluate(scope)?
        .ok_or_else(|| Error::invalid(format!("null is not supported inside {what}")))
}

/// Compat: a list may have null members; a set, which is sorted, may not.
fn list(members: &[Expr], set_of: Option<&CqlType>, scope: Scope<'_>) -> Result<Bytes, Error> {
    let Some(ty) = set_of else {
        return Ok(list_with_nulls(&evaluate_all(members, scope)?));
    };
    let mut values = members
        .iter()
        .map(|member| required(member, "collections", scope))
        .collect::<Result<Vec<_>, _>>()?;
    values.sort_by(|a, b| ty.compare(a, b));
    values.dedup_by(|a, b| ty.compare(a, b).is_eq());
    Ok(encode_list(values.iter().map(Bytes::as_ref)).into())
}

fn map(entries: &[(Expr, Expr)], ty: &CqlType, scope: Scope<'_>) -> Result<Bytes, Error> {
    let mut values = Vec::with_capacity(entries.len());
    // In reverse, so that the stable sort puts the last of equal keys first.
    for (key, value) in entries.iter().rev() {
        values.push((
            required(key, "collections", scope)?,
            required(value, "collections", scope)?,
        ));
    }
    values.sort_by(|a, b| ty.compare(&a.0, &b.0));
    values.dedup_by(|a, b| ty.compare(&a.0, &b.0).is_eq());
    Ok(encode_map(values.iter().map(|(key, value)| (&**key, &**value))).into())
}

fn tuple(members: &[Option<Expr>], scope: Scope<'_>) -> Result<Bytes, Error> {
    let evaluate = |member: &Option<Expr>| match member {
        Some(member) => member.evaluate(scope),
        None => Ok(None),
    };
    let values = members.iter().map(evaluate).collect::<Result<Vec<_>, _>>()?;
    Ok(encode_tuple(values.iter().map(Option::as_deref)).into())
}
