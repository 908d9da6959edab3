//! [`Message`]: what travels on an open connection. One message is the body of one envelope, whose stream is the number of the call.
//!
//! ```text
//! message := 0, flags, kind: u8, lane: u8, time_left_micros: u64, window: u32, payload     begin     of the side that connected
//!          | 1, flags, payload                                                             more      of the same
//!          | 2                                                                             cancel    of the same
//!          | 3, bytes: u32                                                                 credit    of the same
//!          | 4, flags, payload                                                             piece     of the other side
//!          | 5, code: u8, reason (UTF-8)                                                   failure   of the same
//!          | 6, number: u64                                                                ping      of the side that connected
//!          | 7, number: u64                                                                pong      of the other side
//!          | 8, reason (UTF-8)                                                             goodbye   of both
//! ```
//! Flags: 1 ends a part, 2 ends the request or the answer. Payloads have at most [`PIECE_BYTES_MAX`] bytes, so that a large answer does not
//! keep others from the wire. An answer is a sequence of parts; each part is one or several pieces.

use bytes::Bytes;
use ilion_codec::{Error, Reader, Writer};

use crate::kind::{Kind, Lane};

/// Maximum size of a payload in bytes.
pub(crate) const PIECE_BYTES_MAX: usize = 64 << 10;

/// Largest body of an envelope.
pub(crate) const BODY_BYTES_MAX: u32 = (64 << 10) + 64;

/// Longest reason that is sent, or read.
const REASON_BYTES_MAX: usize = 4096;

const ENDS_PART: u8 = 1;
const ENDS_ALL: u8 = 2;

/// Whether a piece ends a part, and the whole request or answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    /// A part ends with it.
    pub part: bool,
    /// The request or answer ends with it.
    pub all: bool,
}

/// The head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Begin {
    pub kind: Kind,
    pub lane: Lane,
    /// The node that asks gives up after this time; `u64::MAX`: never by itself.
    pub time_left_micros: u64,
    /// Bytes of a streamed answer that may be sent before the first credit.
    pub window: u32,
}

/// Why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Code {
    /// The node must not or cannot answer it; another one may.
    Refused = 0,
    /// The node has too much to do.
    Overloaded = 1,
    /// Its time was over.
    TimedOut = 2,
    /// It failed.
    Failed = 3,
    /// It was cancelled.
    Cancelled = 4,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Begin { head: Begin, ends: Ends, payload: Bytes },
    More { ends: Ends, payload: Bytes },
    Cancel,
    Credit { bytes: u32 },
    Piece { ends: Ends, payload: Bytes },
    Failure { code: Code, reason: String },
    Ping { number: u64 },
    Pong { number: u64 },
    Goodbye { reason: String },
}

impl Ends {
    pub const NOTHING: Self = Self {
        part: false,
        all: false,
    };
    pub const ALL: Self = Self {
        part: true,
        all: true,
    };

    fn encode(self, out: &mut Writer) {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        out.u8(flag(self.part, ENDS_PART) | flag(self.all, ENDS_ALL));
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, Error> {
        let flags = input.u8()?;
        if flags & !(ENDS_PART | ENDS_ALL) != 0 {
            return Err(input.error("known flags before this"));
        }
        Ok(Self {
            part: flags & ENDS_PART != 0,
            all: flags & ENDS_ALL != 0,
        })
    }
}

impl Begin {
    fn encode(&self, out: &mut Writer) {
        out.u8(self.kind.0);
        out.u8(self.lane as u8);
        out.u64(self.time_left_micros);
        out.u32(self.window);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, Error> {
        let kind = Kind(input.u8()?);
        let lane = Lane::of(input.u8()?).ok_or_else(|| input.error("a lane before this"))?;
        let time_left_micros = input.u64()?;
        let window = input.u32()?;
        Ok(Self {
            kind,
            lane,
            time_left_micros,
            window,
        })
    }
}

impl Code {
    fn of(number: u8) -> Option<Self> {
        [
            Self::Refused,
            Self::Overloaded,
            Self::TimedOut,
            Self::Failed,
            Self::Cancelled,
        ]
        .into_iter()
        .find(|code| *code as u8 == number)
    }
}

impl Message {
    /// Appends its bytes.
    pub fn encode(&self, out: &mut Writer) {
        match self {
            Self::Begin { head, ends, payload } => {
                out.u8(0);
                ends.encode(out);
                head.encode(out);
                out.bytes(payload);
            }
            Self::More { ends, payload } => {
                out.u8(1);
                ends.encode(out);
                out.bytes(payload);
            }
            Self::Cancel => out.u8(2),
            Self::Credit { bytes } => {
                out.u8(3);
                out.u32(*bytes);
            }
            Self::Piece { ends, payload } => {
                out.u8(4);
                ends.encode(out);
                out.bytes(payload);
            }
            Self::Failure { code, reason } => {
                out.u8(5);
                out.u8(*code as u8);
                out.bytes(shortened(reason));
            }
            Self::Ping { number } => {
                out.u8(6);
                out.u64(*number);
            }
            Self::Pong { number } => {
                out.u8(7);
                out.u64(*number);
            }
            Self::Goodbye { reason } => {
                out.u8(8);
                out.bytes(shortened(reason));
            }
        }
    }

