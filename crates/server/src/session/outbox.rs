//! Answers that are not sent yet, and requests that wait until the client reads them.
//!
//! Invariants: bytes are sent in the order of `deliver`. Parked work is always resumed: it is parked either while bytes are
//! queued, and then the sender of these bytes resumes it; or while memory is short, and then the connection's task is woken to
//! resume it.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use ilion_codec::Rope;
use ilion_tls::{Socket, TlsFacts};

use super::Work;
use crate::answer_times::AnswerTimes;

/// Most chunks of one system call.
const CHUNKS_PER_WRITE: usize = 64;

/// The queue of bytes to send.
#[derive(Default)]
pub(super) struct Outbox {
    /// `None` when the connection is closed.
    stream: Option<Arc<Socket>>,
    chunks: VecDeque<Chunk>,
    /// Number of bytes of the first chunk that are already sent.
    sent: usize,
    queued_bytes: usize,
    /// Bytes sent since the connection was opened.
    left_bytes: u64,
    /// Times of answers whose first byte is not sent yet, with the offset of that byte since the connection was opened.
    times: VecDeque<(u64, AnswerTimes)>,
    /// Whether the socket was full at the last attempt.
    is_stuck: bool,
    parked: Vec<Work>,
}

/// A contiguous piece of bytes.
enum Chunk {
    Own(Vec<u8>),
    /// A slice of a larger buffer.
    Shared(Bytes),
}

impl Deref for Chunk {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

/// The outcome of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remainder {
    /// All bytes are sent.
    Nothing,
    /// The socket is full; wait until it is writable.
    Waiting,
}

impl Outbox {
    pub fn new(stream: Arc<Socket>) -> Self {
        Self {
            stream: Some(stream),
            ..Self::default()
        }
    }

    pub fn tls_facts(&self) -> Option<TlsFacts> {
        self.stream.as_ref()?.tls_facts()
    }

    pub fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    /// True if the socket was not full at the last attempt: then it will probably take all bytes at once.
    pub fn takes_all(&self) -> bool {
        !self.is_stuck
    }

    /// Drops the socket and all queued bytes.
    pub fn close(&mut self) {
        self.tell_leaving(u64::MAX);
        if let Some(stream) = &self.stream {
            stream.close();
        }
        *self = Self::default();
    }

    /// Queues bytes.
    pub fn push(&mut self, packed: Rope, times: Option<AnswerTimes>) {
        if self.stream.is_none() || packed.is_empty() {
            return times.map_or((), AnswerTimes::sent);
        }
        if let Some(times) = times {
            let place = self.left_bytes + self.queued_bytes as u64;
            self.times.push_back((place, times));
        }
        self.queued_bytes += packed.len();
        if packed.shared_len() == 0 {
            self.chunks.push_back(Chunk::Own(packed.into_vec()));
        } else {
            self.chunks
                .extend(packed.into_buffers().into_iter().map(Chunk::Shared));
        }
    }

    /// Sends queued bytes until the socket is full.
    pub fn send(&mut self) -> io::Result<Remainder> {
        while let (Some(stream), false) = (self.stream.clone(), self.chunks.is_empty()) {
            // A socket that is not full probably takes all bytes. Count before the write, so that a client that has read its answer finds
            // the request counted.
            if !self.is_stuck {
                self.tell_leaving(self.left_bytes + self.queued_bytes as u64);
            }
            let mut slices = [IoSlice::new(&[]); CHUNKS_PER_WRITE];
            let mut count = 0;
            for (slice, chunk) in slices.iter_mut().zip(&self.chunks) {
                let from = if count == 0 { self.sent } else { 0 };
                *slice = IoSlice::new(&chunk[from..]);
                count += 1;
            }
            match stream.try_write_vectored(&slices[..count]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(size) => self.take_sent(size),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.is_stuck = true;
                    return Ok(Remainder::Waiting);
                }
                Err(error) => return Err(error),
            }
        }
        match self.stream.as_ref().map_or(Ok(()), |stream| stream.flush()) {
            Ok(()) => Ok(Remainder::Nothing),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.is_stuck = true;
                Ok(Remainder::Waiting)
            }
            Err(error) => Err(error),
        }
    }

    /// Counts the times of answers whose first byte lies before this offset.
    fn tell_leaving(&mut self, place: u64) {
        while let Some((_, times)) = self.times.pop_front_if(|(first, _)| *first < place) {
            times.sent();
        }
    }

    fn take_sent(&mut self, size: usize) {
        self.queued_bytes -= size;
        self.sent += size;
        self.left_bytes += size as u64;
        self.is_stuck = false;
        self.tell_leaving(self.left_bytes);
        while let Some(first) = self.chunks.front()
            && self.sent >= first.len()
        {
            self.sent -= first.len();
            self.chunks.pop_front();
        }
    }

    /// Parks work if at least `queued_max` bytes are queued. Otherwise returns the work as an error.
    pub fn park(&mut self, work: Vec<Work>, queued_max: usize) -> Result<(), Vec<Work>> {
        if self.queued_bytes < queued_max {
            return Err(work);
        }
        self.parked.extend(work);
        Ok(())
    }

    /// True if work is parked.
    pub fn has_parked(&self) -> bool {
        !self.parked.is_empty()
    }

    /// Takes the parked work if less than half of `queued_max` is queued.
    pub fn unpark(&mut self, queued_max: usize) -> Vec<Work> {
        if self.queued_bytes >= queued_max.div_ceil(2) {
            return Vec::new();
        }
        std::mem::take(&mut self.parked)
    }
}
