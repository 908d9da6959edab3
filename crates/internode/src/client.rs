//! [`Client`]: calls to other nodes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use ilion_cluster::{Node, Traffic};
use ilion_env::Env;
use parking_lot::Mutex;

use crate::conn::Conn;
use crate::counts::{CallCounts, Counting, add_one};
use crate::error::CallError;
use crate::incoming::{Incoming, Next, Wanted};
use crate::kind::{Kind, Lane};
use crate::link::Link;
use crate::message::Begin;
use crate::options::WINDOW_BYTES;
use crate::shared::Shared;
use crate::traffic::CountedTraffic;

/// The way to other nodes. Clones share their connections.
///
/// A call never blocks: it is queued, and its request is sent as soon as there is a connection. Only waiting blocks.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    /// The links, by node and by whether they carry copies.
    links: Arc<Mutex<Links>>,
}

type Links = HashMap<(Node, bool), Arc<Link>>;

impl Client {
    pub(crate) fn new(shared: Shared) -> Self {
        Self {
            shared: Arc::new(shared),
            links: Arc::default(),
        }
    }

    /// The counts since the start, of both directions.
    pub fn counts(&self) -> CallCounts {
        self.shared.counting.counts()
    }

    /// Asks a node. The node gives up after `time_left`; `None`: never.
    pub fn call(
        &self,
        node: Node,
        kind: Kind,
        lane: Lane,
        request: Bytes,
        time_left: Option<Duration>,
    ) -> Call {
        let counted = self.count(node, &request);
        Call {
            asked: counted.begun(self.begin(node, kind, lane, request, time_left, Wanted::Whole)),
            env: self.shared.env.clone(),
            counted,
        }
    }

    /// Asks a node for an answer in parts, which is read while it is made: see [`Parts`].
    pub fn fetch(
        &self,
        node: Node,
        kind: Kind,
        lane: Lane,
        request: Bytes,
        time_left: Option<Duration>,
    ) -> Parts {
        let counted = self.count(node, &request);
        Parts {
            asked: counted.begun(self.begin(node, kind, lane, request, time_left, Wanted::Parts)),
            env: self.shared.env.clone(),
            counted,
        }
    }

    /// The counts since the start, by node.
    pub fn traffic(&self) -> BTreeMap<Node, Traffic> {
        self.shared.counting.by_node()
    }

    fn count(&self, node: Node, request: &Bytes) -> Counted {
        let all = self.shared.counting.clone();
        add_one(&all.asked);
        Counted {
            of_node: all.of(node),
            request_bytes: request.len(),
            all,
        }
    }

    fn begin(
        &self,
        node: Node,
        kind: Kind,
        lane: Lane,
        request: Bytes,
        time_left: Option<Duration>,
        wanted: Wanted,
    ) -> Result<Asked, CallError> {
        let shared = &self.shared;
        if *shared.stopping.borrow() {
            return Err(CallError::Unreachable("this node is shutting down".to_owned()));
        }
        let link = self
            .links
            .lock()
            .entry((node, lane == Lane::Copy))
            .or_insert_with(|| Arc::new(Link::new(node)))
            .clone();
        let conn = link.conn(shared)?;
        let incoming = Arc::new(Incoming::new(wanted, shared.bounds.clone()));
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let head = Begin {
            kind,
            lane,
            time_left_micros: time_left.map_or(u64::MAX, micros),
            window: WINDOW_BYTES,
        };
        let stream = conn.begin(head, request, &incoming)?;
        Ok(Asked {
            conn,
            stream,
            incoming,
        })
    }
}

/// Where the outcome of a request is counted.
struct Counted {
    all: Arc<Counting>,
    of_node: Arc<CountedTraffic>,
    request_bytes: usize,
}

impl Counted {
    fn begun(&self, begun: Result<Asked, CallError>) -> Result<Asked, CallError> {
        match &begun {
            Ok(_) => self.of_node.sent.add(self.request_bytes),
            // Too many calls are open already.
            Err(CallError::Refused(_)) => {
                add_one(&self.all.unanswered);
                self.of_node.held_back.add(self.request_bytes);
            }
            Err(error) => self.unanswered(error),
        }
        begun
    }

    fn unanswered(&self, error: &CallError) {
        add_one(&self.all.unanswered);
        self.of_node.not_answered(error, self.request_bytes);
    }
}

/// A request that was sent. Dropping it before its answer ended cancels it.
struct Asked {
    conn: Arc<Conn>,
    stream: i16,
    incoming: Arc<Incoming>,
}

impl Drop for Asked {
    fn drop(&mut self) {
        if !self.incoming.has_ended() {
            self.conn.forget(self.stream, &self.incoming);
        }
    }
}

/// An answer that is on its way. Dropping it cancels the request: the node stops, if it can still be reached.
#[must_use = "a call that is dropped is cancelled"]
pub struct Call {
    asked: Result<Asked, CallError>,
    env: Arc<dyn Env>,
    counted: Counted,
}

impl Call {
    /// Sets a function that is called when [`Self::is_answered`] changes, on a thread that must not wait.
    pub fn on_answer(&self, on_answer: impl Fn() + Send + 'static) {
        if let Ok(asked) = &self.asked {
            asked.incoming.on_change(Box::new(on_answer));
        }
    }

    /// Whether [`Self::wait`] returns at once.
    pub fn is_answered(&self) -> bool {
        self.asked
            .as_ref()
            .map_or(true, |asked| asked.incoming.is_ready())
    }

    /// Waits for the whole answer until a time of this node's monotonic clock; `u64::MAX`: for ever.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn wait(self, deadline_nanos: u64) -> Result<Bytes, CallError> {
        let asked = self.asked?;
        let failure = match asked.incoming.next(until(&*self.env, deadline_nanos)) {
            Next::Part(answer, _) => return Ok(answer),
            Next::End(Err(error)) => error,
            Next::End(Ok(())) => CallError::Failed("its answer has no part".to_owned()),
            Next::TimedOut => CallError::TimedOut,
        };
        self.counted.unanswered(&failure);
        Err(failure)
    }
}

/// An answer that comes in parts, as the service of the other node has made them. The other node is at most 1 MiB and a part ahead of the
/// reader. Dropping it cancels the request.
#[must_use = "an answer that is dropped is cancelled"]
pub struct Parts {
    asked: Result<Asked, CallError>,
    env: Arc<dyn Env>,
    counted: Counted,
}

impl Parts {
    /// Waits for the next part until a time of this node's monotonic clock; `u64::MAX`: for ever. `None`: the answer is complete. After
    /// [`CallError::TimedOut`] it may be called again.
    ///
    /// # Errors
    /// See [`CallError`]. The parts before are part of an answer that is not complete.
    pub fn next_part(&mut self, deadline_nanos: u64) -> Result<Option<Bytes>, CallError> {
        let asked = self.asked.as_ref().map_err(Clone::clone)?;
        match asked.incoming.next(until(&*self.env, deadline_nanos)) {
            Next::Part(part, 0) => Ok(Some(part)),
            Next::Part(part, credit) => {
                asked.conn.credit(asked.stream, &asked.incoming, credit);
                Ok(Some(part))
            }
            Next::End(end) => {
                let end = end.inspect_err(|error| self.counted.unanswered(error));
                end.map(|()| None)
            }
            Next::TimedOut => Err(CallError::TimedOut),
        }
    }
}

/// The moment of a deadline; `None`: never.
fn until(env: &dyn Env, deadline_nanos: u64) -> Option<Instant> {
    let left = deadline_nanos.saturating_sub(env.monotonic_nanos());
    Instant::now().checked_add(Duration::from_nanos(left))
}
