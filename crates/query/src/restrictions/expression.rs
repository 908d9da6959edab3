//! The values that a restriction compares with, checked for null and unset.

use bytes::Bytes;
use ilion_rows::Values;
use ilion_schema::Column;
use ilion_types::tuple_components;

use super::names::names;
use crate::context::Execution;
use crate::term::{Term, Terms};
use crate::{Error, Value};

/// A value for each of one or more leading restricted columns.
#[derive(Debug)]
pub(crate) enum Expression {
    /// A value for one column.
    One {
        /// The value.
        term: Term,
    },
    /// A tuple with a value for each of several columns.
    Tuple {
        /// The tuple.
        term: Term,
        /// The number of columns.
        arity: usize,
    },
}

/// The right side of an IN.
#[derive(Debug)]
pub(crate) struct Expressions {
    /// The members.
    pub terms: Terms,
    /// True if each member is a tuple.
    pub are_tuples: bool,
}

impl Expression {
    /// The number of columns that the expression has values for.
    pub fn arity(&self) -> usize {
        match self {
            Self::One { .. } => 1,
            Self::Tuple { arity, .. } => *arity,
        }
    }

    /// The values that `columns` are equal to, none of them null.
    pub fn evaluate(&self, columns: &[Column], execution: &Execution<'_>) -> Result<Values, Error> {
        match self {
            Self::One { .. } => Ok(one(self.evaluate_one(columns, execution)?)),
            Self::Tuple { term, .. } => {
                let tuple = given(term.evaluate(execution)?, columns)?;
                components(&tuple, columns, &|column| {
                    format!("Invalid null value for column {}", column.name)
                })
            }
        }
    }

    /// The value that the column must equal.
    pub fn evaluate_one(&self, columns: &[Column], execution: &Execution<'_>) -> Result<Bytes, Error> {
        match self {
            Self::One { term, .. } => given(term.evaluate(execution)?, columns),
            Self::Tuple { .. } => first(self.evaluate(columns, execution)?, columns),
        }
    }

    /// The values of an end of a slice; `None` is null.
    pub fn evaluate_edge(
        &self,
        columns: &[Column],
        execution: &Execution<'_>,
    ) -> Result<Option<Values>, Error> {
        let columns = columns.get(..self.arity()).unwrap_or(columns);
        match self {
            Self::One { term, .. } => match term.evaluate(execution)? {
                Value::Null => Ok(None),
                value => given(value, columns).map(|value| Some(one(value))),
            },
            Self::Tuple { term, .. } => {
                let tuple = given(term.evaluate(execution)?, columns)?;
                components(&tuple, columns, &|column| {
                    format!("Invalid null value in condition for column {}", column.name)
                })
                .map(Some)
            }
        }
    }

    /// The values that rows are compared with.
    pub fn evaluate_supported(&self, columns: &[Column], execution: &Execution<'_>) -> Result<Values, Error> {
        match (self, columns) {
            (Self::One { term, .. }, [column, ..]) => {
                supported(term.evaluate(execution)?, "value", column).map(one)
            }
            _ => self.evaluate(columns, execution),
        }
    }
}

impl Expressions {
    /// The members, without nulls.
    pub fn evaluate(&self, columns: &[Column], execution: &Execution<'_>) -> Result<Vec<Values>, Error> {
        let values = self.members(columns, execution)?;
        values
            .into_iter()
            .map(|value| self.member(value, columns))
            .collect()
    }

    /// The members that rows are compared with; a null among them matches no row.
    pub fn evaluate_supported(
        &self,
        columns: &[Column],
        execution: &Execution<'_>,
    ) -> Result<Vec<Values>, Error> {
        let values = self.members(columns, execution)?;
        let given = values
            .into_iter()
            .filter(|value| matches!(value, Value::Bytes(_)));
        given.map(|value| self.member(value, columns)).collect()
    }

    fn members(&self, columns: &[Column], execution: &Execution<'_>) -> Result<Vec<Value>, Error> {
        let values = self.terms.evaluate(execution)?;
        let is_whole = matches!(self.terms, Terms::Marker(_));
        let message = match &*values {
            [Value::Null] if is_whole && self.are_tuples => {
                "Invalid null value for IN restriction".to_owned()
            }
            [Value::Null] if is_whole => format!("Invalid null value for column {}", names(columns)),
            [Value::Unset] if is_whole => format!("Invalid unset value for column {}", names(columns)),
            _ => return Ok(values),
        };
        Err(Error::Invalid(message))
    }

    fn member(&self, value: Value, columns: &[Column]) -> Result<Values, Error> {
        let value = given(value, columns)?;
        if !self.are_tuples {
            return Ok(one(value));
        }
        components(&value, columns, &|_| {
            format!(
                "Invalid null value in condition for columns: [{}]",
                names(columns)
            )
        })
    }
}

fn one(value: Bytes) -> Values {
    Values::from_iter([Some(value)])
}

/// The value of a term that must not be null.
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

/// The value of a term that rows are compared with.
pub(super) fn supported(value: Value, what: &str, column: &Column) -> Result<Bytes, Error> {
    let kind = match value {
        Value::Bytes(bytes) => return Ok(bytes),
        Value::Null => "null",
        Value::Unset => "unset",
    };
    Err(Error::invalid(format!(
        "Unsupported {kind} {what} for column {}",
        column.name
    )))
}

/// The error for null in the place of values of these columns.
pub(super) fn null_value(columns: &[Column]) -> Error {
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
fn components(
    tuple: &Bytes,
    columns: &[Column],
    refusal: &dyn Fn(&Column) -> String,
) -> Result<Values, Error> {
    let mut parts = tuple_components(tuple);
    columns
        .iter()
        .map(|column| match parts.next().transpose()?.flatten() {
            Some(part) => Ok(Some(tuple.slice_ref(part))),
            None => Err(Error::Invalid(refusal(column))),
        })
        .collect()
}
