//! The answer to requests for which there is no memory, or which exceed the limit per second: 0x1001, after which drivers retry.

use std::num::NonZeroU32;

use ilion_protocol::{ErrorDetail, ErrorResponse, Response, ResponseHead, Version, encode_response};

use crate::answer::Reply;
use crate::metrics::ServerMetrics;
use crate::session::{InFlight, SentBy, Session};

/// Why a request is refused.
#[derive(Clone, Copy)]
pub(crate) enum Overload {
    NoMemory,
    /// Clients send more requests per second than this limit.
    Rate(NonZeroU32),
}

impl Overload {
    fn message(self) -> String {
        match self {
            Self::NoMemory => "Requests and unread answers of all clients, or of this address, take as much memory as they may \
                 (native_transport_max_request_data_in_flight): retry later"
                .to_owned(),
            Self::Rate(per_sec) => format!(
                "Request breached global limit of {per_sec} requests/second (native_transport_max_requests_per_second): \
                 retry later"
            ),
        }
    }
}

/// Refuses a request and counts it as answered.
pub(crate) fn refuse(
    session: &Session,
    metrics: &ServerMetrics,
    version: Version,
    stream: i16,
    done: InFlight,
    overload: Overload,
) {
    let error = ErrorResponse::new(ErrorDetail::Overloaded, overload.message());
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
