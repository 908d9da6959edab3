//! A blocking connection over the native protocol v5 or v4, for one thread.
//!
//! A connection proposes the newest version of its target. If the server refuses that version, another connection proposes v4. In v5 both
//! sides send segments with checksums after the answer to STARTUP.

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, bail};
use bytes::BytesMut;
use ilion_protocol::{
    ErrorDetail, Frame, FrameDecoder, Limits, Prepare, Prepared, Query, QueryParams, Request, RequestFrame,
    Response, ResponseFrame, ResultBody, Role, Rows, Startup, Version, encode_request, encode_segments,
};

use crate::encryption::{Socket, Trust};

/// The version for servers that refuse newer ones: every server of the last ten years supports it.
const OLDEST: Version = Version::V4;

/// A connection fails if the server sends nothing for this time, unless the target has another limit.
const SILENCE_MAX: Duration = Duration::from_secs(60);
const READ_BYTES: usize = 256 << 10;

/// Who logs in, if the server wants that, and whether the connection is encrypted.
#[derive(Clone, Default, clap::Args)]
pub struct LoginArgs {
    /// Encrypts connections (TLS), and trusts servers whose certificate was issued by one in this PEM file.
    #[arg(long, value_name = "FILE", value_parser = Trust::read)]
    pub tls_ca: Option<Trust>,
    /// The role to log in as.
    #[arg(short = 'u', long = "user", value_name = "ROLE", requires = "password")]
    pub user: Option<String>,
    /// Its password.
    #[arg(short = 'p', long, requires = "user")]
    pub password: Option<String>,
}

impl fmt::Debug for LoginArgs {
    /// Passwords do not belong in logs.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "LoginArgs({:?})", self.user)
    }
}

/// A server, and who logs in there.
#[derive(Clone, Debug)]
pub struct Target {
    host: String,
    address: String,
    login: LoginArgs,
    silence_max: Duration,
    newest: Version,
}

impl Target {
    /// The server at this host and port.
    pub fn new(host: &str, port: u16, login: &LoginArgs) -> Self {
        Self {
            host: host.to_owned(),
            address: address_of(host, port),
            login: login.clone(),
            silence_max: SILENCE_MAX,
            newest: Version::NEWEST,
        }
    }

    /// The same server; its connections fail if it sends nothing for this time.
    #[must_use]
    pub fn with_silence_max(mut self, silence_max: Duration) -> Self {
        self.silence_max = silence_max;
        self
    }

    /// The same server; its connections do not propose a newer version of the protocol than this.
    #[must_use]
    pub fn with_newest(mut self, newest: Version) -> Self {
        self.newest = newest;
        self
    }

    /// The same server, for another role.
    #[must_use]
    pub fn with_credentials(mut self, role: &str, password: &str) -> Self {
        self.login.user = Some(role.to_owned());
        self.login.password = Some(password.to_owned());
        self
    }

    /// Host and port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The token of SASL PLAIN.
    fn token(&self) -> Option<Vec<u8>> {
        let (user, password) = (self.login.user.as_ref()?, self.login.password.as_ref()?);
        Some([b"\0", user.as_bytes(), b"\0", password.as_bytes()].concat())
    }
}

/// An open session.
pub struct Connection {
    socket: Box<dyn Socket>,
    decoder: FrameDecoder,
    /// Received bytes that are not decoded yet.
    input: BytesMut,
    /// Buffer for system calls.
    arrival: Box<[u8]>,
    /// Envelopes of requests that wait for `send`.
    pub output: Vec<u8>,
    version: Version,
    /// True after the answer to STARTUP in v5.
    has_segments: bool,
    /// Buffer for segments.
    segments: Vec<u8>,
}

impl Connection {
    /// Connects, sends STARTUP, and logs in if the server wants that.
    ///
    /// # Errors
    /// No server listens there, it refuses the password, or it requires one and there is none.
    pub fn open(target: &Target) -> anyhow::Result<Self> {
        let mut connection = Self::connect(target, target.newest)?;
        let startup = Request::Startup(Startup::new(None));
        let mut answer = connection.ask_any(startup.clone())?;
        let is_refused =
            matches!(&answer, Response::Error(error) if matches!(error.detail, ErrorDetail::Protocol));
        if is_refused && target.newest > OLDEST {
            // Compat: some servers close the connection after this error.
            connection = Self::connect(target, OLDEST)?;
            answer = connection.ask_any(startup)?;
        }
        connection.fix_version();
        connection.log_in(target, answer)?;
        Ok(connection)
    }

