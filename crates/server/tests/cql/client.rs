//! A blocking client, as simple as the protocol allows.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use bytes::BytesMut;
use ilion_protocol::{
    Compression, ErrorResponse, Event, EventKind, Frame, FrameDecoder, Limits, Query, QueryParams, Register,
    Request, RequestFrame, Response, ResponseFrame, ResultBody, Role, Rows, Startup, Version, encode_request,
    encode_segments,
};

/// A test that waits longer fails.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Client<S = TcpStream> {
    pub stream: S,
    pub version: Version,
    compression: Option<Compression>,
    decoder: FrameDecoder,
    buffer: BytesMut,
    is_open: bool,
}

impl Client {
    /// Connected, STARTUP not sent.
    pub fn connect(address: SocketAddr, version: Version) -> Self {
        Self::over(TcpStream::connect(address).unwrap(), version)
    }

    /// Like [`Self::connect`], from this address of the machine.
    pub fn connect_from(source: IpAddr, address: SocketAddr, version: Version) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .unwrap();
        let connected = runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind(SocketAddr::new(source, 0)).unwrap();
            socket.connect(address).await.unwrap().into_std().unwrap()
        });
        connected.set_nonblocking(false).unwrap();
        Self::over(connected, version)
    }

    fn over(stream: TcpStream, version: Version) -> Self {
        Self::on(patient(stream), version)
    }

    /// Connected and ready for statements.
    pub fn open(address: SocketAddr, version: Version, compression: Option<Compression>) -> Self {
        let mut client = Self::connect(address, version);
        assert_eq!(client.startup(compression), Response::Ready);
        client
    }

    /// Connected and logged in.
    #[allow(dead_code, reason = "not every test binary has logins")]
    pub fn log_in(
        address: SocketAddr,
        version: Version,
        compression: Option<Compression>,
        (role, password): (&str, &str),
    ) -> Self {
        let mut client = Self::connect(address, version);
        let answer = client.startup(compression);
        assert!(matches!(answer, Response::Authenticate(_)), "{answer:?}");
        assert_eq!(
            client.ask(credentials(role, password)),
            Response::AuthSuccess(None)
        );
        client
    }
}

/// Reads and writes fail after some time.
pub fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

impl<S: Read + Write> Client<S> {
    /// On a connection, STARTUP not sent.
    pub fn on(stream: S, version: Version) -> Self {
        Self {
            stream,
            version,
            compression: None,
            decoder: FrameDecoder::new(
                Role::Client,
                Limits {
                    max_frame_bytes: 256 << 20,
                },
            ),
            buffer: BytesMut::new(),
            is_open: false,
        }
    }

    pub fn startup(&mut self, compression: Option<Compression>) -> Response {
        self.start(Startup::new(compression))
    }

    /// STARTUP with more options.
    #[allow(dead_code, reason = "not every test binary has them")]
    pub fn startup_with(&mut self, options: &[(&str, &str)]) -> Response {
        let mut startup = Startup::new(None);
        let options = options.iter();
        startup
            .options
            .extend(options.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        self.start(startup)
    }

    pub fn start(&mut self, startup: Startup) -> Response {
        let compression = startup.compression(self.version).unwrap_or_default();
        let response = self.ask(Request::Startup(startup));
        if matches!(response, Response::Ready | Response::Authenticate(_)) {
            self.is_open = true;
            self.compression = compression;
            match self.version {
                Version::V5 => self.decoder.use_segments(compression),
                _ => self.decoder.use_compression(compression),
            }
        }
        response
    }

    pub fn encode(&self, stream: i16, request: Request) -> Vec<u8> {
        let frame = RequestFrame {
            version: self.version,
            stream,
            tracing: false,
            custom_payload: Vec::new(),
            request,
        };
        self.encode_frame(&frame)
    }

    pub fn encode_frame(&self, frame: &RequestFrame) -> Vec<u8> {
        let mut envelope = Vec::new();
        let of_envelopes = self.compression.filter(|_| self.version < Version::V5);
        encode_request(&mut envelope, frame, of_envelopes).unwrap();
        self.pack(envelope)
    }

    /// Whole envelopes as they are sent.
    pub fn pack(&self, envelopes: Vec<u8>) -> Vec<u8> {
        if self.version < Version::V5 || !self.is_open {
            return envelopes;
        }
        let mut segments = Vec::new();
        encode_segments(&envelopes, self.compression, &mut segments);
        segments
    }

    pub fn send(&mut self, stream: i16, request: Request) {
        let bytes = self.encode(stream, request);
        self.stream.write_all(&bytes).unwrap();
    }

    pub fn send_query(&mut self, stream: i16, text: &str) {
        self.send(stream, query(text));
    }

    /// The next answer or event.
    pub fn receive(&mut self) -> ResponseFrame {
        self.try_receive().expect("the server closed the connection")
    }

    /// `None` if the server has closed the connection.
    pub fn try_receive(&mut self) -> Option<ResponseFrame> {
        let frame = self.try_receive_frame()?;
        Some(ResponseFrame::decode(&frame).unwrap())
    }

    /// Like [`Self::try_receive`], not decoded.
    pub fn try_receive_frame(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.decoder.decode(&mut self.buffer).unwrap() {
                return Some(frame);
            }
            let mut bytes = [0; 64 << 10];
            match self.stream.read(&mut bytes) {
                Ok(0) => return None,
                Ok(size) => self.buffer.extend_from_slice(&bytes[..size]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Sends a request and waits for the answer.
    pub fn ask(&mut self, request: Request) -> Response {
        self.send(7, request);
        let answer = self.receive();
        assert_eq!((answer.stream, answer.version), (7, self.version));
        answer.response
    }

    pub fn query(&mut self, text: &str) -> Response {
        self.ask(query(text))
    }

    pub fn register(&mut self, events: &[EventKind]) {
        let events = events.to_vec();
        assert_eq!(self.ask(Request::Register(Register { events })), Response::Ready);
    }

    pub fn receive_event(&mut self) -> Event {
        let frame = self.receive();
        assert_eq!(frame.stream, -1);
        match frame.response {
            Response::Event(event) => event,
            other => panic!("{other:?}"),
        }
    }
}

/// The token of SASL PLAIN.
#[allow(dead_code, reason = "not every test binary has logins")]
pub fn credentials(role: &str, password: &str) -> Request {
    let token = [b"\0", role.as_bytes(), b"\0", password.as_bytes()].concat();
    Request::AuthResponse(Some(token.into()))
}

pub fn query(text: &str) -> Request {
    Request::Query(Query {
        text: text.to_owned(),
        params: QueryParams::default(),
    })
}

pub fn rows_of(response: Response) -> Rows {
    match response {
        Response::Result(ResultBody::Rows(rows)) => rows,
        other => panic!("{other:?}"),
    }
}

pub fn error_of(response: Response) -> ErrorResponse {
    match response {
        Response::Error(error) => error,
        other => panic!("{other:?}"),
    }
}
