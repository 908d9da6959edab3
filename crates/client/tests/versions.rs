//! The version of the protocol that a connection gets, from servers old and new.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

use bytes::BytesMut;
use ilion_client::{Connection, LoginArgs, Target};
use ilion_protocol::{
    ErrorResponse, FrameDecoder, Limits, Opcode, Request, RequestFrame, Response, ResponseHead, ResultBody,
    Role, Version, encode_response, encode_segments,
};

/// A server with one thread, whose newest version is `newest`. It has a password, and returns the bytes of each connection.
struct Server {
    newest: Version,
    /// True if a byte of its answers to statements is changed on the way.
    damages: bool,
}

/// What a server saw on a connection.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    requests: Vec<(Version, Opcode)>,
}

impl Server {
    fn start(self, connections: usize) -> (Target, JoinHandle<Vec<Seen>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let login = LoginArgs {
            user: Some("anna".to_owned()),
            password: Some("secret".to_owned()),
            ..LoginArgs::default()
        };
        let serve = move || {
            let sockets = (0..connections).map(|_| listener.accept().unwrap().0);
            sockets.map(|socket| self.serve(socket)).collect()
        };
        (Target::new("127.0.0.1", port, &login), thread::spawn(serve))
    }

    /// Answers until the client, or an error, ends the connection.
    fn serve(&self, mut socket: TcpStream) -> Seen {
        let mut decoder = FrameDecoder::new(Role::Server, Limits::default());
        let (mut input, mut arrival) = (BytesMut::new(), [0; 4096]);
        let mut seen = Seen { requests: Vec::new() };
        let mut has_segments = false;
        loop {
            let Some(frame) = decoder.decode(&mut input).unwrap() else {
                match socket.read(&mut arrival) {
                    Ok(0) | Err(_) => return seen,
                    Ok(count) => input.extend_from_slice(&arrival[..count]),
                }
                continue;
            };
            let request = RequestFrame::decode(&frame).unwrap();
            seen.requests.push((request.version, frame.opcode));
            let is_refused = request.version > self.newest;
            let answer = match request.request {
                _ if is_refused => Response::Error(ErrorResponse::protocol(
                    "Invalid or unsupported protocol version (5); supported versions are (3/v3, 4/v4)",
                )),
                Request::Startup(_) => Response::Authenticate("PasswordAuthenticator".to_owned()),
                Request::AuthResponse(token) => {
                    assert_eq!(token.unwrap(), "\0anna\0secret");
                    Response::AuthSuccess(None)
                }
                _ => Response::Result(ResultBody::Void),
            };
            let mut envelope = Vec::new();
            let head = ResponseHead::new(request.version.min(self.newest), request.stream);
            encode_response(&mut envelope, &head, &answer, None).unwrap();
            let mut output = Vec::new();
            match has_segments {
                true => encode_segments(&envelope, None, &mut output),
                false => output = envelope,
            }
            if self.damages && frame.opcode == Opcode::Query {
                *output.last_mut().unwrap() ^= 1;
            }
            socket.write_all(&output).unwrap();
            if is_refused {
                return seen;
            }
            if frame.opcode == Opcode::Startup && request.version >= Version::V5 {
                decoder.use_segments(None);
                has_segments = true;
            }
        }
    }
}

fn seen(version: Version, opcodes: &[Opcode]) -> Seen {
    Seen {
        requests: opcodes.iter().map(|opcode| (version, *opcode)).collect(),
    }
}

const SESSION: [Opcode; 3] = [Opcode::Startup, Opcode::AuthResponse, Opcode::Query];

#[test]
fn a_new_server_gets_v5_in_segments() {
    let server = Server {
        newest: Version::V5,
        damages: false,
    };
    let (target, served) = server.start(1);
    let mut connection = Connection::open(&target).unwrap();
    assert_eq!(connection.version(), Version::V5);
    // Larger than a segment.
    let text = format!("SELECT '{}'", "x".repeat(300_000));
    assert!(connection.query(&text).unwrap().is_none());
    drop(connection);
    assert_eq!(served.join().unwrap(), [seen(Version::V5, &SESSION)]);
}

#[test]
fn an_old_server_gets_v4_on_another_connection() {
    let server = Server {
        newest: Version::V4,
        damages: false,
    };
    let (target, served) = server.start(2);
    let mut connection = Connection::open(&target).unwrap();
    assert_eq!(connection.version(), Version::V4);
    assert!(connection.query("SELECT 1").unwrap().is_none());
    drop(connection);
    assert_eq!(
        served.join().unwrap(),
        [seen(Version::V5, &[Opcode::Startup]), seen(Version::V4, &SESSION)]
    );
}

#[test]
fn a_target_can_be_limited_to_v4() {
    let server = Server {
        newest: Version::V5,
        damages: false,
    };
    let (target, served) = server.start(1);
    let mut connection = Connection::open(&target.with_newest(Version::V4)).unwrap();
    connection.query("SELECT 1").unwrap();
    drop(connection);
    assert_eq!(served.join().unwrap(), [seen(Version::V4, &SESSION)]);
}

#[test]
fn a_damaged_answer_is_an_error() {
    let server = Server {
        newest: Version::V5,
        damages: true,
    };
    let (target, served) = server.start(1);
    let mut connection = Connection::open(&target).unwrap();
    let error = format!("{:#}", connection.query("SELECT 1").unwrap_err());
    assert!(error.contains("the server broke the protocol"), "{error}");
    drop(connection);
    served.join().unwrap();
}
