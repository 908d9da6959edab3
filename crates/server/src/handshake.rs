//! OPTIONS and STARTUP at the beginning of a session: answered by the task of the connection, never in segments.

use ilion_protocol::{
    Compression, ErrorResponse, Frame, FrameDecoder, Request, RequestFrame, Response, ResponseHead, Startup,
    Version, encode_response,
};

use crate::answer::Reply;
use crate::logins::Logins;
use crate::request::{expect_in_stage, supported};
use crate::session::{ConnectionStage, Session, Wire};

/// Answers a frame that came before STARTUP was accepted. A valid STARTUP opens the session; the client may have to log in.
pub(crate) fn answer(
    session: &Session,
    decoder: &mut FrameDecoder,
    frame: &Frame,
    throws_by_default: bool,
    logins: &Logins,
) -> Vec<u8> {
    let response = RequestFrame::decode(frame)
        .map_err(ErrorResponse::from)
        .and_then(|request| respond(session, decoder, &request, throws_by_default, logins))
        .unwrap_or_else(Response::Error);
    let mut out = Vec::new();
    // These answers are far below the limit of an envelope.
    let _ = encode_response(
        &mut out,
        &ResponseHead::new(frame.version, frame.stream),
        &response,
        None,
    );
    out
}

fn respond(
    session: &Session,
    decoder: &mut FrameDecoder,
    frame: &RequestFrame,
    throws_by_default: bool,
    logins: &Logins,
) -> Result<Response, ErrorResponse> {
    expect_in_stage(ConnectionStage::Established, &frame.request)?;
    if let Request::Startup(startup) = &frame.request {
        open(session, decoder, startup, frame.version)?;
        session.throw_on_overload(startup.throws_on_overload(frame.version, throws_by_default));
        return Ok(logins.begin(session));
    }
    match supported() {
        Reply::Response(response) => Ok(response),
        Reply::Rows(_) | Reply::PreparedRows { .. } => Err(ErrorResponse::server("SUPPORTED has no rows")),
    }
}

fn open(
    session: &Session,
    decoder: &mut FrameDecoder,
    startup: &Startup,
    version: Version,
) -> Result<(), ErrorResponse> {
    startup.cql_version()?;
    let compression: Option<Compression> = startup.compression(version)?;
    decoder.fix_version(version);
    match version {
        Version::V5 => decoder.use_segments(compression),
        Version::V3 | Version::V4 => decoder.use_compression(compression),
    }
    session.change_client(|client| {
        client.options.clone_from(&startup.options);
        client.wire = Some(Wire { version, compression });
    });
    Ok(())
}
