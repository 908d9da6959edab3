//! Errors as exceptions. Their classes are those of `python/src/ilion/errors.py`.

use ilion::{ColumnSpec, EngineError, Error, OpenError, StatementError};
use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

/// Why a value cannot be converted.
pub enum Problem {
    /// It does not fit; the text is the reason.
    Unfit(String),
    /// Code of Python has raised an exception.
    Raised(PyErr),
}

impl From<PyErr> for Problem {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

impl From<String> for Problem {
    fn from(reason: String) -> Self {
        Self::Unfit(reason)
    }
}

/// A converted value.
pub type Converted<T> = Result<T, Problem>;

/// A value that does not fit.
pub fn unfit<T>(expected: &str, value: &Bound<'_, PyAny>) -> Converted<T> {
    let given = type_name(value);
    Err(Problem::Unfit(format!("expected {expected}, got {given}")))
}

/// A call that the module itself refuses.
#[derive(Clone, Copy)]
pub enum Refused {
    Closed,
    Forked,
    ForeignStatement,
    BatchKind,
}

/// An exception of this class, with attributes.
fn exception(py: Python<'_>, class: &str, message: &str, attributes: &[(&str, Attribute<'_>)]) -> PyErr {
    let made = || {
        let class = py.import("ilion.errors")?.getattr(class)?;
        let class = class.cast::<PyType>()?;
        let values = PyDict::new(py);
        for (name, value) in attributes {
            let value = match value {
                Attribute::Text(text) => text.into_bound_py_any(py)?,
                Attribute::Number(number) => number.into_bound_py_any(py)?,
                Attribute::Texts(texts) => texts.into_bound_py_any(py)?,
            };
            values.set_item(name, value)?;
        }
        let raised = class.call((message,), Some(&values))?;
        PyResult::Ok(PyErr::from_value(raised))
    };
    made().unwrap_or_else(|error| error)
}

