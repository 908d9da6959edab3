//! Right sides that are lists of values: what follows `IN`.

use bytes::Bytes;
use ilion_cql::ast;
use ilion_types::{CqlType, collection_elements};

use super::Term;
use crate::context::{Execution, PlanContext};
use crate::{ColumnSpec, Error, Value};

/// A planned list of values.
#[derive(Clone, Debug)]
pub(crate) enum Terms {
    /// `(a, b)`
    Each(Vec<Term>),
    /// A marker for the whole list.
    Marker(Term),
}

impl Terms {
    /// Plans the right side of `IN`; each member is for `receiver`.
    ///
    /// # Errors
    /// A member may not stand for the receiver.
    pub(crate) fn plan(
        operand: &ast::Operand,
        receiver: &ColumnSpec,
        context: &PlanContext<'_>,
    ) -> Result<Self, Error> {
        match operand {
            ast::Operand::List(terms) => terms
                .iter()
                .map(|term| Term::plan(term, receiver, context))
                .collect::<Result<_, _>>()
                .map(Self::Each),
            ast::Operand::Term(term) => {
                let list = ColumnSpec {
                    name: format!("in({})", receiver.name).into(),
                    ty: CqlType::List {
                        element: receiver.ty.freeze().into(),
                        frozen: false,
                    },
                    ..receiver.clone()
                };
                Term::plan(term, &list, context).map(Self::Marker)
            }
            ast::Operand::None => Err(Error::invalid("IN needs a list of values")),
        }
    }

    /// The values. A marker that is null or unset gives one such value.
    ///
    /// # Errors
    /// A bound value is none of its type, or a function failed.
    pub(crate) fn evaluate(&self, execution: &Execution<'_>) -> Result<Vec<Value>, Error> {
        match self {
            Self::Each(terms) => terms.iter().map(|term| term.evaluate(execution)).collect(),
            Self::Marker(term) => match term.evaluate(execution)? {
                Value::Bytes(list) => elements(&list).map(|all| all.into_iter().map(Value::Bytes).collect()),
                missing => Ok(vec![missing]),
            },
        }
    }
}

/// The elements of a serialized list or set, sharing its bytes.
pub(super) fn elements(list: &Bytes) -> Result<Vec<Bytes>, Error> {
    collection_elements(list)?
        .map(|element| Ok(list.slice_ref(element?)))
        .collect()
}