    /// Reads the body of an envelope. Payloads are slices of it.
    pub fn decode(body: &Bytes) -> Result<Self, Error> {
        let mut input = Reader::new(body);
        let message = match input.u8()? {
            0 => {
                let ends = Ends::decode(&mut input)?;
                let head = Begin::decode(&mut input)?;
                let payload = payload(body, &mut input)?;
                Self::Begin { head, ends, payload }
            }
            1 => {
                let ends = Ends::decode(&mut input)?;
                let payload = payload(body, &mut input)?;
                Self::More { ends, payload }
            }
            2 => Self::Cancel,
            3 => Self::Credit { bytes: input.u32()? },
            4 => {
                let ends = Ends::decode(&mut input)?;
                let payload = payload(body, &mut input)?;
                Self::Piece { ends, payload }
            }
            5 => {
                let code = Code::of(input.u8()?);
                let code = code.ok_or_else(|| input.error("the code of a failure before this"))?;
                let reason = reason(&mut input)?;
                Self::Failure { code, reason }
            }
            6 => Self::Ping { number: input.u64()? },
            7 => Self::Pong { number: input.u64()? },
            8 => Self::Goodbye {
                reason: reason(&mut input)?,
            },
            _ => return Err(input.error("the kind of a message before this")),
        };
        match input.is_empty() {
            true => Ok(message),
            false => Err(input.error("the end of the message")),
        }
    }
}

fn payload(body: &Bytes, input: &mut Reader<'_>) -> Result<Bytes, Error> {
    let payload = body.slice(input.offset()..);
    input.skip(payload.len())?;
    match payload.len() <= PIECE_BYTES_MAX {
        true => Ok(payload),
        false => Err(input.error("a payload of at most 64 KiB before this")),
    }
}

fn reason(input: &mut Reader<'_>) -> Result<String, Error> {
    let text = input.take(input.remaining())?;
    match text.len() <= REASON_BYTES_MAX {
        true => Ok(String::from_utf8_lossy(text).into_owned()),
        false => Err(input.error("a reason of at most 4 KiB before this")),
    }
}

/// The start of a text that is too long.
fn shortened(reason: &str) -> &[u8] {
    let mut end = reason.len().min(REASON_BYTES_MAX);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    &reason.as_bytes()[..end]
}

#[cfg(test)]
mod tests {
    use ilion_env::Seeded;

    use super::*;

    fn random(dice: &mut Seeded) -> Message {
        let payload = |dice: &mut Seeded| {
            let len = if dice.one_in(20) {
                PIECE_BYTES_MAX as u64
            } else {
                dice.below(40)
            };
            (0..len).map(|_| dice.next_u64() as u8).collect::<Bytes>()
        };
        let ends = |dice: &mut Seeded| Ends {
            part: dice.one_in(2),
            all: dice.one_in(2),
        };
        match dice.below(9) {
            0 => Message::Begin {
                head: Begin {
                    kind: Kind(dice.next_u64() as u8),
                    lane: Lane::ALL[dice.below(Lane::ALL.len() as u64) as usize],
                    time_left_micros: dice.next_u64(),
                    window: dice.next_u64() as u32,
                },
                ends: ends(dice),
                payload: payload(dice),
            },
            1 => Message::More {
                ends: ends(dice),
                payload: payload(dice),
            },
            2 => Message::Cancel,
            3 => Message::Credit {
                bytes: dice.next_u64() as u32,
            },
            4 => Message::Piece {
                ends: ends(dice),
                payload: payload(dice),
            },
            5 => Message::Failure {
                code: Code::of(dice.below(5) as u8).unwrap(),
                reason: "it is full".to_owned(),
            },
            6 => Message::Ping {
                number: dice.next_u64(),
            },
            7 => Message::Pong {
                number: dice.next_u64(),
            },
            _ => Message::Goodbye {
                reason: "it ends".to_owned(),
            },
        }
    }

    fn encoded(message: &Message) -> Vec<u8> {
        let mut out = Writer::new();
        message.encode(&mut out);
        out.into_vec()
    }

    #[test]
    fn messages_survive_their_bytes() {
        let mut dice = Seeded::new(1);
        for _ in 0..2000 {
            let message = random(&mut dice);
            let bytes = encoded(&message);
            assert!(bytes.len() <= BODY_BYTES_MAX as usize);
            assert_eq!(Message::decode(&bytes.into()), Ok(message));
        }
    }

    #[test]
    fn hostile_bytes_are_a_message_or_an_error() {
        let (mut accepted, mut refused) = (0, 0);
        let mut dice = Seeded::new(2);
        for _ in 0..20_000 {
            let mut bytes = encoded(&random(&mut dice));
            match dice.below(3) {
                0 => bytes.truncate(dice.below(bytes.len() as u64 + 1) as usize),
                1 => bytes.extend_from_slice(&dice.next_u64().to_be_bytes()),
                _ => {
                    let at = dice.below(bytes.len() as u64) as usize;
                    bytes[at] ^= 1 << dice.below(8);
                }
            }
            match Message::decode(&bytes.into()) {
                Ok(message) => {
                    accepted += 1;
                    assert_eq!(Message::decode(&encoded(&message).into()), Ok(message));
                }
                Err(_) => refused += 1,
            }
        }
        assert!(accepted > 100 && refused > 100, "{accepted} {refused}");
    }

    #[test]
    fn payloads_and_reasons_have_an_end() {
        let mut piece = vec![4, 0];
        piece.resize(2 + PIECE_BYTES_MAX, 7);
        assert!(Message::decode(&piece.clone().into()).is_ok());
        piece.push(7);
        assert!(Message::decode(&piece.into()).is_err());
        let goodbye = Message::Goodbye {
            reason: "\u{e9}".repeat(REASON_BYTES_MAX),
        };
        let bytes = encoded(&goodbye);
        assert_eq!(bytes.len(), 1 + REASON_BYTES_MAX);
        assert!(Message::decode(&bytes.into()).is_ok());
    }
}
