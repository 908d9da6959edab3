//! `GET /admin/changes`: the changes of a table, one line each, while they happen. Also the requests of and about named consumers.
//!
//! The thread of a consumer reads the next part once the last one was taken: a slow consumer does not slow the node, and only a few parts
//! are in memory. A consumer that reads nothing for the timeout of the port is disconnected; it can resume from its position.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Extension, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::stream;
use serde_json::json;
use tokio::sync::mpsc;

use super::handling::{Shared, in_thread};
use super::{Admin, Caller, CommitOrder, ForgetOrder, ReleaseOrder};
use crate::changes::{ChangeStream, ChangesOrder};

/// Largest number of parts that wait for the consumer.
const PARTS: usize = 2;

pub(super) fn routes() -> Router<Arc<dyn Admin>> {
    Router::new()
        .route("/admin/changes", get(changes))
        .route("/admin/changes/commit", post(commit))
        .route("/admin/changes/consumers", get(consumers))
        .route("/admin/changes/release", post(release))
        .route("/admin/changes/forget", post(forget))
}

async fn commit(
    State(admin): Shared,
    Extension(caller): Extension<Caller>,
    Query(order): Query<CommitOrder>,
) -> Response {
    in_thread(move || {
        admin.commit_changes(&order, &caller)?;
        Ok(Json(json!({})).into_response())
    })
    .await
}

async fn consumers(State(admin): Shared) -> Response {
    in_thread(move || Ok(Json(admin.change_consumers()?).into_response())).await
}

async fn release(State(admin): Shared, Query(order): Query<ReleaseOrder>) -> Response {
    in_thread(move || Ok(Json(admin.release_changes(&order)?).into_response())).await
}

async fn forget(State(admin): Shared, Query(order): Query<ForgetOrder>) -> Response {
    in_thread(move || Ok(Json(json!({ "tables": admin.forget_consumer(&order)? })).into_response())).await
}

async fn changes(
    State(admin): Shared,
    Extension(caller): Extension<Caller>,
    Query(order): Query<ChangesOrder>,
) -> Response {
    in_thread(move || {
        let opened = admin.changes(&order, &caller)?;
        let (sender, mut receiver) = mpsc::channel(PARTS);
        let pumping = std::thread::Builder::new().name("ilion-changes".to_owned());
        let started = pumping.spawn(move || pump(opened, &sender));
        if let Err(error) = started {
            let reason = format!("no thread for another consumer: {error}");
            return Err(super::AdminError::Failed(reason));
        }
        let parts = stream::poll_fn(move |context| receiver.poll_recv(context));
        let content = [(header::CONTENT_TYPE, "application/x-ndjson")];
        Ok((StatusCode::OK, content, Body::from_stream(parts)).into_response())
    })
    .await
}

/// Passes parts on until the consumer is gone or the stream ends.
fn pump(mut changes: ChangeStream, parts: &mpsc::Sender<Result<Bytes, std::convert::Infallible>>) {
    while !parts.is_closed() {
        match changes.next_part() {
            None => return,
            Some(part) if part.is_empty() => {}
            Some(part) => {
                if parts.blocking_send(Ok(part.into())).is_err() {
                    return;
                }
            }
        }
    }
}
