//! [`Serving`]: the connection of another node, from its greeting to its end: its requests, and their answers.
//!
//! While more answers wait to be sent than `unsent_bytes_max`, no further request of the connection is begun. So a node that reads slowly has at
//! most that much here, and one answer for each thread.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use ilion_env::{Env, patience};
use ilion_protocol::Opcode;
use ilion_tls::Socket;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::hello::Identity;
use crate::kind::Kind;
use crate::lanes::Lanes;
use crate::message::{Begin, Code, Ends, Message, PIECE_BYTES_MAX};
use crate::options::{CALLS_MAX, Options, REQUESTS_BYTES_MAX};
use crate::receiver::{Found, Receiver, own};
use crate::sender::Sender;
use crate::served::ServedCall;
use crate::service::{Served, ServiceError, Services};
use crate::stopping::stopped;

/// Reads between two looks at everything else.
const READS_MAX: usize = 16;
/// Time between two looks at the clock.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Time between two looks at how much waits to be sent.
const PAUSE: Duration = Duration::from_millis(10);

/// What all connections of other nodes share.
pub(crate) struct Server {
    pub env: Arc<dyn Env>,
    pub options: Options,
    pub services: Services,
    pub lanes: Lanes,
    pub stopping: watch::Receiver<bool>,
}

/// See the module.
struct Serving {
    server: Arc<Server>,
    asker: Identity,
    sender: Sender,
    calls: Mutex<HashMap<i16, Arc<ServedCall>>>,
    /// Requests that wait until answers are sent.
    parked: Mutex<VecDeque<Request>>,
    /// Bytes of all requests whose answer has not ended.
    requests_bytes: Mutex<usize>,
}

/// A request that is complete.
struct Request {
    call: Arc<ServedCall>,
    head: Begin,
    bytes: Bytes,
}

/// What the task of the connection has.
struct Inbox {
    serving: Arc<Serving>,
    /// Requests that are arriving.
    arriving: HashMap<i16, (Arc<ServedCall>, Begin, BytesMut)>,
}

/// Why the connection ends.
enum End {
    /// The other node has closed it, or is gone.
    Told(String),
    /// The other node breaks the protocol, or bytes are damaged. It is told, too.
    Broken(String),
}

/// Serves a node that was welcomed, until the connection ends. Returns why.
pub(crate) async fn serve(
    server: Arc<Server>,
    asker: Identity,
    socket: Arc<Socket>,
    mut receiver: Receiver,
) -> String {
    let serving = Arc::new(Serving {
        asker,
        sender: Sender::new(Opcode::NodeAnswer),
        calls: Mutex::default(),
        parked: Mutex::default(),
        requests_bytes: Mutex::default(),
        server,
    });
    serving.sender.open(socket.clone());
    let ending = EndsCalls(serving.clone());
    let mut inbox = Inbox {
        serving,
        arriving: HashMap::new(),
    };
    let end = inbox.run(&socket, &mut receiver).await;
    let reason = match end {
        End::Told(reason) => reason,
        End::Broken(reason) => {
            ending.0.sender.close(&reason, true);
            reason
        }
    };
    drop(ending);
    reason
}

/// Cancels the calls of a connection when its task ends, also if the runtime does.
struct EndsCalls(Arc<Serving>);

impl Drop for EndsCalls {
    fn drop(&mut self) {
        for call in self.0.calls.lock().values() {
            call.cancel();
        }
        self.0.sender.close("the connection has ended", false);
    }
}

impl Inbox {
    async fn run(&mut self, socket: &Socket, receiver: &mut Receiver) -> End {
        let mut stopping = self.serving.server.stopping.clone();
        let mut received_at = Instant::now();
        // What came with the greeting.
        let mut arrived = self.drain(receiver);
        loop {
            if let Err(end) = arrived {
                return end;
            }
            let sender = &self.serving.sender;
            // Also while bytes arrive all the time.
            if sender.is_stuck() {
                sender.flush();
            }
            if let Some(end) = sender.end() {
                return End::Told(end);
            }
            let options = &self.serving.server.options;
            let now = Instant::now();
            if sender
                .stuck_since()
                .is_some_and(|since| now - since >= options.stall_timeout)
            {
                return End::Told("the node takes none of its answers".to_owned());
            }
            if now - received_at >= options.silence_max {
                return End::Told("the node is silent".to_owned());
            }
            self.serving.resume();
            let sender = &self.serving.sender;
            arrived = tokio::select! {
                biased;
                () = stopped(&mut stopping) => {
                    Err(End::Broken("the node is shutting down".to_owned()))
                }
                ready = socket.readable() => match ready {
                    Ok(()) => self.read(socket, receiver, &mut received_at),
                    Err(error) => Err(End::Told(error.to_string())),
                },
                ready = socket.writable(), if sender.is_stuck() => {
                    sender.flush();
                    ready.map_err(|error| End::Told(error.to_string()))
                }
                () = sender.wake.notified() => Ok(()),
                () = sleep_until(now + LOOK_EVERY) => Ok(()),
            };
        }
    }

