//! How well terms fit a receiver, and the types that they have without one. Resolving a call tests its arguments, and testing an
//! argument may resolve a call.

use ilion_cql::ast;
use ilion_types::CqlType;

use super::Argument;
use crate::ColumnSpec;
use crate::context::PlanContext;
use crate::term::assignment::{Assignment, test_type_assignment};
use crate::term::{compound, constant};
use crate::type_name::resolve_type;

impl Argument<'_> {
    pub(crate) fn test(&self, spec: &ColumnSpec, context: &PlanContext<'_>) -> Assignment {
        match self {
            Self::Term(term) => test_assignment(term, spec, context),
            Self::Typed(ty, _) => test_type_assignment(&spec.ty, ty),
        }
    }

    /// The type of the argument without a receiver, if it has one.
    pub(crate) fn known_type(&self, context: &PlanContext<'_>) -> Option<CqlType> {
        match self {
            Self::Term(term) => known_type(term, context),
            Self::Typed(ty, _) => Some((*ty).clone()),
        }
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
pub(crate) fn known_type(term: &ast::Term, context: &PlanContext<'_>) -> Option<CqlType> {
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

/// The result type of a call or operation; `None` if no function takes the arguments.
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
            super::scalar_function(name, &arguments, receiver_type, table, context).ok()??
        }
        ast::Term::Cast { type_name, .. } => {
            return resolve_type(type_name, context.keyspace, context.schema).ok();
        }
        _ => super::operation_function(term, receiver_type, context).ok()??,
    };
    Some(function.result_type().clone())
}
