//! Lists of values after `IN`.

use bytes::Bytes;
use ilion_codec::Reader;
use ilion_cql::ast;
use ilion_types::CqlType;

use super::{Marker, Term};
use crate::context::{Execution, PlanContext};
use crate::{ColumnSpec, Error, Value};

/// A planned list of values.
#[derive(Clone, Debug)]
pub(crate) enum Terms {
    /// `(a, b)`
    Each(Vec<Term>),
    /// A marker for the whole list.
    Marker(ListMarker),
}

/// A marker that receives a list. Unlike in a stored list, its elements may be null.
#[derive(Clone, Debug)]
pub(crate) struct ListMarker {
    index: usize,
    element: Marker,
}

impl Terms {
    /// Plans the right side of `IN`. `receiver` is the receiver of each member.
    ///
    /// # Errors
    /// A member does not fit the receiver.
    pub(crate) fn plan(
        operand: &ast::Operand,
        receiver: &ColumnSpec,
        context: &PlanContext<'_>,
    ) -> Result<Self, Error> {
        let plan = |term: &ast::Term| Term::plan(term, receiver, context);
        Self::plan_each(operand, receiver, context, plan)
    }

    /// Like [`Self::plan`]; `plan` plans a member.
    pub(crate) fn plan_each(
        operand: &ast::Operand,
        receiver: &ColumnSpec,
        context: &PlanContext<'_>,
        plan: impl Fn(&ast::Term) -> Result<Term, Error>,
    ) -> Result<Self, Error> {
        match operand {
            ast::Operand::List(terms) => terms.iter().map(plan).collect::<Result<_, _>>().map(Self::Each),
            ast::Operand::Term(term) => {
                let list = ColumnSpec {
                    name: format!("in({})", receiver.name).into(),
                    ty: CqlType::List {
                        element: receiver.ty.freeze().into(),
                        frozen: false,
                    },
                    ..receiver.clone()
                };
                let marker = term
                    .as_bind_marker()
                    .ok_or_else(|| Error::invalid("IN needs a list of values or a marker for it"))?;
                context.mark(marker.index, list);
                Ok(Self::Marker(ListMarker {
                    index: marker.index,
                    element: Marker::of(marker.index, &receiver.ty),
                }))
            }
            ast::Operand::None => Err(Error::invalid("IN needs a list of values")),
        }
    }

    /// The values. If the marker of the whole list is null or unset, that is the only value.
    ///
    /// # Errors
    /// A bound value does not fit its type, or a function failed.
    pub(crate) fn evaluate(&self, execution: &Execution<'_>) -> Result<Vec<Value>, Error> {
        match self {
            Self::Each(terms) => terms.iter().map(|term| term.evaluate(execution)).collect(),
            Self::Marker(marker) => match execution.value(marker.index)? {
                Value::Bytes(list) => marker.elements(list),
                missing => Ok(vec![missing.clone()]),
            },
        }
    }

    /// The bound value of a marker for the whole list; `None` for a list of terms.
    pub(crate) fn whole<'e>(&self, execution: &'e Execution<'_>) -> Result<Option<&'e Value>, Error> {
        match self {
            Self::Each(_) => Ok(None),
            Self::Marker(marker) => execution.value(marker.index).map(Some),
        }
    }
}

impl ListMarker {
    fn elements(&self, list: &Bytes) -> Result<Vec<Value>, Error> {
        let refused = || Error::invalid("Not enough bytes to read a list");
        let mut reader = Reader::new(list);
        let count = reader.i32().map_err(|_| refused())?;
        let count = usize::try_from(count).map_err(|_| refused())?;
        if count > reader.remaining() / 4 {
            return Err(refused());
        }
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            values.push(match reader.bytes32_or_null().map_err(|_| refused())? {
                None => Value::Null,
                Some(element) => Value::Bytes(self.element.checked(&list.slice_ref(element))?),
            });
        }
        if reader.is_empty() {
            Ok(values)
        } else {
            Err(Error::invalid("Unexpected extraneous bytes after list value"))
        }
    }
}
