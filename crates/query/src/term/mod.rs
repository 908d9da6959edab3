//! Terms: expressions for one value, planned for the column or argument that receives it.

pub(crate) mod functions;

use ilion_cql::ast;

use crate::context::{Execution, PlanContext};
use crate::{ColumnSpec, Error, Value};

/// A planned term.
#[derive(Debug)]
pub(crate) struct Term;

impl Term {
    /// Resolves a term for what receives it.
    pub fn plan(_ast: &ast::Term, _receiver: &ColumnSpec, _context: &PlanContext<'_>) -> Result<Self, Error> {
        Err(Error::ServerError("terms are not built yet".into()))
    }

    /// Its value in this execution.
    pub fn evaluate(&self, _execution: &Execution<'_>) -> Result<Value, Error> {
        Err(Error::ServerError("terms are not built yet".into()))
    }

    /// True if the value is the same in every execution.
    pub fn is_constant(&self) -> bool {
        false
    }
}

/// The right side of an `IN`: a list of terms, or one marker for a list.
#[derive(Debug)]
pub(crate) struct Terms;

impl Terms {
    /// Resolves them; the receiver is what receives each of them.
    pub fn plan(
        _operand: &ast::Operand,
        _receiver: &ColumnSpec,
        _context: &PlanContext<'_>,
    ) -> Result<Self, Error> {
        Err(Error::ServerError("terms are not built yet".into()))
    }

    /// Their values in this execution.
    pub fn evaluate(&self, _execution: &Execution<'_>) -> Result<Vec<Value>, Error> {
        Err(Error::ServerError("terms are not built yet".into()))
    }
}
