//! Prints terms.

use std::fmt::{Display, Formatter, Result};

use super::{List, QualifiedFunction, separated};
use crate::ast::{ArithmeticOperator, BindMarker, Literal, Term};
use crate::quote::{Name, Text};

impl Display for Literal {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Null => out.write_str("NULL"),
            Self::String(text) => Text(text).fmt(out),
            Self::Integer(text) | Self::Float(text) | Self::Uuid(text) | Self::Duration(text) => {
                out.write_str(text)
            }
            Self::NaN => out.write_str("NaN"),
            Self::Infinity => out.write_str("Infinity"),
            Self::NegativeInfinity => out.write_str("-Infinity"),
            Self::Boolean(value) => value.fmt(out),
            Self::Blob(digits) => write!(out, "0x{digits}"),
        }
    }
}

impl Display for BindMarker {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match &self.name {
            Some(name) => write!(out, ":{}", Name(name)),
            None => out.write_str("?"),
        }
    }
}

impl Display for Term {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Literal(literal) => literal.fmt(out),
            Self::Bind(marker) => marker.fmt(out),
            Self::List(members) => write!(out, "[{}]", List(members)),
            Self::Set(members) => write!(out, "{{{}}}", List(members)),
            Self::Map(entries) => {
                out.write_str("{")?;
                separated(out, entries, ", ", |out, (key, value)| {
                    write!(out, "{key}: {value}")
                })?;
                out.write_str("}")
            }
            Self::UserType(fields) => {
                out.write_str("{")?;
                separated(out, fields, ", ", |out, (field, value)| {
                    write!(out, "{}: {value}", Name(field))
                })?;
                out.write_str("}")
            }
            Self::Tuple(members) => write!(out, "({})", List(members)),
            Self::Function { name, arguments } => {
                write!(out, "{}({})", QualifiedFunction(name), List(arguments))
            }
            Self::TypeHint { type_name, term } => write!(out, "({type_name}){term}"),
            Self::Cast { term, type_name } => write!(out, "CAST({term} AS {type_name})"),
            Self::Arithmetic {
                operator,
                left,
                right,
            } => {
                let keeps_left =
                    |inner: ArithmeticOperator| inner.is_multiplicative() || !operator.is_multiplicative();
                let keeps_right =
                    |inner: ArithmeticOperator| inner.is_multiplicative() && !operator.is_multiplicative();
                side(out, left, keeps_left)?;
                write!(out, " {} ", operator.symbol())?;
                side(out, right, keeps_right)
            }
            // A space follows the minus, since `-1` is a literal and `--` starts a comment.
            Self::Negate(term) => {
                out.write_str("- ")?;
                side(out, term, |_| false)
            }
        }
    }
}

/// Prints an operand. An operation gets parentheses, unless `keeps` accepts its operator.
fn side(out: &mut Formatter<'_>, term: &Term, keeps: impl Fn(ArithmeticOperator) -> bool) -> Result {
    match term {
        Term::Arithmetic { operator, .. } if !keeps(*operator) => write!(out, "({term})"),
        term => term.fmt(out),
    }
}
