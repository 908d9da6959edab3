//! Which values a receiver accepts (`AssignmentTestable`).

use ilion_cql::ast;
use ilion_types::CqlType;

use super::functions::{self, Argument};
use super::{compound, constant};
use crate::context::PlanContext;
use crate::type_name::resolve_type;
use crate::{ColumnSpec, Error};

/// How well a term fits a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Assignment {
    /// Not at all.
    No,
    /// It can be read as the receiver's type.
    Weak,
    /// It has the receiver's type.
    Exact,
}

impl Assignment {
    /// How well several terms fit together: the worst of them.
    pub(crate) fn all(each: impl IntoIterator<Item = Self>) -> Self {
        // A loop takes less stack than iterator adapters, and literals nest deeply.
        let mut worst = Self::Exact;
        for one in each {
            worst = worst.min(one);
        }
        worst
    }
}

/// How well a value of type `from` fits a receiver of type `to`.
pub(crate) fn test_type_assignment(to: &CqlType, from: &CqlType) -> Assignment {
    if to.freeze() == from.freeze() {
        Assignment::Exact
    } else if takes_values_of(to, from) {
        Assignment::Weak
    } else {
        Assignment::No
    }
}

/// True if the bytes of every value of `from` are also a value of `to` with the same meaning
/// (`AbstractType.isValueCompatibleWith`).
pub(crate) fn takes_values_of(to: &CqlType, from: &CqlType) -> bool {
    use CqlType as T;
    match (to, from) {
        (T::Blob, _) => true,
        (T::Text, T::Ascii)
        | (T::Varint, T::Int | T::BigInt | T::Timestamp)
        | (T::BigInt, T::Timestamp)
        | (T::Timestamp | T::Time, T::BigInt)
        | (T::Date, T::Int)
        | (T::Uuid, T::TimeUuid) => true,
        (T::List { element: to, .. }, T::List { element: from, .. })
        | (T::Set { element: to, .. }, T::Set { element: from, .. }) => takes_values_of(to, from),
        (
            T::Map { key, value, .. },
            T::Map {
                key: from_key,
                value: from_value,
                ..
            },
        ) => takes_values_of(key, from_key) && takes_values_of(value, from_value),
        (T::Tuple(to), T::Tuple(from)) => {
            to.len() >= from.len()
                && to
                    .iter()
                    .zip(from.iter())
                    .all(|(to, from)| takes_values_of(to, from))
        }
        (
            T::Vector { element, dimension },
            T::Vector {
                element: from,
                dimension: from_dimension,
            },
        ) => dimension == from_dimension && takes_values_of(element, from),
        _ => to.freeze() == from.freeze(),
    }
}

/// How well `term` fits `receiver`.
pub(crate) fn test_assignment(
    term: &ast::Term,
    receiver: &ColumnSpec,
    context: &PlanContext<'_>,
) -> Assignment {
    match term {
        ast::Term::Literal(literal) => constant::test(literal, &receiver.ty),
        ast::Term::Bind(_) => Assignment::Weak,
        ast::Term::TypeHint { type_name, .. } => {
            match resolve_type(type_name, Some(&receiver.keyspace), context.schema) {
                Ok(ty) => test_type_assignment(&receiver.ty, &ty),
                Err(_) => Assignment::No,
            }
        }
        ast::Term::List(_)
        | ast::Term::Set(_)
        | ast::Term::Map(_)
        | ast::Term::UserType(_)
        | ast::Term::Tuple(_) => compound::test(term, receiver, context),
        ast::Term::Function { .. }
        | ast::Term::Cast { .. }
        | ast::Term::Arithmetic { .. }
        | ast::Term::Negate(_) => match result_type(term, Some(receiver), context) {
            Some(ty) => test_type_assignment(&receiver.ty, &ty),
            None => Assignment::No,
        },
    }
}

/// The type that a term has without a receiver, if it has one.
pub(super) fn known_type(term: &ast::Term, context: &PlanContext<'_>) -> Option<CqlType> {
    match term {
        ast::Term::Literal(literal) => constant::own_type(literal),
        ast::Term::Bind(_) => None,
        ast::Term::TypeHint { type_name, .. } => {
            resolve_type(type_name, context.keyspace, context.schema).ok()
        }
        ast::Term::Function { .. }
        | ast::Term::Cast { .. }
        | ast::Term::Arithmetic { .. }
        | ast::Term::Negate(_) => result_type(term, None, context),
        _ => compound::own_type(term, context),
    }
}

/// The result type of a call or operation; `None` if there is no such function.
fn result_type(
    term: &ast::Term,
    receiver: Option<&ColumnSpec>,
    context: &PlanContext<'_>,
) -> Option<CqlType> {
    let receiver_type = receiver.map(|receiver| &receiver.ty);
    let function = match term {
        ast::Term::Function { name, arguments } => {
            let arguments: Vec<Argument<'_>> = arguments.iter().map(Argument::Term).collect();
            let table = receiver.map(|receiver| (&*receiver.keyspace, &*receiver.table));
            functions::scalar_function(name, &arguments, receiver_type, table, context).ok()??
        }
        ast::Term::Cast { type_name, .. } => {
            return resolve_type(type_name, context.keyspace, context.schema).ok();
        }
        _ => functions::operation_function(term, receiver_type, context).ok()??,
    };
    Some(function.result_type().clone())
}

/// Checks `(type_name) term` against the receiver.
pub(super) fn check_hint(
    type_name: &ast::CqlTypeName,
    term: &ast::Term,
    whole: &ast::Term,
    receiver: &ColumnSpec,
    context: &PlanContext<'_>,
) -> Result<(), Error> {
    let ty = resolve_type(type_name, Some(&receiver.keyspace), context.schema)?;
    let hinted = ColumnSpec {
        name: whole.to_string().into(),
        ty: ty.clone(),
        ..receiver.clone()
    };
    if test_assignment(term, &hinted, context) == Assignment::No {
        return Err(Error::Invalid(format!(
            "Cannot cast value {term} to type {type_name}"
        )));
    }
    if test_type_assignment(&receiver.ty, &ty) == Assignment::No {
        return Err(Error::Invalid(format!(
            "Cannot assign value {whole} to {} of type {}",
            receiver.name, receiver.ty
        )));
    }
    Ok(())
}
