//! The task of one connection: it reads, cuts bytes into frames and hands them over; it sends what the workers could not.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use ilion_protocol::{Frame, FrameDecoder, FrameError, Limits, Recovery, Role};
use ilion_query::StatementWeight;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::handshake;
use crate::metrics::ServerMetrics;
use crate::session::{Cost, Sender, Session, Stage, Work};
use crate::workers::{Queues, Task};

/// Requests that one worker answers together. More would keep others from helping.
const TASK_REQUESTS_MAX: usize = 32;

/// Room that is made for each read.
const READ_BYTES: usize = 32 << 10;

/// Timeouts and limits of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionLimits {
    pub frame_bytes_max: u32,
    pub startup_timeout: Duration,
    /// Zero is never.
    pub idle_timeout: Duration,
}

pub(crate) struct Connection {
    session: Arc<Session>,
    stream: Arc<TcpStream>,
    decoder: FrameDecoder,
    buffer: BytesMut,
    queues: Queues,
    metrics: Arc<ServerMetrics>,
    limits: ConnectionLimits,
    startup_deadline: Instant,
    stopping: watch::Receiver<bool>,
}

/// What decoding stopped at.
enum Stop {
    NeedsBytes,
    NeedsRoom,
    End(End),
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Now,
    /// When what was asked is answered.
    AfterAnswers,
}

impl Connection {
    pub fn new(
        session: Arc<Session>,
        stream: Arc<TcpStream>,
        queues: Queues,
        metrics: Arc<ServerMetrics>,
        limits: ConnectionLimits,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        Self {
            session,
            stream,
            decoder: FrameDecoder::new(
                Role::Server,
                Limits {
                    max_frame_bytes: limits.frame_bytes_max,
                },
            ),
            buffer: BytesMut::new(),
            queues,
            metrics,
            limits,
            startup_deadline: Instant::now() + limits.startup_timeout,
            stopping,
        }
    }

    /// Serves the client until one of both has had enough.
    pub async fn run(mut self) {
        let session = self.session.clone();
        let sending = send_all(session.clone(), self.stream.clone(), self.queues.clone());
        let reading = async {
            match self.read_all().await {
                Ok(End::AfterAnswers) => wait_until_idle(&self.session).await,
                Ok(End::Now) => {}
                Err(error) => tracing::debug!(peer = %self.session.peer, %error, "a connection broke"),
            }
        };
        tokio::select! {
            () = reading => {}
            sent = sending => {
                if let Err(error) = sent {
                    tracing::debug!(peer = %session.peer, %error, "a connection broke");
                }
            }
        }
        session.close();
    }

    async fn read_all(&mut self) -> io::Result<End> {
        loop {
            match self.decode_all() {
                Stop::End(end) => return Ok(end),
                Stop::NeedsRoom => self.session.wait_for_room().await,
                Stop::NeedsBytes => {
                    if let Some(end) = self.read().await? {
                        return Ok(end);
                    }
                }
            }
            if *self.stopping.borrow() {
                return Ok(End::AfterAnswers);
            }
        }
    }

    /// Hands over all requests that are there and that there is room for.
    fn decode_all(&mut self) -> Stop {
        let mut work = Vec::new();
        let stop = loop {
            if !self.session.has_room() {
                break Stop::NeedsRoom;
            }
            match self.decoder.decode(&mut self.buffer) {
                Ok(None) => break Stop::NeedsBytes,
                Ok(Some(frame)) if self.session.stage() == Stage::Established => self.shake_hands(&frame),
                Ok(Some(frame)) => {
                    self.session.begin(Cost::of(&frame));
                    work.push(Work::Frame(frame));
                }
                Err(error) => {
                    if let Some(end) = self.refuse(&error) {
                        break Stop::End(end);
                    }
                }
            }
            if work.len() >= TASK_REQUESTS_MAX {
                self.hand_over(std::mem::take(&mut work));
            }
        };
        if !work.is_empty() {
            self.hand_over(work);
        }
        stop
    }

    fn shake_hands(&mut self, frame: &Frame) {
        let answer = handshake::answer(&self.session, &mut self.decoder, frame);
        self.session.deliver(answer, Cost::default(), Sender::Itself);
    }

    fn hand_over(&self, work: Vec<Work>) {
        let session = self.session.clone();
        self.queues.put(StatementWeight::Point, Task { session, work });
    }

    fn refuse(&self, error: &FrameError) -> Option<End> {
        tracing::debug!(peer = %self.session.peer, %error, "bytes of a client were refused");
        if error.recovery == Recovery::Close {
            return Some(End::Now);
        }
        let mut answer = Vec::new();
        error.encode_answer(&mut answer);
        let packed = match self.session.wire() {
            Some(wire) => wire.pack(answer),
            None => answer,
        };
        self.session.deliver(packed, Cost::default(), Sender::Itself);
        (error.recovery == Recovery::AnswerAndClose).then_some(End::AfterAnswers)
    }

    /// Reads what has come, after waiting for it.
    async fn read(&mut self) -> io::Result<Option<End>> {
        if self.buffer.is_empty() {
            // An idle connection holds no buffer.
            self.buffer = BytesMut::new();
        }
        loop {
            tokio::select! {
                ready = wait_readable(&self.stream, &self.session, &self.limits, self.startup_deadline) => {
                    if !ready? {
                        return Ok(Some(End::Now));
                    }
                }
                _ = self.stopping.changed() => return Ok(Some(End::AfterAnswers)),
            }
            self.buffer.reserve(READ_BYTES);
            match self.stream.try_read_buf(&mut self.buffer) {
                Ok(0) => return Ok(Some(End::Now)),
                Ok(size) => {
                    self.metrics.received_bytes.inc_by(size as u64);
                    return Ok(None);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// False if the client was silent for too long.
async fn wait_readable(
    stream: &TcpStream,
    session: &Session,
    limits: &ConnectionLimits,
    startup_deadline: Instant,
) -> io::Result<bool> {
    loop {
        let deadline = match session.stage() {
            Stage::Ready if limits.idle_timeout.is_zero() => {
                stream.readable().await?;
                return Ok(true);
            }
            Stage::Ready => Instant::now() + limits.idle_timeout,
            Stage::Established | Stage::Authenticating => startup_deadline,
        };
        match timeout_at(deadline, stream.readable()).await {
            Ok(readable) => return readable.map(|()| true),
            // Who waits for an answer is not idle.
            Err(_) if session.stage() == Stage::Ready && !session.is_idle() => {}
            Err(_) => return Ok(false),
        }
    }
}

async fn wait_until_idle(session: &Session) {
    while !session.is_idle() && !session.is_gone() {
        session.wait_for_change().await;
    }
}

/// Sends what workers have left, and takes up what they have parked.
async fn send_all(session: Arc<Session>, stream: Arc<TcpStream>, queues: Queues) -> io::Result<()> {
    while !session.is_gone() {
        let (parked, is_full) = session.flush()?;
        resume(&session, &queues, parked);
        if is_full {
            stream.writable().await?;
        } else {
            session.wake_sender.notified().await;
        }
    }
    Ok(())
}

fn resume(session: &Arc<Session>, queues: &Queues, parked: Vec<Work>) {
    let (heavy, point): (Vec<Work>, Vec<Work>) = parked
        .into_iter()
        .partition(|work| matches!(work, Work::Heavy(..)));
    let put = |weight, work| {
        let session = session.clone();
        queues.put(weight, Task { session, work });
    };
    if !point.is_empty() {
        put(StatementWeight::Point, point);
    }
    for work in heavy {
        put(StatementWeight::Heavy, vec![work]);
    }
}
