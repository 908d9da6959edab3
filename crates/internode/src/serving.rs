//! [`Serving`]: the answers to the requests of one connection, made by threads of the lanes.
//!
//! While more answers wait to be sent than `unsent_bytes_max`, no further request of the connection is begun. So a node that reads slowly
//! has at most that much here, and one answer for each thread. Not here: what the task of the connection does (`inbox`).

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;
use ilion_env::{Env, patience};
use ilion_protocol::Opcode;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::counts::{Counting, add_one};
use crate::hello::Identity;
use crate::kind::Kind;
use crate::lanes::Lanes;
use crate::message::{Begin, Code, Ends, PIECE_BYTES_MAX};
use crate::options::Options;
use crate::sender::Sender;
use crate::served::ServedCall;
use crate::service::{Served, ServiceError, Services};
use crate::traffic::CountedTraffic;

/// Pause between two checks of how many bytes wait to be sent.
const PAUSE: Duration = Duration::from_millis(10);

/// What all connections of other nodes share.
pub(crate) struct Server {
    pub env: Arc<dyn Env>,
    pub options: Options,
    pub services: Services,
    pub lanes: Lanes,
    pub counting: Arc<Counting>,
    pub stopping: watch::Receiver<bool>,
}

/// See the module.
pub(crate) struct Serving {
    pub server: Arc<Server>,
    pub asker: Identity,
    counted: Arc<CountedTraffic>,
    pub sender: Sender,
    /// Calls whose answer has not ended.
    pub calls: Mutex<HashMap<i16, Arc<ServedCall>>>,
    /// Requests that wait until answers are sent.
    parked: Mutex<VecDeque<Request>>,
    /// Bytes of all requests whose answer has not ended.
    pub requests_bytes: Mutex<usize>,
}

/// A request that is complete.
pub(crate) struct Request {
    pub call: Arc<ServedCall>,
    pub head: Begin,
    pub bytes: Bytes,
}

impl Serving {
    /// Serves the requests of the node `asker`.
    pub fn new(server: Arc<Server>, asker: Identity) -> Self {
        Self {
            counted: server.counting.of(asker.node),
            asker,
            sender: Sender::new(Opcode::NodeAnswer),
            calls: Mutex::default(),
            parked: Mutex::default(),
            requests_bytes: Mutex::default(),
            server,
        }
    }

    /// Gives a request to a thread of its lane.
    pub fn give(self: &Arc<Self>, request: Request) {
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

    /// Gives the parked requests to threads, since answers were sent.
    pub fn resume(self: &Arc<Self>) {
        if self.sender.queued_bytes() >= self.server.options.unsent_bytes_max / 2 {
            return;
        }
        let parked = std::mem::take(&mut *self.parked.lock());
        parked.into_iter().for_each(|request| self.give(request));
    }

    /// Drops a request that waits. True if there was one.
    pub fn unpark(&self, stream: i16) -> bool {
        let mut parked = self.parked.lock();
        let before = parked.len();
        parked.retain(|request| request.call.stream != stream);
        parked.len() < before
    }

    /// Answers a request.
    fn answer(&self, request: Request) {
        let Request { call, head, bytes } = request;
        add_one(&self.server.counting.served);
        let request_bytes = bytes.len();
        self.counted.received.add(request_bytes);
        let (code, reason) = match self.ask(head.kind, &call, bytes) {
            Ok(Served::Whole(bytes)) => {
                self.counted.answered.add(request_bytes);
                self.forget(&call);
                let ends = Ends::ALL;
                return self.sender.post(|outbox| outbox.answer(call.stream, bytes, ends));
            }
            Ok(Served::Parts(parts)) => match self.send_parts(&call, parts) {
                Ok(()) => {
                    self.counted.answered.add(request_bytes);
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
        let _waits = ilion_env::client_waits();
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
        parts: Box<dyn Iterator<Item = Result<Bytes, ServiceError>> + Send>,
    ) -> Result<(), (Code, String)> {
        let options = &self.server.options;
        let _waits = ilion_env::client_waits();
        // Dropped before the scope ends, with the SSTables that it reads.
        let mut parts = parts;
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
                // A node may give credit for more bytes than it takes from the socket.
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
    pub fn fail(&self, call: &ServedCall, code: Code, reason: &str) {
        if code != Code::Cancelled {
            add_one(&self.server.counting.failed);
            let request_bytes = call.request_bytes.load(Relaxed);
            match code {
                Code::TimedOut => self.counted.expired.add(request_bytes),
                _ => self.counted.failed.add(request_bytes),
            }
        }
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
