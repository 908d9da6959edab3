//! `GET /admin/changes`: the changes of a table, one line of JSON each, while they happen.
//!
//! The thread of a consumer reads the next part once the last one was taken: a slow consumer does not slow the node, and only a few parts
//! are in memory. A consumer that reads nothing for the timeout of the port is disconnected; it can resume from its position.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Extension, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream;
use tokio::sync::mpsc;

use super::handling::{Shared, in_thread};
use super::{Admin, Caller};
use crate::changes::{ChangeStream, ChangesOrder};

/// Parts that wait for the consumer.
const PARTS: usize = 2;

pub(super) fn routes() -> Router<Arc<dyn Admin>> {
    Router::new().route("/admin/changes", get(changes))
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
