//! The task of one connection: it reads bytes, cuts them into frames and queues them for the workers. It also sends the bytes
//! that the workers could not send at once.
//!
//! While the memory for clients is used up, the task stops reading for `MEMORY_PATIENCE`. If there is still no room then, requests are
//! answered with 0x1001, and an incomplete request is dropped. Clients that sent THROW_ON_OVERLOAD get this answer at once.
//! If requests per second are limited, a request beyond the limit waits for its turn; clients with THROW_ON_OVERLOAD get 0x1001.
//! A client that stops in the middle of a request, or reads none of its answers, is disconnected after a timeout, and
//! earlier if memory is short.

use std::io;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use ilion_env::Env;
use ilion_protocol::{Frame, FrameDecoder, FrameError, Limits, Recovery, Role, Version};
use ilion_query::StatementWeight;
use ilion_tls::{Encryption, Socket};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::client_memory::Account;
use crate::handshake;
use crate::logins::Logins;
use crate::metrics::ServerMetrics;
use crate::old_versions::OldVersions;
use crate::overload::{self, Overload};
use crate::queues::{Queues, Task};
use crate::request_rate::RequestRate;
use crate::session::{ConnectionStage, InFlight, SentBy, Session, Work};

/// Most requests of one task. Larger tasks would leave other workers idle.
const TASK_REQUESTS_MAX: usize = 32;

/// Buffer space that is reserved for each read.
const READ_BYTES: usize = 32 << 10;

/// Longest body before the client is ready: STARTUP and AUTH_RESPONSE are short.
const STARTUP_BYTES_MAX: u32 = 64 << 10;
/// This much of an incomplete request is received even if no memory is free.
const PARTIAL_BYTES_FREE: usize = 16 << 10;
/// How long a request waits for memory before it is refused.
const MEMORY_PATIENCE: Duration = Duration::from_secs(2);
/// While memory is short, a client that reads none of its answers is disconnected after this time.
const UNREAD_PATIENCE: Duration = Duration::from_secs(5);

/// Timeouts and limits of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionLimits {
    pub frame_bytes_max: u32,
    /// Longest message in v5, after STARTUP.
    pub message_bytes_max: u32,
    /// Whether clients in v5 are refused at once on overload, if their STARTUP has no THROW_ON_OVERLOAD.
    pub throws_on_overload: bool,
    pub startup_timeout: Duration,
    /// For a client that sends no request. Zero is no timeout.
    pub idle_timeout: Duration,
    /// For a client in the middle of a request, or with unread answers. Zero is no timeout.
    pub stall_timeout: Duration,
}

/// What all connections of a server share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub clock: Arc<dyn Env>,
    pub queues: Queues,
    pub metrics: Arc<ServerMetrics>,
    pub logins: Arc<Logins>,
    pub old_versions: Arc<OldVersions>,
    /// `None` if connections are not encrypted.
    pub encryption: Option<Arc<Encryption>>,
    /// `None` if requests per second are not limited.
    pub rate: Option<Arc<RequestRate>>,
}

pub(crate) struct Connection {
    session: Arc<Session>,
    stream: Arc<Socket>,
    decoder: FrameDecoder,
    buffer: BytesMut,
    clock: Arc<dyn Env>,
    /// When the last byte of `buffer` arrived.
    received_nanos: u64,
    queues: Queues,
    metrics: Arc<ServerMetrics>,
    logins: Arc<Logins>,
    old_versions: Arc<OldVersions>,
    rate: Option<Arc<RequestRate>>,
    limits: ConnectionLimits,
    /// False before the login: requests are limited to [`STARTUP_BYTES_MAX`]. Then the configured limit is used.
    takes_long_requests: bool,
    startup_deadline: Instant,
    stopping: watch::Receiver<bool>,
    /// Bytes received and not decoded, as last counted in the session's account.
    received: usize,
    /// Set when the wait for memory timed out: requests that have arrived are refused.
    is_refusing: bool,
    /// Whether the next request may be executed, as far as requests per second are limited.
    has_turn: bool,
}

/// Why decoding stopped.
enum Stop {
    NeedsBytes,
    NeedsRoom,
    /// The memory for all clients is used up.
    NeedsMemory,
    /// The next request may be executed after this time.
    NeedsTurn(Duration),
    End(End),
}

