//! [`ScalarFunction`]: a function for given argument types, native or user-defined.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use ilion_types::CqlType;

use super::arithmetic;
use crate::context::Execution;
use crate::{ColumnSpec, Error};

/// The arguments of a function; `None` is null.
pub(crate) type Arguments<'a> = &'a [Option<Bytes>];

pub(super) type Body =
    Box<dyn Fn(Arguments<'_>, &Execution<'_>) -> Result<Option<Bytes>, Error> + Send + Sync>;

/// A scalar function for given argument types.
pub(crate) struct ScalarFunction {
    pub(super) keyspace: String,
    pub(super) name: String,
    pub(super) arguments: Vec<CqlType>,
    pub(super) result: CqlType,
    pub(super) body: Body,
}

impl ScalarFunction {
    pub(super) fn new(
        name: impl Into<String>,
        arguments: impl IntoIterator<Item = CqlType>,
        result: CqlType,
        body: impl Fn(Arguments<'_>, &Execution<'_>) -> Result<Option<Bytes>, Error> + Send + Sync + 'static,
    ) -> Self {
        Self {
            keyspace: "system".to_owned(),
            name: name.into(),
            arguments: arguments.into_iter().collect(),
            result,
            body: Box::new(body),
        }
    }

    /// A function of one argument that returns null for null.
    pub(super) fn of_value(
        name: impl Into<String>,
        argument: CqlType,
        result: CqlType,
        body: impl Fn(&Bytes) -> Result<Option<Bytes>, Error> + Send + Sync + 'static,
    ) -> Self {
        Self::new(name, [argument], result, move |arguments, _| {
            match arguments.first() {
                Some(Some(argument)) => body(argument),
                _ => Ok(None),
            }
        })
    }

    /// Its keyspace; `system` for native functions.
    pub(crate) fn keyspace(&self) -> &str {
        &self.keyspace
    }

    /// Its name, without a keyspace.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn argument_types(&self) -> &[CqlType] {
        &self.arguments
    }

    pub(crate) fn result_type(&self) -> &CqlType {
        &self.result
    }

    /// Calls the function; `None` is null.
    ///
    /// # Errors
    /// The function failed for these values.
    pub(crate) fn call(
        &self,
        arguments: Arguments<'_>,
        execution: &Execution<'_>,
    ) -> Result<Option<Bytes>, Error> {
        (self.body)(arguments, execution)
    }

    /// The spec of argument `index`.
    ///
    /// # Errors
    /// The function has fewer arguments, which is a bug.
    pub(crate) fn argument_spec(
        &self,
        index: usize,
        keyspace: &Arc<str>,
        table: &Arc<str>,
    ) -> Result<ColumnSpec, Error> {
        let ty = self
            .arguments
            .get(index)
            .ok_or_else(|| Error::ServerError(format!("function {} has no argument {index}", self.name)))?;
        Ok(ColumnSpec {
            keyspace: keyspace.clone(),
            table: table.clone(),
            name: format!("arg{index}({})", self.qualified_name()).into(),
            ty: ty.clone(),
        })
    }

    /// Its kind and name in messages: `function system.now`, `operation +`.
    pub(crate) fn kind_and_name(&self) -> (&'static str, String) {
        match arithmetic::symbol_of(&self.name) {
            Some(symbol) => ("operation", symbol.to_string()),
            None => ("function", self.qualified_name()),
        }
    }

    /// Its name with its keyspace, as in messages and column names.
    pub(crate) fn qualified_name(&self) -> String {
        format!("{}.{}", self.keyspace, self.name)
    }
}

impl fmt::Debug for ScalarFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Its signature: `system.abs(int) -> int`.
impl fmt::Display for ScalarFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let types: Vec<String> = self.arguments.iter().map(CqlType::to_string).collect();
        write!(
            f,
            "{}({}) -> {}",
            self.qualified_name(),
            types.join(", "),
            self.result
        )
    }
}

/// The error for a native function that failed.
pub(super) fn failure(function: &str, argument_types: Vec<String>, what: impl fmt::Display) -> Error {
    failure_of("system", function, argument_types, what)
}

pub(super) fn failure_of(
    keyspace: &str,
    function: &str,
    argument_types: Vec<String>,
    what: impl fmt::Display,
) -> Error {
    Error::FunctionFailure {
        keyspace: keyspace.to_owned(),
        function: function.to_owned(),
        message: format!(
            "execution of '{keyspace}.{function}[{}]' failed: {what}",
            argument_types.join(", ")
        ),
        argument_types,
    }
}
