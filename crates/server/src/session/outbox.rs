//! Answers on their way to a client, and the requests that wait until it reads them.
//!
//! Invariant: bytes leave in the order of `deliver`. Work is parked only while there are bytes to send, and whoever sends
//! them takes it up again, or while all clients hold too much, and then the connection's task is woken to look after it: nothing
//! is left behind.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use ilion_codec::Rope;
use tokio::net::TcpStream;

use super::Work;
use crate::answer_times::AnswerTimes;

/// Chunks that one system call sends.
const CHUNKS_PER_WRITE: usize = 64;

/// What waits to be sent. Held under a lock; the socket never blocks.
#[derive(Default)]
pub(super) struct Outbox {
    /// Gone when the connection is.
    stream: Option<Arc<TcpStream>>,
    chunks: VecDeque<Chunk>,
    /// Bytes of the first chunk that are sent already.
    sent: usize,
    queued_bytes: usize,
    /// Bytes that have left since the connection was opened.
    left_bytes: u64,
    /// Answers whose first byte has not left, by the place of that byte.
    times: VecDeque<(u64, AnswerTimes)>,
    /// The socket was full when it was last tried.
    is_stuck: bool,
    parked: Vec<Work>,
}

/// Bytes in one piece.
enum Chunk {
    Own(Vec<u8>),
    /// A part of something that may be larger.
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

/// What is left after bytes were added or sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remainder {
    /// Nothing.
    Nothing,
    /// The socket is full; wait until it is writable.
    Waiting,
}

impl Outbox {
    pub fn new(stream: Arc<TcpStream>) -> Self {
        Self {
            stream: Some(stream),
            ..Self::default()
        }
    }

    pub fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    /// True if the socket was not full when it was last tried: it takes all of what is sent now.
    pub fn takes_all(&self) -> bool {
        !self.is_stuck
    }

    /// Drops what was to be sent and everything to come.
    pub fn close(&mut self) {
        self.tell_leaving(u64::MAX);
        *self = Self::default();
    }

    /// Adds bytes to what is queued.
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

    /// Sends what is queued, as far as the socket takes it.
    pub fn send(&mut self) -> io::Result<Remainder> {
        while let (Some(stream), false) = (self.stream.clone(), self.chunks.is_empty()) {
            // A socket that is not full takes all of it at once. Told before, so that whoever reads the answer finds it counted.
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
        Ok(Remainder::Nothing)
    }

    /// Tells the times of answers whose first byte is before the place.
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

    /// Keeps work for later if the client has left this much unread; gives it back otherwise.
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

    /// The parked work, once the client has read enough.
    pub fn unpark(&mut self, queued_max: usize) -> Vec<Work> {
        if self.queued_bytes >= queued_max.div_ceil(2) {
            return Vec::new();
        }
        std::mem::take(&mut self.parked)
    }
}
