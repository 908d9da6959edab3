//! The function of a mask, found when a statement is planned, and its application.

use std::sync::Arc;

use bytes::Bytes;
use ilion_schema::{Column, ColumnMask, TableSchema};

use crate::Error;
use crate::context::{Execution, PlanContext};
use crate::term::functions::{ScalarFunction, stored_masking_function};

/// A mask, ready to be applied.
#[derive(Debug)]
pub(crate) struct Masker {
    /// The function, or the reason why it cannot be called.
    function: Result<Arc<ScalarFunction>, String>,
    /// The arguments after the masked value.
    arguments: Vec<Option<Bytes>>,
}

impl Masker {
    /// The mask of a column. If its function cannot be called, roles without UNMASK cannot read the column: a data
    /// directory of Cassandra may have masks that are written in Java, or that Ilion does not have.
    pub fn of(mask: &ColumnMask, column: &Column, table: &TableSchema, context: &PlanContext<'_>) -> Self {
        let found = stored_masking_function(mask, &column.ty, context);
        let function = found.filter(|function| *function.result_type() == column.ty);
        let arguments = mask.arguments.iter().map(|argument| argument.value.clone());
        Self {
            function: function.map(Arc::new).ok_or_else(|| {
                format!(
                    "Column {} of {}.{} cannot be read without UNMASK permission: its mask {mask} calls a function that \
                     does not exist here",
                    column.name, table.keyspace, table.name
                )
            }),
            arguments: arguments.collect(),
        }
    }

    /// The value that is shown instead of a stored one; `None` is null.
    ///
    /// # Errors
    /// The function failed. The error hides the reason: that of a user-defined function may contain the value.
    pub fn mask(&self, value: Option<Bytes>, execution: &Execution<'_>) -> Result<Option<Bytes>, Error> {
        let function = self.function.as_ref().map_err(Error::invalid)?;
        let mut arguments = Vec::with_capacity(1 + self.arguments.len());
        arguments.push(value);
        arguments.extend(self.arguments.iter().cloned());
        function.call(&arguments, execution).map_err(without_reason)
    }
}

fn without_reason(failed: Error) -> Error {
    match failed {
        Error::FunctionFailure {
            keyspace,
            function,
            argument_types,
            ..
        } => Error::FunctionFailure {
            message: format!(
                "execution of '{keyspace}.{function}[{}]' failed, which masks a column",
                argument_types.join(", ")
            ),
            keyspace,
            function,
            argument_types,
        },
        other => other,
    }
}
