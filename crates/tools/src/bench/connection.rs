//! A blocking connection over the native protocol v4, for one thread.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, bail};
use bytes::BytesMut;
use ilion_protocol::{
    Frame, FrameDecoder, Limits, Prepare, Prepared, Query, QueryParams, Request, RequestFrame, Response,
    ResponseFrame, ResultBody, Role, Rows, Startup, Version, encode_request,
};

/// The protocol version of the benchmark: the newest that every server of the last ten years supports.
pub const VERSION: Version = Version::V4;

/// A connection fails if the server sends nothing for so long.
const SILENCE_MAX: Duration = Duration::from_secs(60);
const READ_BYTES: usize = 256 << 10;

/// An open session.
pub struct Connection {
    socket: TcpStream,
    decoder: FrameDecoder,
    /// Received bytes that are not decoded yet.
    input: BytesMut,
    /// Buffer for system calls.
    arrival: Box<[u8]>,
    /// Requests that wait for `send`.
    pub output: Vec<u8>,
}

impl Connection {
    /// Connects and sends STARTUP.
    ///
    /// # Errors
    /// No server listens there, or it requires something that the benchmark does not have (such as a password).
    pub fn open(address: &str) -> anyhow::Result<Self> {
        let socket = TcpStream::connect(address).with_context(|| format!("connecting to {address}"))?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(SILENCE_MAX))?;
        socket.set_write_timeout(Some(SILENCE_MAX))?;
        let limits = Limits {
            max_frame_bytes: 256 << 20,
        };
        let mut connection = Self {
            socket,
            decoder: FrameDecoder::new(Role::Client, limits),
            input: BytesMut::new(),
            arrival: vec![0; READ_BYTES].into_boxed_slice(),
            output: Vec::new(),
        };
        match connection.ask(Request::Startup(Startup::new(None)))? {
            Response::Ready => Ok(connection),
            Response::Authenticate(class) => {
                bail!("{address} wants authentication by {class}: start the server without")
            }
            other => bail!("{address} answered STARTUP with {}", other.opcode()),
        }
    }

    /// Sends one request and waits for its answer.
    ///
    /// # Errors
    /// The connection broke, or the answer is an error.
    pub fn ask(&mut self, request: Request) -> anyhow::Result<Response> {
        encode_request(&mut self.output, &request_frame(0, request), None)?;
        self.send()?;
        loop {
            if let Some(frame) = self.next_frame()? {
                return match ResponseFrame::decode(&frame)?.response {
                    Response::Error(error) => Err(error.into()),
                    response => Ok(response),
                };
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
        self.socket
            .write_all(&self.output)
            .context("sending to the server")?;
        self.output.clear();
        Ok(())
    }

    /// Waits until bytes arrive.
    ///
    /// # Errors
    /// The connection broke, or the server sent nothing for too long.
    pub fn receive(&mut self) -> anyhow::Result<()> {
        let count = self
            .socket
            .read(&mut self.arrival)
            .context("waiting for the server")?;
        if count == 0 {
            bail!("the server closed the connection");
        }
        self.input.extend_from_slice(&self.arrival[..count]);
        Ok(())
    }

    /// The next frame that has arrived.
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
pub fn request_frame(stream: i16, request: Request) -> RequestFrame {
    RequestFrame {
        version: VERSION,
        stream,
        tracing: false,
        custom_payload: Vec::new(),
        request,
    }
}