    fn read(
        &mut self,
        socket: &Socket,
        receiver: &mut Receiver,
        received_at: &mut Instant,
    ) -> Result<(), End> {
        for _ in 0..READS_MAX {
            let found = receiver
                .read(socket)
                .map_err(|error| End::Told(error.to_string()))?;
            if socket.has_unsent() {
                self.serving.sender.flush();
            }
            match found {
                Found::Bytes => {
                    *received_at = Instant::now();
                    self.drain(receiver)?;
                }
                Found::Nothing => break,
                Found::End => return Err(End::Told("the node has closed it".to_owned())),
            }
        }
        Ok(())
    }

    fn drain(&mut self, receiver: &mut Receiver) -> Result<(), End> {
        while let Some((stream, message)) = receiver.message().map_err(End::Broken)? {
            self.receive(stream, message)?;
        }
        Ok(())
    }

    fn receive(&mut self, stream: i16, message: Message) -> Result<(), End> {
        match message {
            Message::Begin { head, ends, payload } => self.begin(stream, head, ends, payload),
            Message::More { ends, payload } => {
                // Nobody waits for the rest of a request that was cancelled.
                match self.arriving.remove(&stream) {
                    Some((call, head, bytes)) => self.arrive(call, head, bytes, ends, payload),
                    None => Err(broken(format!(
                        "a piece of a request that there is not ({stream})"
                    ))),
                }
            }
            Message::Cancel => {
                self.cancel(stream);
                Ok(())
            }
            Message::Credit { bytes } => {
                // The answer may have ended meanwhile.
                if let Some(call) = self.serving.calls.lock().get(&stream) {
                    call.add_credit(bytes);
                }
                Ok(())
            }
            Message::Ping { number } => {
                self.serving
                    .sender
                    .post(|outbox| outbox.urgent(0, Message::Pong { number }));
                Ok(())
            }
            Message::Goodbye { reason } => Err(End::Told(reason)),
            Message::Piece { .. } | Message::Failure { .. } | Message::Pong { .. } => {
                Err(broken("a message of the wrong side".to_owned()))
            }
        }
    }

    fn begin(&mut self, stream: i16, head: Begin, ends: Ends, payload: Bytes) -> Result<(), End> {
        let serving = &self.serving;
        let call = Arc::new(ServedCall::new(
            stream,
            serving.asker,
            serving.server.env.clone(),
            head.time_left_micros,
            head.window,
        ));
        {
            let mut calls = serving.calls.lock();
            if stream < 0 || calls.len() >= CALLS_MAX || calls.contains_key(&stream) {
                return Err(broken(format!("one call too many ({stream})")));
            }
            calls.insert(stream, call.clone());
        }
        self.arrive(call, head, BytesMut::new(), ends, payload)
    }

    fn arrive(
        &mut self,
        call: Arc<ServedCall>,
        head: Begin,
        mut bytes: BytesMut,
        ends: Ends,
        payload: Bytes,
    ) -> Result<(), End> {
        let all = {
            let mut all = self.serving.requests_bytes.lock();
            *all += payload.len();
            *all
        };
        call.request_bytes.fetch_add(payload.len(), Relaxed);
        if all > REQUESTS_BYTES_MAX {
            return Err(broken(format!("requests of {all} bytes without an answer")));
        }
        if ends.all && bytes.is_empty() {
            let bytes = own(payload);
            self.serving.give(Request { call, head, bytes });
            return Ok(());
        }
        bytes.extend_from_slice(&payload);
        match ends.all {
            true => {
                let bytes = bytes.freeze();
                self.serving.give(Request { call, head, bytes });
            }
            false => {
                self.arriving.insert(call.stream, (call, head, bytes));
            }
        }
        Ok(())
    }

    fn cancel(&mut self, stream: i16) {
        let serving = &self.serving;
        let waited = self.arriving.remove(&stream).is_some() || serving.unpark(stream);
        let call = serving.calls.lock().get(&stream).cloned();
        if let Some(call) = &call {
            call.cancel();
            if waited {
                return serving.fail(call, Code::Cancelled, "");
            }
        }
        serving.sender.post(|outbox| {
            // Its thread ends the answer, unless it has done so, and the end was not sent yet.
            if outbox.withdraw(stream).had_end {
                outbox.failure(stream, Code::Cancelled, String::new());
            }
        });
    }
}

impl Serving {
    /// Gives a request to a thread of its lane.
    fn give(self: &Arc<Self>, request: Request) {
        let (call, lane) = (request.call.clone(), request.head.lane);
        let serving = self.clone();
        if !self
            .server
            .lanes
            .put(lane, Box::new(move || serving.take_turn(request)))
        {
            let reason = format!("too many requests wait there ({})", lane.name());
            self.fail(&call, Code::Overloaded, &reason);
        }
    }

    /// A thread has time for a request.
    fn take_turn(self: &Arc<Self>, request: Request) {
        if self.sender.queued_bytes() >= self.server.options.unsent_bytes_max {
            self.parked.lock().push_back(request);
            return self.sender.wake_when_empty();
        }
        self.answer(request);
    }

