//! Maps errors of statements to errors of the protocol.

use std::net::IpAddr;

use bytes::Bytes;
use ilion_protocol::{Consistency, ErrorDetail, ErrorResponse, FailureReason, Failures, WriteType};
use ilion_query::Error;

/// `block_for` of failed requests: one replica reads or writes, in a cluster as well.
const BLOCK_FOR: i32 = 1;

/// Converts an error to that of the protocol; `node` is the address of the only replica.
pub fn error_response(error: Error, node: IpAddr) -> ErrorResponse {
    let message = error.message();
    ErrorResponse::new(detail(error, node), message)
}

fn detail(error: Error, node: IpAddr) -> ErrorDetail {
    match error {
        Error::ServerError(_) => ErrorDetail::Server,
        Error::Protocol(_) => ErrorDetail::Protocol,
        Error::BadCredentials(_) => ErrorDetail::BadCredentials,
        Error::Unavailable {
            consistency,
            required,
            alive,
        } => ErrorDetail::Unavailable {
            consistency: level(consistency),
            required,
            alive,
        },
        Error::Overloaded(_) | Error::Overtaken => ErrorDetail::Overloaded,
        Error::IsBootstrapping(_) => ErrorDetail::Bootstrapping,
        Error::Truncate(_) => ErrorDetail::Truncate,
        Error::WriteTimeout {
            consistency,
            write_type,
            received,
            block_for,
            ..
        } => ErrorDetail::WriteTimeout {
            consistency: level(consistency),
            received,
            block_for,
            write_type: kind_of_write(write_type),
            contentions: None,
        },
        Error::ReadTimeout {
            consistency,
            received,
            block_for,
            ..
        } => ErrorDetail::ReadTimeout {
            consistency: level(consistency),
            received,
            block_for,
            data_present: false,
        },
        Error::ReadFailure {
            consistency, reason, ..
        } => ErrorDetail::ReadFailure {
            consistency: level(consistency),
            received: 0,
            block_for: BLOCK_FOR,
            failures: failed(node, reason),
            data_present: false,
        },
        Error::FunctionFailure {
            keyspace,
            function,
            argument_types,
            ..
        } => ErrorDetail::FunctionFailure {
            keyspace,
            function,
            arguments: argument_types,
        },
        Error::WriteFailure {
            consistency,
            write_type,
            reason,
            ..
        } => ErrorDetail::WriteFailure {
            consistency: level(consistency),
            received: 0,
            block_for: BLOCK_FOR,
            failures: failed(node, reason),
            write_type: kind_of_write(write_type),
        },
        Error::CdcWriteFailure(_) => ErrorDetail::CdcWriteFailure,
        Error::CasWriteUnknown {
            consistency,
            received,
            block_for,
            ..
        } => ErrorDetail::CasWriteUnknown {
            consistency: level(consistency),
            received,
            block_for,
        },
        Error::Syntax(_) => ErrorDetail::Syntax,
        Error::Unauthorized(_) => ErrorDetail::Unauthorized,
        Error::Invalid(_) => ErrorDetail::Invalid,
        Error::Config(_) => ErrorDetail::Config,
        Error::AlreadyExists { keyspace, table } => ErrorDetail::AlreadyExists { keyspace, table },
        Error::Unprepared { id } => ErrorDetail::Unprepared { id: Bytes::from(id) },
    }
}

fn level(consistency: ilion_query::Consistency) -> Consistency {
    Consistency::from_number(consistency.0).unwrap_or_default()
}

fn failed(node: IpAddr, reason: ilion_query::FailureReason) -> Failures {
    Failures::Reasons(vec![(node, FailureReason(reason as u16))])
}

fn kind_of_write(write_type: ilion_query::WriteType) -> WriteType {
    match write_type {
        ilion_query::WriteType::Simple => WriteType::Simple,
        ilion_query::WriteType::Batch => WriteType::Batch,
        ilion_query::WriteType::UnloggedBatch => WriteType::UnloggedBatch,
        ilion_query::WriteType::Counter => WriteType::Counter,
        ilion_query::WriteType::Cas => WriteType::Cas,
        ilion_query::WriteType::BatchLog => WriteType::BatchLog,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_both_sides_agree() {
        let consistency = ilion_query::Consistency::QUORUM;
        let write_type = ilion_query::WriteType::Cas;
        let reason = ilion_query::FailureReason::Timeout;
        let text = || "x".to_owned();
        let errors = [
            Error::ServerError(text()),
            Error::Protocol(text()),
            Error::BadCredentials(text()),
            Error::Unavailable {
                consistency,
                required: 2,
                alive: 1,
            },
            Error::Overloaded(text()),
            Error::Overtaken,
            Error::IsBootstrapping(text()),
            Error::Truncate(text()),
            Error::WriteTimeout {
                consistency,
                write_type,
                received: 0,
                block_for: 1,
                message: text(),
            },
            Error::ReadTimeout {
                consistency,
                received: 0,
                block_for: 1,
                message: text(),
            },
            Error::ReadFailure {
                consistency,
                reason,
                message: text(),
            },
            Error::WriteFailure {
                consistency,
                write_type,
                reason,
                message: text(),
            },
            Error::CdcWriteFailure(text()),
            Error::CasWriteUnknown {
                consistency,
                received: 0,
                block_for: 1,
                message: text(),
            },
            Error::Syntax(text()),
            Error::Unauthorized(text()),
            Error::Invalid(text()),
            Error::Config(text()),
            Error::AlreadyExists {
                keyspace: text(),
                table: text(),
            },
            Error::Unprepared { id: vec![1] },
        ];
        for error in errors {
            let code = error.code();
            let response = error_response(error, IpAddr::from([127, 0, 0, 1]));
            assert_eq!(response.detail.code().number(), i32::try_from(code).unwrap());
        }
    }
}
