//! The values that a restriction compares with, checked for null and unset.

use bytes::Bytes;
use ilion_rows::Values;
use ilion_schema::Column;
use ilion_types::tuple_components;

use super::restriction::names;
use crate::context::Execution;
use crate::term::{Term, Terms};
use crate::{Error, Value};

/// One value for each of some leading restricted columns.
#[derive(Debug)]
pub(crate) enum Expression {
    /// Of one column.
    One {
        /// The value.
        term: Term,
        /// The bind marker, if it is nothing else.
        marker: Option<u16>,
    },
    /// Of as many columns as the tuple has components.
    Tuple {
        /// The tuple.
        term: Term,
        /// How many.
        arity: usize,
    },
}

/// The right side of an IN.
#[derive(Debug)]
pub(crate) struct Expressions {
    /// The members.
    pub terms: Terms,
    /// Each is a tuple.
    pub are_tuples: bool,
}

impl Expression {
    /// How many columns it has values for.
    pub fn arity(&self) -> usize {
        match self {
            Self::One { .. } => 1,
            Self::Tuple { arity, .. } => *arity,
        }
    }

    /// The values for `columns`, none of them null.
    pub fn evaluate(&self, columns: &[Column], execution: &Execution<'_>) -> Result<Values, Error> {
        let columns = columns.get(..self.arity()).unwrap_or(columns);
        match self {
            Self::One { term, .. } => {
                let value = given(term.evaluate(execution)?, columns)?;
                Ok(Values::from_iter([Some(value)]))
            }
            Self::Tuple { term, .. } => components(&given(term.evaluate(execution)?, columns)?, columns),
        }
    }

    /// The value, if it is of one column.
    pub fn evaluate_one(&self, columns: &[Column], execution: &Execution<'_>) -> Result<Bytes, Error> {
        match self {
            Self::One { term, .. } => given(term.evaluate(execution)?, columns),
            Self::Tuple { .. } => first(self.evaluate(columns, execution)?, columns),
        }
    }
}

impl Expressions {
    /// The members, none with a null.
    pub fn evaluate(&self, columns: &[Column], execution: &Execution<'_>) -> Result<Vec<Values>, Error> {
        let values = self.terms.evaluate(execution)?;
        let evaluate = |value| {
            let value = given(value, columns)?;
            if self.are_tuples {
                components(&value, columns)
            } else {
                Ok(Values::from_iter([Some(value)]))
            }
        };
        values.into_iter().map(evaluate).collect()
    }
}

/// The value of a term that may not be null.
pub(super) fn given(value: Value, columns: &[Column]) -> Result<Bytes, Error> {
    match value {
        Value::Bytes(bytes) => Ok(bytes),
        Value::Null => Err(null_value(columns)),
        Value::Unset => Err(Error::invalid(format!(
            "Invalid unset value for column {}",
            names(columns)
        ))),
    }
}

fn null_value<'a>(columns: impl IntoIterator<Item = &'a Column>) -> Error {
    Error::invalid(format!(
        "Invalid null value in condition for column {}",
        names(columns)
    ))
}

fn first(values: Values, columns: &[Column]) -> Result<Bytes, Error> {
    values
        .into_iter()
        .flatten()
        .next()
        .ok_or_else(|| null_value(columns))
}

/// The components of a tuple, one for each column.
fn components(tuple: &Bytes, columns: &[Column]) -> Result<Values, Error> {
    let mut parts = tuple_components(tuple);
    columns
        .iter()
        .map(|column| match parts.next().transpose()?.flatten() {
            Some(part) => Ok(Some(tuple.slice_ref(part))),
            None => Err(null_value([column])),
        })
        .collect()
}