/// When the limit of requests per second lets a request be executed.
enum Turn {
    Now,
    After(Duration),
    /// Not now, and the client does not want to wait. Has the limit per second.
    Never(NonZeroU32),
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Now,
    /// When all requests are answered.
    AfterAnswers,
}

impl Connection {
    pub fn new(
        session: Arc<Session>,
        stream: Arc<Socket>,
        shared: Shared,
        limits: ConnectionLimits,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        Self {
            session,
            stream,
            decoder: FrameDecoder::new(
                Role::Server,
                Limits {
                    max_frame_bytes: limits.frame_bytes_max.min(STARTUP_BYTES_MAX),
                },
            ),
            buffer: BytesMut::new(),
            received_nanos: 0,
            clock: shared.clock,
            queues: shared.queues,
            metrics: shared.metrics,
            logins: shared.logins,
            old_versions: shared.old_versions,
            rate: shared.rate,
            limits,
            takes_long_requests: false,
            startup_deadline: Instant::now() + limits.startup_timeout,
            stopping,
            received: 0,
            is_refusing: false,
            has_turn: false,
        }
    }

    /// Serves the client until either side ends the connection.
    pub async fn run(mut self) {
        let session = self.session.clone();
        let sending = self.sending();
        let reading = async {
            match self.read_all().await {
                Ok(End::AfterAnswers) => wait_until_idle(&self.session).await,
                Ok(End::Now) => {}
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    tracing::info!(peer = %self.session.peer, %error, "a client is refused: TLS failed");
                }
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
        self.buffer = BytesMut::new();
        session.account.shrink(self.received);
    }

    fn sending(&self) -> impl Future<Output = io::Result<()>> + use<> {
        send_all(
            self.session.clone(),
            self.stream.clone(),
            self.queues.clone(),
            self.metrics.clone(),
            self.limits.stall_timeout,
        )
    }

    async fn read_all(&mut self) -> io::Result<End> {
        loop {
            let stop = self.decode_all();
            self.count_received();
            match stop {
                Stop::End(end) => return Ok(end),
                Stop::NeedsRoom => self.session.wait_for_room().await,
                Stop::NeedsMemory => {
                    let account = &self.session.account;
                    self.is_refusing = !account.wait_until(Account::has_room, MEMORY_PATIENCE).await;
                }
                Stop::NeedsTurn(wait) => tokio::select! {
                    () = sleep(wait) => self.has_turn = true,
                    _ = self.stopping.changed() => {}
                },
                Stop::NeedsBytes => {
                    self.is_refusing = false;
                    self.make_room_to_receive().await;
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

    /// Updates the session's account with the bytes that were received and not decoded.
    fn count_received(&mut self) {
        let now = self.buffer.capacity() + self.decoder.held_bytes();
        self.session.account.change(self.received, now);
        self.received = now;
    }

    /// Waits until the rest of a large request may be received. If that takes too long, drops and refuses the request.
    async fn make_room_to_receive(&mut self) {
        let account = &self.session.account;
        let may_receive = async || match self.session.throws_on_overload() {
            true => account.may_receive(),
            false => account.wait_until(Account::may_receive, MEMORY_PATIENCE).await,
        };
        if self.decoder.partial_bytes(&self.buffer) <= PARTIAL_BYTES_FREE || may_receive().await {
            return;
        }
        if let Some((version, stream)) = self.decoder.give_up(&mut self.buffer) {
            self.refuse_overloaded(version, stream, Overload::NoMemory);
            if self.buffer.is_empty() {
                self.buffer = BytesMut::new();
            }
            self.count_received();
        }
    }

    fn refuse_overloaded(&self, version: Version, stream: i16, overload: Overload) {
        overload::refuse(
            &self.session,
            &self.metrics,
            version,
            stream,
            InFlight::default(),
            overload,
        );
    }

    /// When the next request may be executed, by the limit of requests per second.
    fn turn(&mut self) -> Turn {
        let Some(rate) = self.rate.as_deref().filter(|_| !self.has_turn) else {
            return Turn::Now;
        };
        let now = self.clock.monotonic_nanos();
        let turn = match self.session.throws_on_overload() {
            true if rate.try_take(now) => Turn::Now,
            true => Turn::Never(rate.per_sec),
            false => match rate.take(now) {
                Duration::ZERO => Turn::Now,
                wait => Turn::After(wait),
            },
        };
        self.has_turn = matches!(turn, Turn::Now);
        turn
    }

    /// Decodes requests and queues them, as long as the limits of the session leave room.
    fn decode_all(&mut self) -> Stop {
        let mut work = Vec::new();
        self.decoder.set_oldest(self.old_versions.oldest());
        let stop = loop {
            if !self.session.has_room() {
                break Stop::NeedsRoom;
            }
            let stage = self.session.stage();
            if stage == ConnectionStage::Refused {
                break Stop::End(End::AfterAnswers);
            }
            let is_ready = stage == ConnectionStage::Ready;
            if is_ready && !self.takes_long_requests {
                self.take_long_requests();
            }
            let has_memory = self.session.account.has_room() || !is_ready;
            let is_refusing = !has_memory && (self.is_refusing || self.session.throws_on_overload());
            if !has_memory && !is_refusing && self.has_bytes() {
                break Stop::NeedsMemory;
            }
            let turn = match is_ready && !is_refusing && self.has_bytes() {
                true => self.turn(),
                false => Turn::Now,
            };
            if let Turn::After(wait) = turn {
                self.metrics.requests_delayed.inc();
                break Stop::NeedsTurn(wait);
            }
            match self.decoder.decode(&mut self.buffer) {
                Ok(None) => break Stop::NeedsBytes,
                Ok(Some(frame)) if stage == ConnectionStage::Established => self.shake_hands(&frame),
                Ok(Some(frame)) if !is_ready => self.logins.take(&self.session, &frame),
                Ok(Some(frame)) if is_refusing => {
                    self.refuse_overloaded(frame.version, frame.stream, Overload::NoMemory);
                }
                Ok(Some(frame)) if let Turn::Never(per_sec) = turn => {
                    self.refuse_overloaded(frame.version, frame.stream, Overload::Rate(per_sec));
                }
                Ok(Some(frame)) => {
                    self.has_turn = false;
                    self.session.begin(InFlight::of(&frame));
                    let received_nanos = self.received_nanos;
                    work.push(Work::Frame {
                        begun: None,
                        frame,
                        received_nanos,
                    });
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
        let answer = handshake::answer(
            &self.session,
            &self.stream,
            &mut self.decoder,
            frame,
            self.limits.throws_on_overload,
            &self.logins,
        );
        if let Some(answer) = answer {
            self.session.deliver(answer, InFlight::default(), SentBy::Caller);
        }
    }

    /// Lifts the limit that request sizes have before the login.
    fn take_long_requests(&mut self) {
        if let Some(wire) = self.session.wire() {
            self.takes_long_requests = true;
            self.decoder.set_limits(Limits {
                max_frame_bytes: match wire.version {
                    Version::V5 => self.limits.message_bytes_max,
                    Version::V3 | Version::V4 => self.limits.frame_bytes_max,
                },
            });
        }
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
        let packed = self.session.pack(answer);
        self.session.deliver(packed, InFlight::default(), SentBy::Caller);
        (error.recovery == Recovery::AnswerAndClose).then_some(End::AfterAnswers)
    }

    /// True if bytes were received that are not decoded.
    fn has_bytes(&self) -> bool {
        !self.buffer.is_empty() || self.decoder.held_bytes() > 0 || self.decoder.is_skipping()
    }

    /// Waits for bytes and reads them.
    async fn read(&mut self) -> io::Result<Option<End>> {
        if self.buffer.is_empty() {
            // An idle connection holds no buffer.
            self.buffer = BytesMut::new();
            self.count_received();
        }
        let silence = Silence {
            limits: self.limits,
            startup_deadline: self.startup_deadline,
            is_amid_request: self.has_bytes(),
        };
        loop {
            tokio::select! {
                ready = wait_readable(&self.stream, &self.session, &silence) => {
                    if !ready? {
                        if silence.is_amid_request && self.session.stage() == ConnectionStage::Ready {
                            tracing::info!(peer = %self.session.peer, "a connection is closed: its client stopped amid a request (native_transport_stall_timeout)");
                            self.metrics.connections_stalled.inc();
                        }
                        return Ok(Some(End::Now));
                    }
                }
                _ = self.stopping.changed() => return Ok(Some(End::AfterAnswers)),
            }
            self.buffer.reserve(READ_BYTES);
            let received = self.stream.try_read(&mut self.buffer);
            if self.stream.has_unsent() {
                // Bytes of a TLS handshake are left, since the socket's send buffer is full: `send_all` sends them.
                self.session.wake_sender.notify_one();
            }
            match received {
                Ok(0) => return Ok(Some(End::Now)),
                Ok(size) => {
                    self.received_nanos = self.clock.monotonic_nanos();
                    self.metrics.received_bytes.inc_by(size as u64);
                    return Ok(None);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The rules for how long a client may send nothing.
struct Silence {
    limits: ConnectionLimits,
    startup_deadline: Instant,
    is_amid_request: bool,
}

impl Silence {
    /// The deadline if the client sends nothing from now on, and whether it also applies to a client that waits for an answer; `None` is
    /// no deadline.
    fn deadline(&self, stage: ConnectionStage) -> Option<(Instant, bool)> {
        let after = |timeout: Duration| (!timeout.is_zero()).then(|| Instant::now() + timeout);
        match stage {
            ConnectionStage::Established
            | ConnectionStage::Authenticating
            | ConnectionStage::Checking
            | ConnectionStage::Refused => Some((self.startup_deadline, true)),
            ConnectionStage::Ready if self.is_amid_request => Some((after(self.limits.stall_timeout)?, true)),
            ConnectionStage::Ready => Some((after(self.limits.idle_timeout)?, false)),
        }
    }
}

/// Waits for bytes. Returns false if the client sent nothing for too long.
async fn wait_readable(stream: &Socket, session: &Session, silence: &Silence) -> io::Result<bool> {
    loop {
        let stage = session.stage();
        let Some((deadline, is_for_all)) = silence.deadline(stage) else {
            stream.readable().await?;
            return Ok(true);
        };
        match timeout_at(deadline, stream.readable()).await {
            Ok(readable) => return readable.map(|()| true),
            // A client that waits for an answer is not idle.
            Err(_) if !is_for_all && !session.is_idle() => {}
            // It has logged in meanwhile, so another deadline applies.
            Err(_) if session.stage() != stage => {}
            Err(_) => return Ok(false),
        }
    }
}

/// Waits until the client can receive bytes. Returns false if it read none of its answers for too long.
async fn wait_writable(stream: &Socket, session: &Session, stall_timeout: Duration) -> io::Result<bool> {
    let since = Instant::now();
    let never = stall_timeout.is_zero();
    let look_after = if never {
        UNREAD_PATIENCE
    } else {
        stall_timeout.min(UNREAD_PATIENCE)
    };
    loop {
        if let Ok(writable) = timeout(look_after, stream.writable()).await {
            return writable.map(|()| true);
        }
        let waited = since.elapsed();
        let is_stalled = !never && waited >= stall_timeout;
        if is_stalled || (waited >= UNREAD_PATIENCE && !session.account.has_room()) {
            return Ok(false);
        }
    }
}

async fn wait_until_idle(session: &Session) {
    while !session.is_idle() && !session.is_gone() {
        session.wait_for_change().await;
    }
}

/// Sends the bytes that workers left in the outbox, and queues parked work again.
async fn send_all(
    session: Arc<Session>,
    stream: Arc<Socket>,
    queues: Queues,
    metrics: Arc<ServerMetrics>,
    stall_timeout: Duration,
) -> io::Result<()> {
    while !session.is_gone() {
        let (parked, is_full) = session.flush()?;
        resume(&session, &queues, parked);
        if is_full {
            if !wait_writable(&stream, &session, stall_timeout).await? {
                tracing::info!(
                    peer = %session.peer,
                    unread_bytes = session.queued_bytes(),
                    "a connection is closed: its client takes none of its answers (native_transport_stall_timeout)"
                );
                metrics.connections_stalled.inc();
                return Ok(());
            }
        } else if session.has_parked() {
            tokio::select! {
                () = session.wake_sender.notified() => {}
                has_room = session.account.wait_until(Account::has_room, MEMORY_PATIENCE) => if !has_room {
                    for work in session.take_parked() {
                        let (version, stream, cost) = work.stream_and_size();
                        overload::refuse(&session, &metrics, version, stream, cost, Overload::NoMemory);
                    }
                },
            }
        } else {
            session.wake_sender.notified().await;
        }
    }
    Ok(())
}

fn resume(session: &Arc<Session>, queues: &Queues, parked: Vec<Work>) {
    let (heavy, point): (Vec<Work>, Vec<Work>) = parked
        .into_iter()
        .partition(|work| matches!(work, Work::Heavy { .. }));
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
