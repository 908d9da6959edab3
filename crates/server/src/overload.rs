//! The answer to requests for which there is no memory: 0x1001, after which drivers retry.

use ilion_protocol::{ErrorDetail, ErrorResponse, Response, ResponseHead, Version, encode_response};

use crate::answer::Reply;
use crate::metrics::ServerMetrics;
use crate::session::{InFlight, SentBy, Session};

const MESSAGE: &str = "Requests and unread answers of all clients, or of this address, take as much memory as they may \
     (native_transport_max_request_data_in_flight): retry later";

/// Refuses a request and counts it as answered.
pub(crate) fn refuse(
    session: &Session,
    metrics: &ServerMetrics,
    version: Version,
    stream: i16,
    done: InFlight,
) {
    let error = ErrorResponse::new(ErrorDetail::Overloaded, MESSAGE);
    metrics.count_error(&Reply::error(error.clone()));
    let mut answer = Vec::new();
    // An error message is far below the limit of an envelope.
    let _ = encode_response(
        &mut answer,
        &ResponseHead::new(version, stream),
        &Response::Error(error),
        None,
    );
    session.deliver(session.pack(answer), done, SentBy::Caller);
}
