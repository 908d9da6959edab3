//! [`Sender`]: the messages that are to be sent on a connection.
//!
//! Requests and answers of different calls take turns, one piece each, so that a large one does not keep small ones waiting. The messages
//! of one call stay in their order. Signs of life, credits and cancellations go first.
//!
//! A thread that adds a message sends as much as the socket takes, and wakes the task of the connection for the rest.
//!
//! Invariant: no call blocks. After an error, or [`Sender::close`], everything is dropped.

use std::collections::{HashMap, VecDeque};
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use bytes::Bytes;
use ilion_codec::Writer;
use ilion_protocol::{EnvelopeStart, Flags, Header, Opcode, Version, encode_segments};
use ilion_tls::Socket;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::message::{Begin, Code, Ends, Message, PIECE_BYTES_MAX};

/// Encoded bytes that wait for the socket; more are encoded when it has taken them.
const READY_BYTES: usize = 128 << 10;

/// See the module.
pub(crate) struct Sender {
    outbox: Mutex<Outbox>,
    /// Wakes the task of the connection.
    pub wake: Notify,
    /// The task waits until less is queued.
    wants_less: AtomicBool,
}

/// The messages that are queued, and the state of the socket.
pub(crate) struct Outbox {
    opcode: Opcode,
    /// `None` before the connection is open.
    socket: Option<Arc<Socket>>,
    urgent: VecDeque<(i16, Message)>,
    calls: HashMap<i16, VecDeque<Item>>,
    /// The calls with items, in the order of their turns.
    turns: VecDeque<i16>,
    /// Payloads of the items.
    queued_bytes: usize,
    ready: Vec<u8>,
    /// Bytes of `ready` that are sent.
    sent: usize,
    /// The socket was full at the last attempt.
    is_stuck: bool,
    /// When the socket last took bytes, or had none to take.
    moved: Instant,
    end: Option<String>,
}

/// A part of what a call sends.
enum Item {
    Payload {
        /// The head of a request, before its first piece.
        head: Option<Begin>,
        payload: Bytes,
        /// What the last piece ends.
        ends: Ends,
    },
    Failure {
        code: Code,
        reason: String,
    },
}

impl Item {
    fn is_last(&self) -> bool {
        match self {
            Self::Payload { ends, .. } => ends.all,
            Self::Failure { .. } => true,
        }
    }

    fn size_bytes(&self) -> usize {
        match self {
            Self::Payload { payload, .. } => payload.len(),
            Self::Failure { .. } => 0,
        }
    }
}

/// What was still queued of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Withdrawn {
    /// True if no part of it was encoded before.
    pub was_whole: bool,
    /// True if its end was still queued.
    pub had_end: bool,
}

impl Outbox {
    /// Adds a message that goes before all others.
    pub fn urgent(&mut self, stream: i16, message: Message) {
        if self.end.is_none() {
            self.urgent.push_back((stream, message));
        }
    }

    /// Adds a request.
    pub fn request(&mut self, stream: i16, head: Begin, payload: Bytes) {
        let ends = Ends::ALL;
        let head = Some(head);
        self.push(stream, Item::Payload { head, payload, ends });
    }

    /// Adds a part of an answer, or a piece of a part.
    pub fn answer(&mut self, stream: i16, payload: Bytes, ends: Ends) {
        let head = None;
        self.push(stream, Item::Payload { head, payload, ends });
    }

    /// Ends an answer with a failure.
    pub fn failure(&mut self, stream: i16, code: Code, reason: String) {
        self.push(stream, Item::Failure { code, reason });
    }

    fn push(&mut self, stream: i16, item: Item) {
        if self.end.is_some() {
            return;
        }
        self.queued_bytes += item.size_bytes();
        let items = self.calls.entry(stream).or_default();
        items.push_back(item);
        if items.len() == 1 {
            self.turns.push_back(stream);
        }
    }

    /// Drops what is queued of a call.
    pub fn withdraw(&mut self, stream: i16) -> Withdrawn {
        let items = self.calls.remove(&stream).unwrap_or_default();
        self.turns.retain(|turn| *turn != stream);
        self.queued_bytes -= items.iter().map(Item::size_bytes).sum::<usize>();
        let is_head = |item: &Item| matches!(item, Item::Payload { head: Some(_), .. });
        Withdrawn {
            was_whole: items.front().is_some_and(is_head),
            had_end: items.iter().any(Item::is_last),
        }
    }

    /// Takes the next message of the calls.
    fn next_piece(&mut self) -> Option<(i16, Message)> {
        let stream = self.turns.pop_front()?;
        let items = self.calls.get_mut(&stream)?;
        let message = match items.front_mut()? {
            Item::Payload { head, payload, ends } => {
                let piece = payload.split_to(payload.len().min(PIECE_BYTES_MAX));
                self.queued_bytes -= piece.len();
                let ends = match payload.is_empty() {
                    true => *ends,
                    false => Ends::NOTHING,
                };
                let is_request = self.opcode == Opcode::NodeRequest;
                match head.take() {
                    Some(head) => Message::Begin {
                        head,
                        ends,
                        payload: piece,
                    },
                    None if is_request => Message::More { ends, payload: piece },
                    None => Message::Piece { ends, payload: piece },
                }
            }
            Item::Failure { code, reason } => Message::Failure {
                code: *code,
                reason: std::mem::take(reason),
            },
        };
        if items.front().is_some_and(|item| item.size_bytes() == 0) {
            items.pop_front();
        }
        match items.is_empty() {
            true => drop(self.calls.remove(&stream)),
            false => self.turns.push_back(stream),
        }
        Some((stream, message))
    }

