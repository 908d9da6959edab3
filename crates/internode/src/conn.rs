//! [`Conn`]: one connection to another node, from its first call to its end; and [`exchange`], the task that moves its messages.

use std::sync::Arc;

use bytes::Bytes;
use ilion_protocol::Opcode;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::calls::{Calls, Received};
use crate::dial::Opened;
use crate::error::CallError;
use crate::incoming::Incoming;
use crate::message::{Begin, Message};
use crate::options::Options;
use crate::receiver::Found;
use crate::sender::Sender;
use crate::signs::{Due, Signs};
use crate::stopping::stopped;

/// Number of reads after which other work gets a turn.
const READS_MAX: usize = 16;

/// See the module.
pub(crate) struct Conn {
    sender: Sender,
    /// Locked before the outbox of the sender.
    calls: Mutex<Calls>,
}

impl Conn {
    pub fn new() -> Self {
        Self {
            sender: Sender::new(Opcode::NodeRequest),
            calls: Mutex::default(),
        }
    }

    /// Sends a request. Returns its stream.
    ///
    /// # Errors
    /// The connection has ended, or has too many calls.
    pub fn begin(&self, head: Begin, request: Bytes, incoming: &Arc<Incoming>) -> Result<i16, CallError> {
        let stream = self.calls.lock().begin(incoming.clone(), request.len())?;
        self.sender.post(|outbox| outbox.request(stream, head, request));
        Ok(stream)
    }

    /// Cancels a call that nobody waits for any more.
    pub fn forget(&self, stream: i16, incoming: &Arc<Incoming>) {
        let mut calls = self.calls.lock();
        if calls.forget(stream, incoming) && self.cancel(stream) {
            calls.free(stream);
        }
    }

    /// Withdraws a request. Returns true if no byte of it was sent; otherwise a cancellation is sent to the other node.
    fn cancel(&self, stream: i16) -> bool {
        self.sender.post(|outbox| {
            let was_whole = outbox.withdraw(stream).was_whole;
            if !was_whole {
                outbox.urgent(stream, Message::Cancel);
            }
            was_whole
        })
    }

    /// Lets the other node send more of an answer.
    pub fn credit(&self, stream: i16, incoming: &Arc<Incoming>, bytes: u32) {
        let calls = self.calls.lock();
        if calls.is_of(stream, incoming) {
            self.sender
                .post(|outbox| outbox.urgent(stream, Message::Credit { bytes }));
        }
    }

    /// Fails all calls.
    pub fn end(&self, error: &CallError) {
        self.calls.lock().end(error);
        self.sender.close("the connection has ended", false);
    }

    fn receive(&self, stream: i16, message: Message) -> Result<(), End> {
        match message {
            Message::Piece { ends, payload } => {
                let received = self.calls.lock().receive(stream, ends, payload);
                match received.map_err(End::Broken)? {
                    Received::Nothing => {}
                    Received::Credit(bytes) => self
                        .sender
                        .post(|outbox| outbox.urgent(stream, Message::Credit { bytes })),
                    Received::Cancel => {
                        self.cancel(stream);
                    }
                }
                Ok(())
            }
            Message::Failure { code, reason } => {
                let failed = self.calls.lock().fail(stream, code, reason);
                failed.map_err(End::Broken)
            }
            Message::Pong { .. } => Ok(()),
            Message::Goodbye { reason } => Err(End::Told(reason)),
            Message::Begin { .. }
            | Message::More { .. }
            | Message::Cancel
            | Message::Credit { .. }
            | Message::Ping { .. } => Err(End::Broken("a message of the wrong side".to_owned())),
        }
    }
}

/// Why a connection ends.
enum End {
    /// The other node has closed the connection, or is gone.
    Told(String),
    /// The other node broke the protocol, or bytes are damaged. The reason is sent to it before the connection is closed.
    Broken(String),
}

/// Moves messages until the connection ends. Returns why.
pub(crate) async fn exchange(
    conn: &Conn,
    opened: Opened,
    options: &Options,
    mut stopping: watch::Receiver<bool>,
) -> String {
    let Opened { socket, mut receiver } = opened;
    conn.sender.open(socket.clone());
    let mut signs = Signs::new(Instant::now());
    // Bytes may have come together with the welcome.
    let mut arrived = drain(conn, &mut receiver);
    loop {
        match arrived {
            Ok(()) => {}
            Err(End::Told(reason)) => return reason,
            Err(End::Broken(reason)) => {
                conn.sender.close(&reason, true);
                return reason;
            }
        }
        // Not only when the socket gets writable: bytes may arrive all the time, and `select` prefers them.
        if conn.sender.is_stuck() {
            conn.sender.flush();
        }
        if let Some(end) = conn.sender.end() {
            return end;
        }
        let busy_since = conn.calls.lock().busy_since();
        let look_at = match signs.due(Instant::now(), busy_since, options) {
            Due::Nothing(until) => until,
            Due::Ping(number) => {
                conn.sender
                    .post(|outbox| outbox.urgent(0, Message::Ping { number }));
                Instant::now() + options.dead_after
            }
            Due::Dead(silence) => return format!("the node was silent for {} ms", silence.as_millis()),
        };
        arrived = tokio::select! {
            // Bytes that have arrived count before a deadline that has passed meanwhile.
            biased;
            () = stopped(&mut stopping) => {
                conn.sender.close("the node is shutting down", true);
                return "this node is shutting down".to_owned();
            }
            ready = socket.readable() => match ready {
                Ok(()) => read(conn, &socket, &mut receiver, &mut signs),
                Err(error) => Err(End::Told(error.to_string())),
            },
            ready = socket.writable(), if conn.sender.is_stuck() => {
                conn.sender.flush();
                ready.map_err(|error| End::Told(error.to_string()))
            }
            () = conn.sender.wake.notified() => Ok(()),
            () = sleep_until(look_at) => Ok(()),
        };
    }
}

fn read(
    conn: &Conn,
    socket: &ilion_tls::Socket,
    receiver: &mut crate::receiver::Receiver,
    signs: &mut Signs,
) -> Result<(), End> {
    for _ in 0..READS_MAX {
        let found = receiver
            .read(socket)
            .map_err(|error| End::Told(error.to_string()))?;
        if socket.has_unsent() {
            conn.sender.flush();
        }
        match found {
            Found::Bytes => {
                signs.received(Instant::now());
                drain(conn, receiver)?;
            }
            Found::Nothing => break,
            Found::End => return Err(End::Told("the node has closed it".to_owned())),
        }
    }
    Ok(())
}

fn drain(conn: &Conn, receiver: &mut crate::receiver::Receiver) -> Result<(), End> {
    while let Some((stream, message)) = receiver.message().map_err(End::Broken)? {
        conn.receive(stream, message)?;
    }
    Ok(())
}