    /// Gives the requests to threads that waited until answers are sent.
    fn resume(self: &Arc<Self>) {
        if self.sender.queued_bytes() >= self.server.options.unsent_bytes_max / 2 {
            return;
        }
        let parked = std::mem::take(&mut *self.parked.lock());
        parked.into_iter().for_each(|request| self.give(request));
    }

    /// Drops a request that waits. True if there was one.
    fn unpark(&self, stream: i16) -> bool {
        let mut parked = self.parked.lock();
        let before = parked.len();
        parked.retain(|request| request.call.stream != stream);
        parked.len() < before
    }

    /// Answers a request.
    fn answer(&self, request: Request) {
        let Request { call, head, bytes } = request;
        let (code, reason) = match self.ask(head.kind, &call, bytes) {
            Ok(Served::Whole(bytes)) => {
                self.forget(&call);
                let ends = Ends::ALL;
                return self.sender.post(|outbox| outbox.answer(call.stream, bytes, ends));
            }
            Ok(Served::Parts(parts)) => match self.send_parts(&call, parts) {
                Ok(()) => {
                    self.forget(&call);
                    let ends = Ends {
                        part: false,
                        all: true,
                    };
                    return self
                        .sender
                        .post(|outbox| outbox.answer(call.stream, Bytes::new(), ends));
                }
                Err(failure) => failure,
            },
            Err(failure) => failure,
        };
        self.fail(&call, code, &reason);
    }

    fn ask(&self, kind: Kind, call: &Arc<ServedCall>, request: Bytes) -> Result<Served, (Code, String)> {
        if !call.is_wanted() {
            return Err((Code::Cancelled, String::new()));
        }
        if call.is_late() {
            return Err((Code::TimedOut, String::new()));
        }
        let service = self.server.services.get(kind).ok_or_else(|| {
            let reason = format!("it has no service for requests of kind {}", kind.0);
            (Code::Refused, reason)
        })?;
        let _scope = patience::begin(call.clone(), call.deadline_nanos());
        match catch_unwind(AssertUnwindSafe(|| service.answer(request, call))) {
            Ok(answer) => answer.map_err(|error| code_of(&error)),
            Err(_) => Err(panicked()),
        }
    }

    /// Sends the parts of an answer as there is credit for them.
    fn send_parts(
        &self,
        call: &Arc<ServedCall>,
        mut parts: Box<dyn Iterator<Item = Result<Bytes, ServiceError>> + Send>,
    ) -> Result<(), (Code, String)> {
        let options = &self.server.options;
        loop {
            if !call.is_wanted() {
                return Err((Code::Cancelled, String::new()));
            }
            let _scope = patience::begin(call.clone(), call.deadline_nanos());
            let next = catch_unwind(AssertUnwindSafe(|| parts.next())).map_err(|_| panicked())?;
            let Some(part) = next else {
                return Ok(());
            };
            let mut part = part.map_err(|error| code_of(&error))?;
            if part.len() > options.part_bytes_max {
                let reason = format!("a part of its answer has {} bytes", part.len());
                return Err((Code::Failed, reason));
            }
            loop {
                let piece = part.split_to(part.len().min(PIECE_BYTES_MAX));
                if !call.take_credit(piece.len(), options.stall_timeout) {
                    return Err(match call.is_wanted() {
                        true => (Code::Failed, "nobody takes the parts of the answer".to_owned()),
                        false => (Code::Cancelled, String::new()),
                    });
                }
                // A node may give more credit than it takes bytes.
                while self.sender.queued_bytes() >= options.unsent_bytes_max && call.is_wanted() {
                    call.pause(PAUSE);
                }
                let ends = Ends {
                    part: part.is_empty(),
                    all: false,
                };
                self.sender.post(|outbox| outbox.answer(call.stream, piece, ends));
                if ends.part {
                    break;
                }
            }
        }
    }

    /// Ends a call with a failure.
    fn fail(&self, call: &ServedCall, code: Code, reason: &str) {
        self.forget(call);
        self.sender
            .post(|outbox| outbox.failure(call.stream, code, reason.to_owned()));
    }

    /// The answer of a call is about to end. After that the other node may use its stream again.
    fn forget(&self, call: &ServedCall) {
        self.calls.lock().remove(&call.stream);
        *self.requests_bytes.lock() -= call.request_bytes.swap(0, Relaxed);
    }
}

fn broken(what: String) -> End {
    End::Broken(what)
}

fn panicked() -> (Code, String) {
    (
        Code::Failed,
        "its thread has panicked: the log of that node has more".to_owned(),
    )
}

fn code_of(error: &ServiceError) -> (Code, String) {
    match error {
        ServiceError::Refused(reason) => (Code::Refused, reason.clone()),
        ServiceError::TimedOut => (Code::TimedOut, String::new()),
        ServiceError::Failed(reason) => (Code::Failed, reason.clone()),
    }
}
