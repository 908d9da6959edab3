//! Native scalar functions, by name and types of the arguments.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use ilion_cql::ast::QualifiedName;
use ilion_types::CqlType;

use crate::Error;
use crate::context::Execution;

/// A function of one row's values.
pub(crate) trait ScalarFunction: fmt::Debug + Send + Sync {
    /// Its result.
    fn result_type(&self) -> &CqlType;

    /// Computes it; nothing is null.
    fn call(&self, arguments: &[Option<Bytes>], execution: &Execution<'_>) -> Result<Option<Bytes>, Error>;
}

/// The function of this name for these arguments. `receiver` is what takes the result, where that is known.
pub(crate) fn scalar_function(
    name: &QualifiedName,
    _arguments: &[CqlType],
    _receiver: Option<&CqlType>,
) -> Result<Arc<dyn ScalarFunction>, Error> {
    Err(Error::ServerError(format!(
        "function {} is not built yet",
        name.name
    )))
}