    /// Opens a socket, and sends nothing.
    fn connect(target: &Target, version: Version) -> anyhow::Result<Self> {
        let address = target.address.as_str();
        let socket = TcpStream::connect(address).with_context(|| format!("connecting to {address}"))?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(target.silence_max))?;
        socket.set_write_timeout(Some(target.silence_max))?;
        let socket: Box<dyn Socket> = match &target.login.tls_ca {
            None => Box::new(socket),
            Some(trust) => trust.encrypt(&target.host, socket)?,
        };
        let limits = Limits {
            max_frame_bytes: 256 << 20,
        };
        Ok(Self {
            socket,
            decoder: FrameDecoder::new(Role::Client, limits),
            input: BytesMut::new(),
            arrival: vec![0; READ_BYTES].into_boxed_slice(),
            output: Vec::new(),
            version,
            has_segments: false,
            segments: Vec::new(),
        })
    }

    /// Keeps the version from now on. Requires: STARTUP was answered, and nothing was read after the answer.
    fn fix_version(&mut self) {
        self.decoder.fix_version(self.version);
        if self.version >= Version::V5 {
            self.decoder.use_segments(None);
            self.has_segments = true;
        }
    }

    /// Logs in if the answer to STARTUP demands that.
    fn log_in(&mut self, target: &Target, answer: Response) -> anyhow::Result<()> {
        let address = target.address.as_str();
        match answer {
            Response::Ready => Ok(()),
            Response::Authenticate(class) => {
                let Some(token) = target.token() else {
                    bail!("{address} wants authentication by {class}: give a role and its password (-u, -p)")
                };
                match self.ask(Request::AuthResponse(Some(token.into())))? {
                    Response::AuthSuccess(_) => Ok(()),
                    other => bail!("{address} answered AUTH_RESPONSE with {}", other.opcode()),
                }
            }
            Response::Error(error) => Err(error.into()),
            other => bail!("{address} answered STARTUP with {}", other.opcode()),
        }
    }

    /// The version of the protocol.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Sends one request and waits for its answer.
    ///
    /// # Errors
    /// The connection broke, or the answer is an error.
    pub fn ask(&mut self, request: Request) -> anyhow::Result<Response> {
        match self.ask_any(request)? {
            Response::Error(error) => Err(error.into()),
            response => Ok(response),
        }
    }

    fn ask_any(&mut self, request: Request) -> anyhow::Result<Response> {
        Ok(self.ask_frame(&request_frame(self.version, 0, request))?.response)
    }

    /// Sends one request and waits for its answer, which may be an error of the server.
    ///
    /// # Errors
    /// The connection broke, or the request cannot be encoded.
    pub fn ask_frame(&mut self, request: &RequestFrame) -> anyhow::Result<ResponseFrame> {
        encode_request(&mut self.output, request, None)?;
        self.send()?;
        loop {
            if let Some(frame) = self.next_frame()? {
                return Ok(ResponseFrame::decode(&frame)?);
            }
            self.receive()?;
        }
    }

    /// Prepares a statement.
    ///
    /// # Errors
    /// The server refuses the statement, or the connection broke.
    pub fn prepare(&mut self, text: String) -> anyhow::Result<Prepared> {
        match self.ask(Request::Prepare(Prepare { text, keyspace: None }))? {
            Response::Result(ResultBody::Prepared(prepared)) => Ok(prepared),
            other => bail!("the server answered PREPARE with {}", other.opcode()),
        }
    }

    /// Executes a statement; returns its rows, if it has a result.
    ///
    /// # Errors
    /// The server refuses it, or the connection broke.
    pub fn query(&mut self, text: &str) -> anyhow::Result<Option<Rows>> {
        let query = Query {
            text: text.to_owned(),
            params: QueryParams::default(),
        };
        let answer = self.ask(Request::Query(query));
        match answer.with_context(|| format!("running {text}"))? {
            Response::Result(ResultBody::Rows(rows)) => Ok(Some(rows)),
            _ => Ok(None),
        }
    }

    /// Sends the requests in `output`.
    ///
    /// # Errors
    /// The connection broke.
    pub fn send(&mut self) -> anyhow::Result<()> {
        let bytes = if self.has_segments {
            self.segments.clear();
            encode_segments(&self.output, None, &mut self.segments);
            &self.segments
        } else {
            &self.output
        };
        self.socket
            .write_all(bytes)
            .and_then(|()| self.socket.flush())
            .context("sending to the server")?;
        self.output.clear();
        Ok(())
    }

    /// Waits until bytes arrive.
    ///
    /// # Errors
    /// The connection broke, or the server sent nothing for too long.
    pub fn receive(&mut self) -> anyhow::Result<()> {
        let count = match self.socket.read(&mut self.arrival) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                bail!("the server did not answer in time")
            }
            count => count.context("waiting for the server")?,
        };
        if count == 0 {
            bail!("the server closed the connection");
        }
        self.input.extend_from_slice(&self.arrival[..count]);
        Ok(())
    }

    /// The next frame that has arrived; `None` if no frame is complete.
    ///
    /// # Errors
    /// The server broke the protocol.
    pub fn next_frame(&mut self) -> anyhow::Result<Option<Frame>> {
        self.decoder
            .decode(&mut self.input)
            .map_err(|error| anyhow::anyhow!("the server broke the protocol: {}", error.message))
    }
}

/// A request on a stream, without tracing or payload.
pub fn request_frame(version: Version, stream: i16, request: Request) -> RequestFrame {
    RequestFrame {
        version,
        stream,
        tracing: false,
        custom_payload: Vec::new(),
        request,
    }
}

/// Host and port as one text; IPv6 addresses in brackets.
fn address_of(host: &str, port: u16) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_address_is_told_from_its_port() {
        assert_eq!(address_of("::1", 9042), "[::1]:9042");
        assert_eq!(address_of("localhost", 9042), "localhost:9042");
    }
}
