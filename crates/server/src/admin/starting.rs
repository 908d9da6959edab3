//! The HTTP port of a node that starts: 200 to `/healthz`, and 503 with the reason to everything else.

use std::sync::Arc;

use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;
use tokio::net::TcpListener;

use super::DoorOptions;
use super::listen::serve;

/// Returns what the node is doing.
pub type Progress = Arc<dyn Fn() -> String + Send + Sync>;

/// The message for clients and operators.
pub(crate) fn reason(progress: &Progress) -> String {
    format!("the node is starting: {}; try again later", progress())
}

/// Answers until the runtime ends.
pub(crate) fn answer(
    listener: TcpListener,
    options: &DoorOptions,
    progress: Progress,
) -> impl Future<Output = ()> + use<> {
    let refuse = move |uri: Uri| {
        let answer = refusal(uri.path(), &reason(&progress));
        async move { answer }
    };
    let router = Router::new()
        .route("/healthz", get(async || "ok\n"))
        .fallback(refuse);
    serve(listener, router, options.serving())
}

fn refusal(path: &str, reason: &str) -> Response {
    let status = StatusCode::SERVICE_UNAVAILABLE;
    match path {
        "/readyz" => (status, format!("{reason}\n")).into_response(),
        _ => (status, Json(json!({ "error": reason }))).into_response(),
    }
}
