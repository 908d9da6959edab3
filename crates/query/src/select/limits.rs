//! LIMIT and PER PARTITION LIMIT.

use ilion_cql::ast;
use ilion_types::CqlType;

use super::compile::Compiler;
use crate::context::{Execution, PlanContext};
use crate::term::Term;
use crate::{Error, Value};

/// The planned limits.
#[derive(Debug)]
pub(super) struct LimitTerms {
    rows: Option<Term>,
    per_partition: Option<Term>,
}

/// The limits of one execution; `None` means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub rows: Option<u32>,
    pub per_partition: Option<u32>,
}

impl LimitTerms {
    pub fn plan(
        ast: &ast::Select,
        compiler: &Compiler<'_>,
        context: &PlanContext<'_>,
    ) -> Result<Self, Error> {
        let plan = |term: &Option<ast::Term>, name: &str| {
            let spec = compiler.spec(name, CqlType::Int);
            let term = term.as_ref();
            term.map(|term| Term::plan(term, &spec, context)).transpose()
        };
        Ok(Self {
            rows: plan(&ast.limit, "[limit]")?,
            per_partition: plan(&ast.per_partition_limit, "[per_partition_limit]")?,
        })
    }

    pub fn evaluate(&self, execution: &Execution<'_>) -> Result<Limits, Error> {
        Ok(Limits {
            rows: evaluate(self.rows.as_ref(), execution)?,
            per_partition: evaluate(self.per_partition.as_ref(), execution)?,
        })
    }
}

fn evaluate(term: Option<&Term>, execution: &Execution<'_>) -> Result<Option<u32>, Error> {
    let Some(term) = term else {
        return Ok(None);
    };
    match term.evaluate(execution)? {
        Value::Unset => Ok(None),
        Value::Null => Err(Error::invalid("Invalid null value of limit")),
        Value::Bytes(bytes) => {
            let limit = <[u8; 4]>::try_from(&*bytes).map_err(|_| Error::invalid("Invalid limit value"))?;
            match u32::try_from(i32::from_be_bytes(limit)) {
                Ok(limit) if limit > 0 => Ok(Some(limit)),
                _ => Err(Error::invalid("LIMIT must be strictly positive")),
            }
        }
    }
}