    /// Encodes messages while there is room.
    fn fill(&mut self) -> Result<(), String> {
        if self.sent < self.ready.len() {
            return Ok(());
        }
        self.ready.clear();
        self.sent = 0;
        let mut envelopes = Vec::new();
        while envelopes.len() < READY_BYTES {
            let next = self.urgent.pop_front();
            let Some((stream, message)) = next.or_else(|| self.next_piece()) else {
                break;
            };
            append_envelope(&mut envelopes, self.opcode, stream, |out| message.encode(out))?;
        }
        encode_segments(&envelopes, None, &mut self.ready);
        Ok(())
    }

    /// Sends until the socket is full, or nothing is left.
    fn send(&mut self) -> Result<(), String> {
        let Some(socket) = self.socket.clone() else {
            return Ok(());
        };
        let is_full = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
        self.is_stuck = false;
        loop {
            self.fill()?;
            if self.ready.is_empty() {
                break;
            }
            match socket.try_write_vectored(&[IoSlice::new(&self.ready[self.sent..])]) {
                Ok(0) => return Err("the connection is closed".to_owned()),
                Ok(count) => {
                    self.sent += count;
                    self.moved = Instant::now();
                }
                Err(error) if is_full(&error) => {
                    self.is_stuck = true;
                    return Ok(());
                }
                Err(error) => return Err(error.to_string()),
            }
        }
        match socket.flush() {
            Ok(()) => {
                self.moved = Instant::now();
                Ok(())
            }
            Err(error) if is_full(&error) => {
                self.is_stuck = true;
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    fn drop_all(&mut self, reason: &str) {
        if self.end.is_none() {
            self.end = Some(reason.to_owned());
        }
        self.urgent.clear();
        self.calls.clear();
        self.turns.clear();
        self.queued_bytes = 0;
    }
}

impl Sender {
    /// A queue without a socket. The opcode is that of the side that sends.
    pub fn new(opcode: Opcode) -> Self {
        Self {
            outbox: Mutex::new(Outbox {
                opcode,
                socket: None,
                urgent: VecDeque::new(),
                calls: HashMap::new(),
                turns: VecDeque::new(),
                queued_bytes: 0,
                ready: Vec::new(),
                sent: 0,
                is_stuck: false,
                moved: Instant::now(),
                end: None,
            }),
            wake: Notify::new(),
            wants_less: AtomicBool::new(false),
        }
    }

    /// Sends on this socket from now on.
    pub fn open(&self, socket: Arc<Socket>) {
        self.post(|outbox| {
            outbox.socket = Some(socket);
            outbox.moved = Instant::now();
        });
    }

    /// Lets `act` add messages, and sends what the socket takes.
    pub fn post<T>(&self, act: impl FnOnce(&mut Outbox) -> T) -> T {
        let mut outbox = self.outbox.lock();
        let was_stuck = outbox.is_stuck;
        let result = act(&mut outbox);
        if was_stuck {
            return result;
        }
        if let Err(reason) = outbox.send() {
            outbox.drop_all(&reason);
        }
        let is_less = outbox.queued_bytes == 0 && self.wants_less.swap(false, Relaxed);
        if outbox.is_stuck || outbox.end.is_some() || is_less {
            self.wake.notify_one();
        }
        result
    }

    /// Sends what is left, after the socket had room again. For the task of the connection.
    pub fn flush(&self) {
        let mut outbox = self.outbox.lock();
        if let Err(reason) = outbox.send() {
            outbox.drop_all(&reason);
        }
    }

    /// True if the socket is full, and bytes wait.
    pub fn is_stuck(&self) -> bool {
        self.outbox.lock().is_stuck
    }

    /// Since when the socket takes no bytes, although some wait.
    pub fn stuck_since(&self) -> Option<Instant> {
        let outbox = self.outbox.lock();
        outbox.is_stuck.then_some(outbox.moved)
    }

    /// Bytes of the queued payloads.
    pub fn queued_bytes(&self) -> usize {
        let outbox = self.outbox.lock();
        outbox.queued_bytes + outbox.ready.len() - outbox.sent
    }

    /// Wakes the task when the queue is empty; at once if it is.
    pub fn wake_when_empty(&self) {
        // Under the lock, so that the thread that empties the queue afterwards sees the flag.
        let outbox = self.outbox.lock();
        match outbox.queued_bytes {
            0 => self.wake.notify_one(),
            _ => self.wants_less.store(true, Relaxed),
        }
    }

    /// Why nothing is sent any more; `None` while the connection works.
    pub fn end(&self) -> Option<String> {
        self.outbox.lock().end.clone()
    }

    /// Drops everything, tells the peer why if there is room, and closes the socket.
    pub fn close(&self, reason: &str, tells: bool) {
        let mut outbox = self.outbox.lock();
        outbox.drop_all(reason);
        if tells {
            let message = Message::Goodbye {
                reason: reason.to_owned(),
            };
            outbox.urgent.push_back((0, message));
            // If the socket is full, the peer sees the end of the connection without the reason.
            let _ = outbox.send();
        }
        if let Some(socket) = outbox.socket.take() {
            socket.close();
        }
    }
}

/// Appends an envelope of v5.
pub(crate) fn append_envelope(
    out: &mut Vec<u8>,
    opcode: Opcode,
    stream: i16,
    encode: impl FnOnce(&mut Writer),
) -> Result<(), String> {
    let header = Header {
        version: Version::V5,
        flags: Flags::default(),
        stream,
        opcode,
    };
    let start = EnvelopeStart::begin(out, header);
    let mut writer = Writer::from_vec(std::mem::take(out));
    encode(&mut writer);
    *out = writer.into_vec();
    start.finish(out, None).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outbox(opcode: Opcode) -> Sender {
        Sender::new(opcode)
    }

    fn drain(sender: &Sender) -> Vec<(i16, Message)> {
        let mut outbox = sender.outbox.lock();
        std::iter::from_fn(|| outbox.urgent.pop_front().or_else(|| outbox.next_piece())).collect()
    }

    fn piece(message: &Message) -> Option<(usize, Ends)> {
        match message {
            Message::Piece { ends, payload } => Some((payload.len(), *ends)),
            _ => None,
        }
    }

    #[test]
    fn a_small_answer_does_not_wait_for_a_large_one() {
        let sender = outbox(Opcode::NodeAnswer);
        let large = Bytes::from(vec![7; 3 * PIECE_BYTES_MAX]);
        sender.post(|outbox| {
            outbox.answer(1, large, Ends::ALL);
            outbox.answer(2, Bytes::from_static(b"small"), Ends::ALL);
            outbox.urgent(0, Message::Pong { number: 3 });
        });
        let sent = drain(&sender);
        let order: Vec<i16> = sent.iter().map(|(stream, _)| *stream).collect();
        assert_eq!(order, [0, 1, 2, 1, 1]);
        assert_eq!(piece(&sent[1].1), Some((PIECE_BYTES_MAX, Ends::NOTHING)));
        assert_eq!(piece(&sent[2].1), Some((5, Ends::ALL)));
        assert_eq!(piece(&sent[4].1), Some((PIECE_BYTES_MAX, Ends::ALL)));
        assert_eq!(sender.queued_bytes(), 0);
    }

    #[test]
    fn messages_of_a_call_stay_in_order() {
        let sender = outbox(Opcode::NodeAnswer);
        let part = |byte| Bytes::from(vec![byte; PIECE_BYTES_MAX + 1]);
        let ends_part = Ends {
            part: true,
            all: false,
        };
        sender.post(|outbox| {
            outbox.answer(1, part(1), ends_part);
            outbox.answer(1, part(2), ends_part);
            outbox.failure(1, Code::Failed, "a disk failed".to_owned());
        });
        let sent: Vec<_> = drain(&sender).into_iter().map(|(_, message)| message).collect();
        let pieces: Vec<_> = sent.iter().filter_map(piece).collect();
        let (whole, rest) = ((PIECE_BYTES_MAX, Ends::NOTHING), (1, ends_part));
        assert_eq!(pieces, [whole, rest, whole, rest]);
        assert!(matches!(sent.last(), Some(Message::Failure { .. })));
    }

    #[test]
    fn what_is_withdrawn_is_not_sent() {
        let sender = outbox(Opcode::NodeRequest);
        let head = Begin {
            kind: crate::Kind::READ,
            lane: crate::Lane::Point,
            time_left_micros: 1,
            window: 1,
        };
        let whole = sender.post(|outbox| {
            outbox.request(1, head, Bytes::from_static(b"read"));
            outbox.withdraw(1)
        });
        assert!(whole.was_whole && whole.had_end);
        assert_eq!(drain(&sender), []);
        sender.post(|outbox| outbox.request(2, head, Bytes::from(vec![0; PIECE_BYTES_MAX + 1])));
        let begun = sender.outbox.lock().next_piece();
        assert!(matches!(begun, Some((2, Message::Begin { .. }))));
        let rest = sender.post(|outbox| outbox.withdraw(2));
        assert!(!rest.was_whole && rest.had_end);
        assert_eq!(sender.queued_bytes(), 0);
        let none = sender.post(|outbox| outbox.withdraw(3));
        assert!(!none.was_whole && !none.had_end);
    }

    #[test]
    fn an_empty_request_or_answer_is_one_message() {
        let sender = outbox(Opcode::NodeAnswer);
        sender.post(|outbox| outbox.answer(1, Bytes::new(), Ends::ALL));
        let sent = drain(&sender);
        assert_eq!(sent.len(), 1);
        assert_eq!(piece(&sent[0].1), Some((0, Ends::ALL)));
    }
}
