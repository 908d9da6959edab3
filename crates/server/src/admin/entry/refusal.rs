//! [`Refusal`]: a request that may not pass, and the answer to it.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ilion_query::Error;
use serde_json::json;

/// Why a request is refused.
#[derive(Debug)]
pub(super) struct Refusal {
    pub status: StatusCode,
    pub reason: String,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, reason: &str) -> Self {
        Self {
            status,
            reason: reason.to_owned(),
        }
    }

    pub(super) fn unknown(reason: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, reason)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::BadCredentials(_) => StatusCode::UNAUTHORIZED,
            Error::Unauthorized(_) => StatusCode::FORBIDDEN,
            Error::Overloaded(_) => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self {
            status,
            reason: error.to_string(),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(json!({ "error": self.reason }))).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            // Not Basic: browsers would ask for a password themselves, and then send it with requests of any page.
            let challenge = HeaderValue::from_static("Bearer realm=\"ilion\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}
