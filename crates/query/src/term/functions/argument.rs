//! [`Argument`]: an argument of a call as written in the statement. `typing` decides how well it fits.

use std::fmt;

use ilion_cql::ast;
use ilion_types::CqlType;

/// An argument in the statement.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Argument<'a> {
    /// A term without columns. Its type may depend on the receiver.
    Term(&'a ast::Term),
    /// Another expression (a column, the result of a selector) with its type and text.
    Typed(&'a CqlType, &'a str),
}

impl Argument<'_> {
    pub(super) fn is_marker(&self) -> bool {
        matches!(self, Self::Term(ast::Term::Bind(_)))
    }
}

impl fmt::Display for Argument<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Term(term) => term.fmt(f),
            Self::Typed(_, text) => f.write_str(text),
        }
    }
}
