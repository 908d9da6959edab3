//! A session: the state of one client that its connection, the workers and the commit log share.
//!
//! A request counts from its decoding until its answer is queued; an answer counts until the socket has taken it. While either
//! limit is reached, the connection reads no more from the socket. So the memory of a client is bounded, however slowly it reads and
//! however fast it sends. All of it counts in the budget of all clients, too (`client_memory`).

mod outbox;
mod sent_metadata;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

use ilion_codec::Rope;
use ilion_env::parking::Given;
use ilion_protocol::{
    Compression, EventKind, Frame, RequestFrame, Version, encode_segments, encode_shared_segments,
};
use ilion_query::{ClientState, Identity};
use ilion_tls::Socket;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::answer_times::AnswerTimes;
use crate::client_facts::ClientFacts;
use crate::client_memory::Account;
use outbox::{Outbox, Remainder};
use sent_metadata::SentMetadata;

/// The format of bytes on the wire after STARTUP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wire {
    pub version: Version,
    pub compression: Option<Compression>,
}

impl Wire {
    /// The compression of envelopes; `None` in v5, which compresses segments.
    pub fn of_envelopes(self) -> Option<Compression> {
        self.compression.filter(|_| self.version < Version::V5)
    }

    /// Packs whole envelopes for the wire; in v5, into segments.
    pub fn pack(self, envelopes: Vec<u8>) -> Vec<u8> {
        if self.version < Version::V5 || envelopes.is_empty() {
            return envelopes;
        }
        let mut out = Vec::with_capacity(envelopes.len() + envelopes.len() / 1024 + 32);
        encode_segments(&envelopes, self.compression, &mut out);
        out
    }

    /// Packs one envelope with large shared parts. The parts are copied only if segments are compressed. Requires: envelopes are not
    /// compressed.
    pub fn pack_shared(self, envelope: Rope) -> Rope {
        if self.version < Version::V5 {
            return envelope;
        }
        let mut out = Rope::default();
        encode_shared_segments(&envelope, self.compression, &mut out);
        out
    }
}

/// A request for a worker.
pub(crate) enum Work {
    /// A request that is not decoded yet.
    Frame {
        frame: Frame,
        received_nanos: u64,
        /// The bytes that it has waited for; `None` if no thread has begun the request.
        begun: Option<Box<Begun>>,
    },
    /// A decoded request, moved to the threads for heavy statements.
    Heavy {
        request: Box<RequestFrame>,
        cost: InFlight,
        received_nanos: u64,
    },
}

/// A request that waited for the disk. It is executed again from its beginning.
#[derive(Debug)]
pub(crate) struct Begun {
    /// When a thread first took it, in nanoseconds of the monotonic clock.
    pub started_nanos: u64,
    pub given: Given,
}

impl Work {
    /// Protocol version and stream id of the answer, and the size of the request.
    pub fn stream_and_size(&self) -> (Version, i16, InFlight) {
        match self {
            Self::Frame { frame, .. } => (frame.version, frame.stream, InFlight::of(frame)),
            Self::Heavy { request, cost, .. } => (request.version, request.stream, *cost),
        }
    }
}

/// Number and size of requests in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InFlight {
    pub requests: usize,
    pub bytes: usize,
}

impl InFlight {
    pub fn of(frame: &Frame) -> Self {
        Self {
            requests: 1,
            bytes: frame.body.len(),
        }
    }

    pub fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.bytes += other.bytes;
    }
}

/// Limits of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionLimits {
    pub requests_max: usize,
    pub request_bytes_max: usize,
    pub queued_bytes_max: usize,
}

/// The stage of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ConnectionStage {
    /// Before STARTUP.
    Established = 0,
    /// The client must authenticate.
    Authenticating = 1,
    /// A password or certificate is being checked.
    Checking = 2,
    /// The client may send statements.
    Ready = 3,
    /// The login by the client's certificate was refused; the connection ends.
    Refused = 4,
}

/// The client's STARTUP and its state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Client {
    pub state: ClientState,
    pub options: Vec<(String, String)>,
    pub wire: Option<Wire>,
}

impl Client {
    /// The state of a client that has not logged in.
    fn anonymous() -> Self {
        let state = ClientState {
            identity: Identity::Anonymous,
            ..ClientState::default()
        };
        Self {
            state,
            ..Self::default()
        }
    }
}

/// The shared state of one connection.
pub(crate) struct Session {
    pub id: u64,
    pub peer: SocketAddr,
    limits: SessionLimits,
    /// The connection's share of the memory for all clients.
    pub account: Account,
    stage: AtomicU8,
    /// Locked only to copy, never while a statement runs.
    client: Mutex<Client>,
    /// Locked while bytes are written to the socket, which never blocks.
    outbox: Mutex<Outbox>,
    /// Wakes the task that sends.
    pub wake_sender: Notify,
    /// Wakes the task that reads, while it waits for room.
    pub wake_reader: Notify,
    reader_waits: AtomicBool,
    is_gone: AtomicBool,
    throws_on_overload: AtomicBool,
    requests: AtomicUsize,
    request_bytes: AtomicUsize,
    /// Requests since the connection was opened.
    pub request_count: AtomicU64,
    /// Set of the [`EventKind`]s that the client registered for, as bits.
    events: AtomicU8,
    pub sent_metadata: SentMetadata,
}

