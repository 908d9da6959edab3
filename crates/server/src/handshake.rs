//! OPTIONS and STARTUP at the beginning of a session: answered by the task of the connection, never in segments.

use std::sync::Arc;

use ilion_protocol::{
    Compression, ErrorResponse, Frame, FrameDecoder, Request, RequestFrame, Response, Startup, Version,
};
use ilion_tls::Socket;

use crate::answer::Reply;
use crate::logins::{Logins, encode_unpacked};
use crate::request::{expect_in_stage, supported};
use crate::session::{ConnectionStage, Session, Wire};

/// Answers a frame that came before STARTUP was accepted. A valid STARTUP opens the session; the client may have to log in. Returns
/// `None` if a login thread will answer.
pub(crate) fn answer(
    session: &Arc<Session>,
    socket: &Socket,
    decoder: &mut FrameDecoder,
    frame: &Frame,
    throws_by_default: bool,
    logins: &Logins,
) -> Option<Vec<u8>> {
    let response = RequestFrame::decode(frame)
        .map_err(ErrorResponse::from)
        .and_then(|request| {
            expect_in_stage(ConnectionStage::Established, &request.request)?;
            let Request::Startup(startup) = &request.request else {
                return Ok(Some(options()?));
            };
            open(session, decoder, startup, request.version)?;
            session.throw_on_overload(startup.throws_on_overload(request.version, throws_by_default));
            Ok(logins.begin(session, socket, frame))
        })
        .unwrap_or_else(|error| Some(Response::Error(error)))?;
    Some(encode_unpacked(frame.version, frame.stream, &response))
}

fn options() -> Result<Response, ErrorResponse> {
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
