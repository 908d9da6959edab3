//! The task of a connection of another node, from its greeting to its end: decodes requests, and sends the bytes that threads left.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use ilion_tls::Socket;
use tokio::time::{Instant, sleep_until};

use crate::hello::Identity;
use crate::message::{Begin, Code, Ends, Message};
use crate::options::{CALLS_MAX, REQUESTS_BYTES_MAX};
use crate::receiver::{Found, Receiver, own};
use crate::served::ServedCall;
use crate::serving::{Request, Server, Serving};
use crate::stopping::stopped;

/// Number of reads after which other work gets a turn.
const READS_MAX: usize = 16;
/// How often the clock is read while no bytes arrive.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The state of the task of a connection.
struct Inbox {
    serving: Arc<Serving>,
    /// Requests that are arriving.
    arriving: HashMap<i16, (Arc<ServedCall>, Begin, BytesMut)>,
}

/// Why the connection ends.
enum End {
    /// The other node has closed the connection, or is gone.
    Told(String),
    /// The other node broke the protocol, or bytes are damaged. The reason is sent to it before the connection is closed.
    Broken(String),
}

/// Serves a node that was welcomed, until the connection ends. Returns why.
pub(crate) async fn serve(
    server: Arc<Server>,
    asker: Identity,
    socket: Arc<Socket>,
    mut receiver: Receiver,
) -> String {
    let serving = Arc::new(Serving::new(server, asker));
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
        // Bytes may have come together with the greeting.
        let mut arrived = self.drain(receiver);
        loop {
            if let Err(end) = arrived {
                return end;
            }
            let sender = &self.serving.sender;
            // Not only when the socket gets writable: bytes may arrive all the time.
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
                    None => Err(End::Broken(format!(
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
                Err(End::Broken("a message of the wrong side".to_owned()))
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
                return Err(End::Broken(format!("one call too many ({stream})")));
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
            return Err(End::Broken(format!("requests of {all} bytes without an answer")));
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
            // The thread of the call ends the answer, unless it has queued the end already and the end was withdrawn here.
            if outbox.withdraw(stream).had_end {
                outbox.failure(stream, Code::Cancelled, String::new());
            }
        });
    }
}