/// Who sends the bytes that [`Session::deliver`] queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SentBy {
    /// The calling thread.
    Caller,
    /// The task of the connection, since a system call would take the caller too long.
    ConnectionTask,
}

impl Session {
    pub fn new(
        id: u64,
        peer: SocketAddr,
        stream: Arc<Socket>,
        limits: SessionLimits,
        account: Account,
    ) -> Self {
        Self {
            id,
            peer,
            limits,
            account,
            stage: AtomicU8::new(ConnectionStage::Established as u8),
            client: Mutex::new(Client::anonymous()),
            outbox: Mutex::new(Outbox::new(stream)),
            wake_sender: Notify::new(),
            wake_reader: Notify::new(),
            reader_waits: AtomicBool::new(false),
            is_gone: AtomicBool::new(false),
            throws_on_overload: AtomicBool::new(false),
            requests: AtomicUsize::new(0),
            request_bytes: AtomicUsize::new(0),
            request_count: AtomicU64::new(0),
            events: AtomicU8::new(0),
            sent_metadata: SentMetadata::default(),
        }
    }

    pub fn stage(&self) -> ConnectionStage {
        match self.stage.load(SeqCst) {
            0 => ConnectionStage::Established,
            1 => ConnectionStage::Authenticating,
            2 => ConnectionStage::Checking,
            3 => ConnectionStage::Ready,
            _ => ConnectionStage::Refused,
        }
    }

    pub fn set_stage(&self, stage: ConnectionStage) {
        self.stage.store(stage as u8, SeqCst);
    }

    /// True if requests are refused at once on overload.
    pub fn throws_on_overload(&self) -> bool {
        self.throws_on_overload.load(Relaxed)
    }

    pub fn throw_on_overload(&self, throws: bool) {
        self.throws_on_overload.store(throws, Relaxed);
    }

    /// A copy of the client's STARTUP and state.
    pub fn client(&self) -> Client {
        self.client.lock().clone()
    }

    /// The wire format and client state, for a worker; `None` before STARTUP.
    pub fn enter(&self) -> Option<(Wire, ClientState)> {
        let client = self.client.lock();
        Some((client.wire?, client.state.clone()))
    }

    pub fn wire(&self) -> Option<Wire> {
        self.client.lock().wire
    }

    /// Packs whole envelopes for the wire, also before STARTUP.
    pub fn pack(&self, envelopes: Vec<u8>) -> Vec<u8> {
        match self.wire() {
            Some(wire) => wire.pack(envelopes),
            None => envelopes,
        }
    }

    pub fn change_client(&self, change: impl FnOnce(&mut Client)) {
        change(&mut self.client.lock());
    }

    /// Counts decoded requests as in flight.
    pub fn begin(&self, cost: InFlight) {
        self.requests.fetch_add(cost.requests, SeqCst);
        self.request_bytes.fetch_add(cost.bytes, SeqCst);
        self.account.grow(cost.bytes);
        self.request_count.fetch_add(cost.requests as u64, Relaxed);
    }

    /// Queues answers, already packed for the wire, and counts their requests as done.
    pub fn deliver(&self, packed: impl Into<Rope>, done: InFlight, sender: SentBy) {
        self.deliver_timed(packed, done, sender, None);
    }

    /// As [`Self::deliver`]; counts the times of the requests when the first byte is sent.
    pub fn deliver_timed(
        &self,
        packed: impl Into<Rope>,
        done: InFlight,
        sender: SentBy,
        times: Option<AnswerTimes>,
    ) {
        self.send(packed.into(), sender, times);
        self.requests.fetch_sub(done.requests, SeqCst);
        self.request_bytes.fetch_sub(done.bytes, SeqCst);
        self.account.shrink(done.bytes);
        self.wake_reader_if_waiting();
    }

    fn send(&self, packed: Rope, sender: SentBy, times: Option<AnswerTimes>) {
        let mut outbox = self.outbox.lock();
        let before = outbox.queued_bytes();
        let is_sent_now = before == 0 && sender == SentBy::Caller;
        match times {
            // Most answers are sent at once, so their times need not be queued.
            Some(times) if is_sent_now && outbox.takes_all() => {
                times.sent();
                outbox.push(packed, None);
            }
            times => outbox.push(packed, times),
        }
        let sent = match is_sent_now {
            true => outbox.send(),
            false => Ok(Remainder::Waiting),
        };
        self.account.change(before, outbox.queued_bytes());
        drop(outbox);
        // On an error, the connection's own task gets the same error of the socket and handles it.
        if !matches!(sent, Ok(Remainder::Nothing)) {
            self.wake_sender.notify_one();
        }
    }

