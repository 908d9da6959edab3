//! ERROR: `code: i32, message: string`, then the fields of the code (`error_detail`).

use crate::error::Error;
use crate::notation::{Input, put_i32, put_string};
use crate::response::error_code::ErrorCode;
use crate::response::error_detail::ErrorDetail;
use crate::version::Version;

/// ERROR: the request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (code {:#06x})", self.detail.code().number())]
pub struct ErrorResponse {
    /// Text for people.
    pub message: String,
    /// Code and fields for programs.
    pub detail: ErrorDetail,
}

impl ErrorResponse {
    /// An error with its message.
    pub fn new(detail: ErrorDetail, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            detail,
        }
    }

    /// The client broke the protocol.
    pub fn protocol(message: impl Into<String>) -> Self {
        Self::new(ErrorDetail::Protocol, message)
    }

    /// The statement is invalid.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorDetail::Invalid, message)
    }

    /// The server failed.
    pub fn server(message: impl Into<String>) -> Self {
        Self::new(ErrorDetail::Server, message)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>, version: Version) {
        put_i32(out, self.detail.code_in(version).number());
        put_string(out, &self.message);
        self.detail.encode(out, version);
    }

    pub(super) fn decode(input: &mut Input<'_>, version: Version) -> Result<Self, Error> {
        let number = input.i32()?;
        let message = input.string()?;
        let code = ErrorCode::from_number(number)
            .ok_or_else(|| Error::refused(format!("unknown error code {number:#06x}: {message}")))?;
        let detail = ErrorDetail::decode(input, version, code)?;
        Ok(Self { message, detail })
    }
}

impl From<Error> for ErrorResponse {
    fn from(error: Error) -> Self {
        Self::protocol(error.to_string())
    }
}