/// The value of an attribute.
enum Attribute<'a> {
    Text(&'a str),
    Number(i32),
    Texts(&'a [String]),
}

/// The exception for a call that is refused.
pub fn refused(py: Python<'_>, refused: Refused) -> PyErr {
    let message = match refused {
        Refused::Closed => "the session is closed: open the directory again with ilion.connect",
        Refused::Forked => {
            "the session belongs to the process that this one was forked from: a directory is open in one process at a time; \
             open it after the fork, or start processes by 'spawn'"
        }
        Refused::ForeignStatement => {
            "the statement was prepared by another session: prepare it with this one"
        }
        Refused::BatchKind => "the kind of a batch is 'logged', 'unlogged' or 'counter'",
    };
    exception(py, "InterfaceError", message, &[])
}

/// The exception for a bug in this package.
pub fn bug(py: Python<'_>, what: &str) -> PyErr {
    exception(py, "InternalError", what, &[])
}

/// The exception for a parameter that does not fit its marker.
pub fn of_parameter(py: Python<'_>, index: usize, marker: &ColumnSpec, problem: Problem) -> PyErr {
    match problem {
        Problem::Raised(error) => error,
        Problem::Unfit(reason) => {
            let message = format!(
                "parameter {index} ({}) is of type {}: {reason}",
                marker.name, marker.ty
            );
            exception(py, "BindError", &message, &[])
        }
    }
}

/// The exception for more or fewer parameters than markers.
pub fn wrong_count(py: Python<'_>, markers: usize, given: usize) -> PyErr {
    let message = format!("the statement has {markers} bind markers, {given} parameters were given");
    exception(py, "BindError", &message, &[])
}

/// The exception for parameters that are neither a sequence nor a dict.
pub fn no_parameters(py: Python<'_>, given: &Bound<'_, PyAny>) -> PyErr {
    let message = format!(
        "parameters are a tuple, a list or a dict, not {}: for one value write (value,)",
        type_name(given)
    );
    exception(py, "BindError", &message, &[])
}

/// The exception for the value of a column that cannot be converted.
pub fn of_column(py: Python<'_>, name: &str, problem: Problem) -> PyErr {
    match problem {
        Problem::Raised(error) => error,
        Problem::Unfit(reason) => exception(py, "DataError", &format!("column {name}: {reason}"), &[]),
    }
}

/// The name of the type of an object, for messages.
pub fn type_name(object: &Bound<'_, PyAny>) -> String {
    let name = object.get_type().qualname();
    name.map_or_else(|_| "an object".to_owned(), |name| name.to_string())
}

/// The exception for an error of the library.
pub fn raised(py: Python<'_>, error: &Error) -> PyErr {
    let message = error.to_string();
    let class = match error {
        Error::Statement(error) => return of_statement(py, error, &message),
        Error::Open(OpenError::Engine(EngineError::InUse(directory))) => {
            let message = format!(
                "{} is in use: a directory is open once at a time, in this process or another one; share the session between threads",
                directory.display()
            );
            return exception(py, "DirectoryInUse", &message, &[]);
        }
        Error::Open(_) => "OpenError",
        Error::Engine(_) => "EngineError",
        Error::Argument { .. } => "BindError",
        _ => "InternalError",
    };
    exception(py, class, &message, &[])
}

fn of_statement(py: Python<'_>, error: &StatementError, message: &str) -> PyErr {
    use Attribute::{Number, Text, Texts};
    use StatementError as E;
    let raise = |class: &str, attributes: &[(&str, Attribute<'_>)]| exception(py, class, message, attributes);
    match error {
        E::ServerError(_) | E::Unprepared { .. } => raise("InternalError", &[]),
        E::Protocol(_) => raise("ProtocolException", &[]),
        E::BadCredentials(_) | E::Unauthorized(_) => raise("Unauthorized", &[]),
        E::Unavailable {
            consistency,
            required,
            alive,
        } => raise(
            "Unavailable",
            &[
                ("consistency", Text(&consistency.to_string())),
                ("required_replicas", Number(*required)),
                ("alive_replicas", Number(*alive)),
            ],
        ),
        E::Overloaded(_) | E::Overtaken | E::IsBootstrapping(_) => raise("Overloaded", &[]),
        E::Truncate(_) => raise("TruncateError", &[]),
        E::WriteTimeout {
            consistency,
            write_type,
            received,
            block_for,
            ..
        } => raise(
            "WriteTimeout",
            &[
                ("consistency", Text(&consistency.to_string())),
                ("write_type", Text(write_type.name())),
                ("received_responses", Number(*received)),
                ("required_responses", Number(*block_for)),
            ],
        ),
        E::CasWriteUnknown { consistency, .. } => raise(
            "WriteTimeout",
            &[
                ("consistency", Text(&consistency.to_string())),
                ("write_type", Text("CAS")),
            ],
        ),
        E::ReadTimeout {
            consistency,
            received,
            block_for,
            ..
        } => raise(
            "ReadTimeout",
            &[
                ("consistency", Text(&consistency.to_string())),
                ("received_responses", Number(*received)),
                ("required_responses", Number(*block_for)),
            ],
        ),
        E::ReadFailure { .. } => raise("ReadFailure", &[]),
        E::WriteFailure { write_type, .. } => {
            raise("WriteFailure", &[("write_type", Text(write_type.name()))])
        }
        E::FunctionFailure {
            keyspace,
            function,
            argument_types,
            ..
        } => raise(
            "FunctionFailure",
            &[
                ("keyspace", Text(keyspace)),
                ("function", Text(function)),
                ("arg_types", Texts(argument_types)),
            ],
        ),
        E::CdcWriteFailure(_) => raise("CDCWriteFailure", &[]),
        E::Syntax(_) => raise("SyntaxException", &[]),
        E::Invalid(_) => raise("InvalidRequest", &[]),
        E::Config(_) => raise("ConfigurationException", &[]),
        E::AlreadyExists { keyspace, table } if table.is_empty() => {
            raise("AlreadyExists", &[("keyspace", Text(keyspace))])
        }
        E::AlreadyExists { keyspace, table } => raise(
            "AlreadyExists",
            &[("keyspace", Text(keyspace)), ("table", Text(table))],
        ),
    }
}