    /// Sends queued bytes. Returns the parked work that may run again, and whether the socket is full.
    pub fn flush(&self) -> std::io::Result<(Vec<Work>, bool)> {
        let mut outbox = self.outbox.lock();
        let before = outbox.queued_bytes();
        let sent = outbox.send();
        self.account.change(before, outbox.queued_bytes());
        let waiting = sent? == Remainder::Waiting;
        let work = match self.account.has_room() {
            true => outbox.unpark(self.limits.queued_bytes_max),
            false => Vec::new(),
        };
        drop(outbox);
        self.wake_reader_if_waiting();
        Ok((work, waiting))
    }

    /// Parks work until the client has read more, or until memory is free. Returns the work as an error if it may run now.
    pub fn park(&self, work: Vec<Work>) -> Result<(), Vec<Work>> {
        if self.account.has_room() {
            return self.outbox.lock().park(work, self.limits.queued_bytes_max);
        }
        self.outbox.lock().park(work, 0)?;
        // If no bytes are left to send, nobody else would wake the task that resumes the work.
        self.wake_sender.notify_one();
        Ok(())
    }

    /// True if work is parked.
    pub fn has_parked(&self) -> bool {
        self.outbox.lock().has_parked()
    }

    /// Takes all parked work, even if the client has not read its answers.
    pub fn take_parked(&self) -> Vec<Work> {
        self.outbox.lock().unpark(usize::MAX)
    }

    /// Drops the socket and the bytes that are not sent.
    pub fn close(&self) {
        self.is_gone.store(true, Relaxed);
        let mut outbox = self.outbox.lock();
        self.account.shrink(outbox.queued_bytes());
        outbox.close();
    }

    /// True if the connection is closed.
    pub fn is_gone(&self) -> bool {
        self.is_gone.load(Relaxed)
    }

    /// Wakes both tasks, so that they check whether the server stops.
    pub fn wake(&self) {
        self.wake_reader.notify_one();
        self.wake_sender.notify_one();
    }

    fn wake_reader_if_waiting(&self) {
        if self.reader_waits.load(SeqCst) {
            self.wake_reader.notify_one();
        }
    }

    pub fn queued_bytes(&self) -> usize {
        self.outbox.lock().queued_bytes()
    }

    pub fn requests_in_flight(&self) -> usize {
        self.requests.load(SeqCst)
    }

    pub fn is_idle(&self) -> bool {
        self.requests_in_flight() == 0 && self.queued_bytes() == 0
    }

    /// True if another request may be decoded.
    pub fn has_room(&self) -> bool {
        self.requests.load(SeqCst) < self.limits.requests_max
            && self.request_bytes.load(SeqCst) < self.limits.request_bytes_max
            && self.queued_bytes() < self.limits.queued_bytes_max
    }

    /// Waits until another request may be decoded, or until [`Session::wake`].
    pub async fn wait_for_room(&self) {
        self.wait_unless(Self::has_room).await;
    }

    /// Waits until an answer was queued or sent, or until [`Session::wake`]. Returns at once if the session is idle.
    pub async fn wait_for_change(&self) {
        self.wait_unless(Self::is_idle).await;
    }

    async fn wait_unless(&self, is_done: impl Fn(&Self) -> bool) {
        if is_done(self) {
            return;
        }
        self.reader_waits.store(true, SeqCst);
        // `is_done` may have become true before the flag was set.
        if !is_done(self) {
            self.wake_reader.notified().await;
        }
        self.reader_waits.store(false, SeqCst);
    }

    pub fn facts(&self) -> ClientFacts {
        let client = self.client();
        // A statement of its own, so that the lock is released before the next one.
        let tls = self.outbox.lock().tls_facts();
        ClientFacts {
            peer: self.peer,
            stage: match self.stage() {
                ConnectionStage::Established => "ESTABLISHED",
                ConnectionStage::Authenticating | ConnectionStage::Checking | ConnectionStage::Refused => {
                    "AUTHENTICATING"
                }
                ConnectionStage::Ready => "READY",
            },
            options: client.options,
            protocol_version: client.wire.map(|wire| wire.version.number()),
            keyspace: client.state.keyspace,
            user: client.state.identity.role().map(str::to_owned),
            tls,
            request_count: self.request_count.load(Relaxed),
            requests_in_flight: self.requests_in_flight(),
            queued_bytes: self.queued_bytes(),
        }
    }

    pub fn register(&self, kinds: &[EventKind]) {
        let bits = kinds.iter().fold(0, |bits, kind| bits | event_bit(*kind));
        self.events.fetch_or(bits, Relaxed);
    }

    pub fn wants(&self, kind: EventKind) -> bool {
        self.events.load(Relaxed) & event_bit(kind) != 0
    }
}

fn event_bit(kind: EventKind) -> u8 {
    match kind {
        EventKind::TopologyChange => 1,
        EventKind::StatusChange => 2,
        EventKind::SchemaChange => 4,
    }
}
