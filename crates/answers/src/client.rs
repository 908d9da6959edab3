//! A connection over protocol v5, in which a statement can carry its own time.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, bail};
use bytes::{Bytes, BytesMut};
use ilion_protocol::{
    Consistency, Execute, FrameDecoder, Limits, Prepare, Query, QueryParams, Request, RequestFrame, Response,
    ResponseFrame, ResultBody, Role, Startup, Version, encode_request, encode_segments,
};

const SILENCE_MAX: Duration = Duration::from_secs(30);

/// An open session.
pub(crate) struct Client {
    socket: TcpStream,
    decoder: FrameDecoder,
    input: BytesMut,
    has_started: bool,
}

/// Parameters of a statement beside its text.
#[derive(Clone, Debug)]
pub(crate) struct Circumstances {
    pub(crate) level: Consistency,
    pub(crate) timestamp_micros: i64,
    pub(crate) now_secs: Option<i32>,
    pub(crate) page_size: u32,
    pub(crate) is_prepared: bool,
}

impl Client {
    /// Connects, and logs in as `role` if the server wants a login. The password of each role is its name.
    pub(crate) fn open(address: &str, role: &str) -> anyhow::Result<Self> {
        let socket = TcpStream::connect(address).with_context(|| format!("connecting to {address}"))?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(SILENCE_MAX))?;
        let limits = Limits {
            max_frame_bytes: 256 << 20,
        };
        let mut client = Self {
            socket,
            decoder: FrameDecoder::new(Role::Client, limits),
            input: BytesMut::new(),
            has_started: false,
        };
        let answer = client.ask(Request::Startup(Startup::new(None)))?.response;
        client.decoder.use_segments(None);
        client.has_started = true;
        match answer {
            Response::Ready => Ok(client),
            Response::Authenticate(_) => {
                let token = format!("\0{role}\0{role}").into_bytes();
                match client.ask(Request::AuthResponse(Some(token.into())))?.response {
                    Response::AuthSuccess(_) => Ok(client),
                    other => bail!("{role} cannot log in at {address}: {other:?}"),
                }
            }
            other => bail!("{address} answered STARTUP with {}", other.opcode()),
        }
    }

    /// Executes a statement; returns one answer for each page.
    pub(crate) fn run(&mut self, text: &str, how: &Circumstances) -> anyhow::Result<Vec<ResponseFrame>> {
        let mut pages = Vec::new();
        let mut paging_state = None;
        let id = match how.is_prepared {
            false => None,
            true => match self.prepare(text)? {
                Ok(id) => Some(id),
                Err(refusal) => return Ok(vec![refusal]),
            },
        };
        loop {
            let params = QueryParams {
                consistency: how.level,
                page_size: Some(how.page_size),
                paging_state,
                timestamp_micros: Some(how.timestamp_micros),
                now_secs: how.now_secs,
                ..QueryParams::default()
            };
            let request = match &id {
                Some((id, result_metadata_id)) => Request::Execute(Execute {
                    id: id.clone(),
                    result_metadata_id: result_metadata_id.clone(),
                    params,
                }),
                None => Request::Query(Query {
                    text: text.to_owned(),
                    params,
                }),
            };
            let answer = self.ask(request)?;
            paging_state = match &answer.response {
                Response::Result(ResultBody::Rows(rows)) => rows.metadata.paging_state.clone(),
                _ => None,
            };
            pages.push(answer);
            if paging_state.is_none() {
                return Ok(pages);
            }
        }
    }

    fn prepare(&mut self, text: &str) -> anyhow::Result<Result<(Bytes, Bytes), ResponseFrame>> {
        let answer = self.ask(Request::Prepare(Prepare {
            text: text.to_owned(),
            keyspace: None,
        }))?;
        Ok(match answer.response {
            Response::Result(ResultBody::Prepared(prepared)) => {
                Ok((prepared.id, prepared.result_metadata_id))
            }
            _ => Err(answer),
        })
    }

    fn ask(&mut self, request: Request) -> anyhow::Result<ResponseFrame> {
        let frame = RequestFrame {
            version: Version::V5,
            stream: 0,
            tracing: false,
            custom_payload: Vec::new(),
            request,
        };
        let mut envelope = Vec::new();
        encode_request(&mut envelope, &frame, None)?;
        let mut output = Vec::new();
        if self.has_started {
            encode_segments(&envelope, None, &mut output);
        } else {
            output = envelope;
        }
        self.socket.write_all(&output).context("sending to the server")?;
        loop {
            let frame = self.decoder.decode(&mut self.input);
            if let Some(frame) =
                frame.map_err(|error| anyhow::anyhow!("the server broke the protocol: {}", error.message))?
            {
                return Ok(ResponseFrame::decode(&frame)?);
            }
            let mut arrival = [0; 64 << 10];
            let count = self.socket.read(&mut arrival).context("waiting for the server")?;
            if count == 0 {
                bail!("the server closed the connection");
            }
            self.input.extend_from_slice(&arrival[..count]);
        }
    }
}
