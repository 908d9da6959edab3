//! [`Receiver`]: from the bytes of a socket to frames, and to messages.

use std::io;

use bytes::{Bytes, BytesMut};
use ilion_protocol::{Frame, FrameDecoder, FrameError, Limits, Recovery, Role};
use ilion_tls::Socket;

use crate::message::{BODY_BYTES_MAX, Message};

/// Room in the buffer for one read.
const READ_BYTES: usize = 64 << 10;
/// Bytes of a greeting, with what newer versions may add.
const GREETING_BYTES_MAX: u32 = 8 << 10;

/// See the module.
pub(crate) struct Receiver {
    decoder: FrameDecoder,
    buffer: BytesMut,
}

/// What a read found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Bytes were read.
    Bytes,
    /// No bytes have arrived yet.
    Nothing,
    /// The end: the peer has closed its side.
    End,
}

impl Receiver {
    /// A receiver for a connection that has not begun. `role` is the role of this side.
    pub fn new(role: Role) -> Self {
        let limits = Limits {
            max_frame_bytes: GREETING_BYTES_MAX,
        };
        Self {
            decoder: FrameDecoder::between_nodes(role, limits),
            buffer: BytesMut::new(),
        }
    }

    /// Expects segments with messages from now on.
    pub fn open(&mut self) {
        self.decoder.use_segments(None);
        self.decoder.set_limits(Limits {
            max_frame_bytes: BODY_BYTES_MAX,
        });
    }

    /// Reads what has arrived.
    pub fn read(&mut self, socket: &Socket) -> io::Result<Found> {
        self.buffer.reserve(READ_BYTES);
        match socket.try_read(&mut self.buffer) {
            Ok(0) => Ok(Found::End),
            Ok(_) => Ok(Found::Bytes),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Found::Nothing),
            Err(error) => Err(error),
        }
    }

    /// The next frame, if it has arrived. Any error ends a connection between nodes.
    pub fn frame(&mut self) -> Result<Option<Frame>, FrameError> {
        self.decoder.decode(&mut self.buffer)
    }

    /// The next message with its stream, if it has arrived.
    pub fn message(&mut self) -> Result<Option<(i16, Message)>, String> {
        let frame = match self.frame() {
            Ok(Some(frame)) => frame,
            Ok(None) => return Ok(None),
            Err(error) => return Err(damage(&error)),
        };
        let message = Message::decode(&frame.body)
            .map_err(|error| format!("a message that breaks the protocol between nodes: {error}"))?;
        Ok(Some((frame.stream, message)))
    }

    /// The first bytes that have arrived and are not decoded yet.
    pub fn peek(&self) -> &[u8] {
        &self.buffer
    }
}

fn damage(error: &FrameError) -> String {
    match error.recovery {
        Recovery::Continue => format!("a message that breaks the protocol between nodes: {error}"),
        Recovery::AnswerAndClose | Recovery::Close => format!("damaged bytes: {error}"),
    }
}

/// A payload that does not keep a large buffer alive for a few bytes.
pub(crate) fn own(payload: Bytes) -> Bytes {
    match payload.len() < READ_BYTES / 4 {
        true => Bytes::copy_from_slice(&payload),
        false => payload,
    }
}
