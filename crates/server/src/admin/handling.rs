//! Common parts of the handlers of the HTTP port: access to the administration, a thread for blocking work, errors as answers.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::{Admin, AdminError};

pub(super) type Shared = State<Arc<dyn Admin>>;

/// Runs a handler on a thread that may block, since calls of the engine block.
pub(super) async fn in_thread(
    work: impl FnOnce() -> Result<Response, AdminError> + Send + 'static,
) -> Response {
    let outcome = tokio::task::spawn_blocking(work).await;
    let error = match outcome {
        Ok(Ok(response)) => return response,
        Ok(Err(error)) => error,
        Err(_) => AdminError::Failed("it met a bug of the server; its log has more".to_owned()),
    };
    let status = match error {
        AdminError::Refused(_) => StatusCode::BAD_REQUEST,
        AdminError::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, Json(json!({ "error": error.to_string() }))).into_response()
}

/// Converts an error of the engine.
pub(super) fn failed(error: ilion_engine::Error) -> AdminError {
    match error {
        ilion_engine::Error::Refused(reason) => AdminError::Refused(reason),
        other => AdminError::Failed(other.to_string()),
    }
}
