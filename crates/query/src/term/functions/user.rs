//! User-defined functions as scalar functions.
//!
//! Compat: `UDFunction` of Cassandra 5.0. A function that cannot run (a data directory of Cassandra may have functions in Java)
//! is still resolved by name and signature, but a call of it fails with the reason.

use std::sync::Arc;

use bytes::Bytes;
use ilion_schema::{FunctionSchema, Keyspace};
use ilion_script::{CallBudget, Limits, Script};
use ilion_types::CqlType;

use super::scalar::{Arguments, ScalarFunction, failure_of};
use crate::context::{Execution, PlanContext};
use crate::function_calls::{FunctionCall, FunctionCalls, FunctionResults};
use crate::{Error, QueryOptions};

/// The only language that is supported.
const LANGUAGE: &str = "lua";

/// The scalar function.
pub(super) fn make(
    keyspace: &Keyspace,
    function: &FunctionSchema,
    context: &PlanContext<'_>,
) -> ScalarFunction {
    context.calls(&keyspace.name, &function.name);
    let user = UserFunction {
        keyspace: keyspace.name.clone(),
        name: function.name.clone(),
        argument_types: function.argument_types().cloned().collect(),
        is_called_on_null: function.called_on_null_input,
        script: script_of(&keyspace.name, function, context.options),
    };
    ScalarFunction {
        keyspace: keyspace.name.clone(),
        name: function.name.clone(),
        arguments: user.argument_types.clone(),
        result: function.return_type.clone(),
        body: Box::new(move |arguments, execution| user.call(arguments, execution)),
    }
}

struct UserFunction {
    keyspace: String,
    name: String,
    argument_types: Vec<CqlType>,
    is_called_on_null: bool,
    /// The compiled body, or the reason why the function cannot run.
    script: Result<Script, String>,
}

impl UserFunction {
    fn call(&self, arguments: Arguments<'_>, execution: &Execution<'_>) -> Result<Option<Bytes>, Error> {
        let call = || FunctionCall {
            keyspace: self.keyspace.clone(),
            name: self.name.clone(),
            argument_types: self.argument_types.iter().map(ToString::to_string).collect(),
            arguments: arguments.to_vec(),
        };
        execution.calls.result(call, |budget| {
            if !execution.query_options.user_functions_enabled {
                return Err(Error::invalid(USER_FUNCTIONS_DISABLED));
            }
            self.compute(arguments, budget)
        })
    }

    fn compute(&self, arguments: Arguments<'_>, budget: &CallBudget) -> Result<Option<Bytes>, Error> {
        if !self.is_called_on_null && self.has_null(arguments) {
            return Ok(None);
        }
        let script = self.script.as_ref().map_err(|reason| {
            Error::Invalid(format!(
                "Function '{}.{}' exists but hasn't been loaded successfully for the following reason: {reason}",
                self.keyspace, self.name
            ))
        })?;
        script.call(arguments, budget).map_err(|failed| {
            let types = self.argument_types.iter().map(ToString::to_string).collect();
            failure_of(&self.keyspace, &self.name, types, failed)
        })
    }

    /// True if an argument is null. Compat: `UDFunction.isCallableWrtNullable`: an empty value counts as null if its type has no empty
    /// values.
    fn has_null(&self, arguments: Arguments<'_>) -> bool {
        self.argument_types
            .iter()
            .zip(arguments)
            .any(|(ty, argument)| match argument {
                None => true,
                Some(value) => {
                    value.is_empty()
                        && !matches!(
                            ty,
                            CqlType::Ascii | CqlType::Text | CqlType::Blob | CqlType::Custom(_)
                        )
                }
            })
    }
}

/// Compat: `UDFunction.assertUdfsEnabled`.
pub(crate) const USER_FUNCTIONS_DISABLED: &str = "User-defined functions are disabled in cassandra.yaml - set \
    user_defined_functions_enabled=true to enable";

/// The compiled body of a function, or the reason why it cannot run.
pub(crate) fn script_of(
    keyspace: &str,
    function: &FunctionSchema,
    options: &QueryOptions,
) -> Result<Script, String> {
    if function.language != LANGUAGE {
        return Err(format!(
            "Language '{}' of function '{keyspace}.{}' is not supported: Ilion runs functions in LANGUAGE {LANGUAGE}",
            function.language, function.name
        ));
    }
    Script::compile(
        &function.arguments,
        &function.return_type,
        &function.body,
        limits(options),
    )
    .map_err(|refused| {
        format!(
            "Could not compile function '{keyspace}.{}' from Lua source: {refused}",
            function.name
        )
    })
}

/// The limits of one call.
fn limits(options: &QueryOptions) -> Limits {
    Limits {
        time: options.user_function_time_max,
        ..Limits::default()
    }
}

/// All long calls of a statement together may take as long as this many calls that reach their limit.
const LONG_CALLS_MAX: u32 = 8;

/// The calls of one statement, with a time limit for all of them. If results are `given`, no function is called.
pub(crate) fn function_calls(options: &QueryOptions, given: Option<Arc<FunctionResults>>) -> FunctionCalls {
    let time = options.user_function_time_max.saturating_mul(LONG_CALLS_MAX);
    FunctionCalls::new(CallBudget::new(time), given)
}
