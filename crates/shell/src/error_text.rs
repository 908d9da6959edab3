//! Errors of the server as text. Compat: names and words are those of cqlsh, which has them from the Python driver.

use ilion_protocol::{ErrorCode, ErrorDetail, ErrorResponse};

use crate::session::Failure;

/// A failure as one line.
pub fn print_failure(failure: &Failure) -> String {
    match failure {
        Failure::Refused(error) => print_error(error),
        Failure::Lost(reason) => format!("ConnectionException: {reason}"),
        Failure::Impossible(reason) => (*reason).to_owned(),
    }
}

fn print_error(error: &ErrorResponse) -> String {
    let code = error.detail.code();
    let (name, summary) = names(code);
    let Some(summary) = summary else {
        return match &error.detail {
            ErrorDetail::AlreadyExists { keyspace, table } if table.is_empty() => {
                format!("{name}: Keyspace '{keyspace}' already exists")
            }
            ErrorDetail::AlreadyExists { keyspace, table } => {
                format!("{name}: Table '{keyspace}.{table}' already exists")
            }
            _ => format!("{name}: {}", error.message),
        };
    };
    let number = code.number();
    let message = &error.message;
    let mut text = format!("{name}: Error from server: code={number:04x} [{summary}] message=\"{message}\"");
    if let Some(info) = info(&error.detail) {
        text.push_str(&format!(" info={{{info}}}"));
    }
    text
}

/// The class of the driver, and its summary if the message is given with one.
fn names(code: ErrorCode) -> (&'static str, Option<&'static str>) {
    const SILENT: &str = "Coordinator node timed out waiting for replica nodes' responses";
    match code {
        ErrorCode::Server => ("ServerError", None),
        ErrorCode::Protocol => ("ProtocolException", None),
        ErrorCode::BadCredentials => ("AuthenticationFailed", Some("Bad credentials")),
        ErrorCode::Unavailable => ("Unavailable", Some("Unavailable exception")),
        ErrorCode::Overloaded => ("OverloadedErrorMessage", None),
        ErrorCode::Bootstrapping => ("IsBootstrappingErrorMessage", None),
        ErrorCode::Truncate => ("TruncateError", None),
        ErrorCode::WriteTimeout => ("WriteTimeout", Some(SILENT)),
        ErrorCode::ReadTimeout => ("ReadTimeout", Some(SILENT)),
        ErrorCode::ReadFailure => ("ReadFailure", Some("Replica(s) failed to execute read")),
        ErrorCode::FunctionFailure => ("FunctionFailure", Some("User Defined Function failure")),
        ErrorCode::WriteFailure => ("WriteFailure", Some("Replica(s) failed to execute write")),
        ErrorCode::CdcWriteFailure => ("CDCWriteException", None),
        ErrorCode::CasWriteUnknown => ("CasWriteUnknown", None),
        ErrorCode::Syntax => ("SyntaxException", None),
        ErrorCode::Unauthorized => ("Unauthorized", Some("Unauthorized")),
        ErrorCode::Invalid => ("InvalidRequest", Some("Invalid query")),
        ErrorCode::Config => ("ConfigurationException", None),
        ErrorCode::AlreadyExists => ("AlreadyExists", None),
        ErrorCode::Unprepared => ("PreparedQueryNotFound", None),
    }
}

/// The fields of errors about replicas.
fn info(detail: &ErrorDetail) -> Option<String> {
    match detail {
        ErrorDetail::Unavailable {
            consistency,
            required,
            alive,
        } => Some(format!(
            "'consistency': '{consistency}', 'required_replicas': {required}, 'alive_replicas': {alive}"
        )),
        ErrorDetail::WriteTimeout {
            consistency,
            received,
            block_for,
            ..
        }
        | ErrorDetail::ReadTimeout {
            consistency,
            received,
            block_for,
            ..
        }
        | ErrorDetail::ReadFailure {
            consistency,
            received,
            block_for,
            ..
        }
        | ErrorDetail::WriteFailure {
            consistency,
            received,
            block_for,
            ..
        } => Some(format!(
            "'consistency': '{consistency}', 'required_responses': {block_for}, 'received_responses': {received}"
        )),
        _ => None,
    }
}
