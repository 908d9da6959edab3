//! [`Calls`]: the calls of one connection that have no answer yet, by the streams of their envelopes.
//!
//! A stream is free again when the other node has ended its answer, also if nobody waits for it any more. So a late answer never reaches
//! another call.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use crate::error::CallError;
use crate::incoming::Incoming;
use crate::message::{Code, Ends};
use crate::options::{CALLS_MAX, REQUESTS_BYTES_MAX};

/// See the module.
#[derive(Default)]
pub(crate) struct Calls {
    slots: Vec<Option<Slot>>,
    free: Vec<i16>,
    requests_bytes: usize,
    open: usize,
    /// Since when at least one call is open; `None` without calls.
    busy_since: Option<Instant>,
    /// Why no more calls are taken; `None` while they are.
    end: Option<CallError>,
}

struct Slot {
    /// `None`: nobody waits any more.
    incoming: Option<Arc<Incoming>>,
    request_bytes: usize,
}

/// What the caller must send after a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    Nothing,
    /// Send this credit.
    Credit(u32),
    /// Tell the node that the rest is not wanted.
    Cancel,
}

impl Calls {
    /// Takes a stream for a call.
    pub fn begin(&mut self, incoming: Arc<Incoming>, request_bytes: usize) -> Result<i16, CallError> {
        if let Some(end) = &self.end {
            return Err(end.clone());
        }
        if self.open >= CALLS_MAX || self.requests_bytes + request_bytes > REQUESTS_BYTES_MAX {
            return Err(CallError::Refused(format!(
                "{} calls with {} bytes have no answer yet; this is too much for one more with {request_bytes} bytes",
                self.open, self.requests_bytes
            )));
        }
        let stream = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            // Cannot fail: the number is below `CALLS_MAX`.
            i16::try_from(self.slots.len() - 1).unwrap_or(i16::MAX)
        });
        if let Some(slot) = self.slot(stream) {
            *slot = Some(Slot {
                incoming: Some(incoming),
                request_bytes,
            });
        }
        self.requests_bytes += request_bytes;
        self.open += 1;
        self.busy_since.get_or_insert_with(Instant::now);
        Ok(stream)
    }

    fn slot(&mut self, stream: i16) -> Option<&mut Option<Slot>> {
        self.slots.get_mut(usize::try_from(stream).ok()?)
    }

    /// Frees a stream.
    pub fn free(&mut self, stream: i16) {
        let Some(slot) = self.slot(stream).and_then(Option::take) else {
            return;
        };
        self.requests_bytes -= slot.request_bytes;
        self.open -= 1;
        self.free.push(stream);
        if self.open == 0 {
            self.busy_since = None;
        }
    }

    /// Notes that nobody waits for a call any more. Returns false if the stream belongs to another call by now.
    pub fn forget(&mut self, stream: i16, of: &Arc<Incoming>) -> bool {
        let Some(Some(slot)) = self.slot(stream) else {
            return false;
        };
        let is_same = slot
            .incoming
            .as_ref()
            .is_some_and(|incoming| Arc::ptr_eq(incoming, of));
        if is_same {
            slot.incoming = None;
        }
        is_same
    }

    /// True if the stream is still this call's.
    pub fn is_of(&self, stream: i16, incoming: &Arc<Incoming>) -> bool {
        let slot = usize::try_from(stream).ok().and_then(|at| self.slots.get(at));
        let of = slot.and_then(|slot| slot.as_ref()?.incoming.as_ref());
        of.is_some_and(|of| Arc::ptr_eq(of, incoming))
    }

    /// Passes a piece of an answer on.
    ///
    /// # Errors
    /// There is no such call: the other node breaks the protocol.
    pub fn receive(&mut self, stream: i16, ends: Ends, payload: Bytes) -> Result<Received, String> {
        let Some(Some(slot)) = self.slot(stream) else {
            return Err(format!("an answer to a call that there is not ({stream})"));
        };
        let received = match &slot.incoming {
            None => Received::Nothing,
            Some(incoming) => match incoming.add(ends, payload) {
                Ok(0) => Received::Nothing,
                Ok(credit) => Received::Credit(credit),
                Err(()) => {
                    slot.incoming = None;
                    Received::Cancel
                }
            },
        };
        if ends.all {
            self.free(stream);
            return Ok(Received::Nothing);
        }
        Ok(received)
    }

    /// Passes a failure on.
    ///
    /// # Errors
    /// There is no such call: the other node breaks the protocol.
    pub fn fail(&mut self, stream: i16, code: Code, reason: String) -> Result<(), String> {
        let Some(Some(slot)) = self.slot(stream) else {
            return Err(format!("a failure of a call that there is not ({stream})"));
        };
        if let Some(incoming) = &slot.incoming {
            incoming.fail(match code {
                Code::Refused | Code::Overloaded => CallError::Refused(reason),
                Code::TimedOut => CallError::TimedOut,
                Code::Failed | Code::Cancelled => CallError::Failed(reason),
            });
        }
        self.free(stream);
        Ok(())
    }

    /// Ends all calls, and refuses further ones.
    pub fn end(&mut self, error: &CallError) {
        self.end.get_or_insert_with(|| error.clone());
        for slot in self.slots.drain(..).flatten() {
            if let Some(incoming) = slot.incoming {
                incoming.fail(error.clone());
            }
        }
        (self.open, self.requests_bytes, self.busy_since) = (0, 0, None);
    }

    /// Since when at least one call is open, without a pause; `None` without calls.
    pub fn busy_since(&self) -> Option<Instant> {
        self.busy_since
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::incoming::{Bounds, Next, Wanted};

    fn incoming() -> Arc<Incoming> {
        let bounds = Bounds {
            part_bytes_max: 100,
            all_bytes_max: 100,
            all_bytes: AtomicUsize::new(0),
        };
        Arc::new(Incoming::new(Wanted::Whole, Arc::new(bounds)))
    }

    #[test]
    fn answers_find_their_calls_in_any_order() {
        let mut calls = Calls::default();
        let asked: Vec<_> = (0..3).map(|_| incoming()).collect();
        let streams: Vec<i16> = asked
            .iter()
            .map(|one| calls.begin(one.clone(), 10).unwrap())
            .collect();
        for at in [2, 0, 1] {
            let payload = vec![at as u8].into();
            calls.receive(streams[at], Ends::ALL, payload).unwrap();
        }
        for (at, one) in asked.iter().enumerate() {
            assert_eq!(one.next(None), Next::Part(vec![at as u8].into(), 0));
        }
        assert_eq!(calls.busy_since(), None);
        assert!(calls.receive(streams[0], Ends::ALL, Bytes::new()).is_err());
        assert!(calls.receive(-1, Ends::ALL, Bytes::new()).is_err());
        assert!(calls.fail(77, Code::Failed, String::new()).is_err());
    }

    #[test]
    fn a_late_answer_does_not_reach_another_call() {
        let mut calls = Calls::default();
        let (first, second) = (incoming(), incoming());
        let stream = calls.begin(first.clone(), 10).unwrap();
        assert!(!calls.forget(stream, &second), "it is not its call");
        assert!(calls.forget(stream, &first));
        let other = calls.begin(second.clone(), 10).unwrap();
        assert_ne!(stream, other, "its answer may still come");
        let late = calls.receive(stream, Ends::ALL, Bytes::from_static(b"late"));
        assert_eq!(late, Ok(Received::Nothing));
        assert!(!second.has_ended());
        assert_eq!(calls.begin(incoming(), 10), Ok(stream), "now it is free");
    }

    #[test]
    fn calls_and_their_bytes_are_bounded() {
        let mut calls = Calls::default();
        let all: Vec<_> = (0..CALLS_MAX)
            .map(|_| calls.begin(incoming(), 1).unwrap())
            .collect();
        assert!(matches!(calls.begin(incoming(), 1), Err(CallError::Refused(_))));
        all.into_iter().for_each(|stream| calls.free(stream));
        let large = calls.begin(incoming(), REQUESTS_BYTES_MAX).unwrap();
        assert!(matches!(calls.begin(incoming(), 1), Err(CallError::Refused(_))));
        calls.free(large);
        assert!(calls.begin(incoming(), 1).is_ok());
    }

    #[test]
    fn an_answer_that_is_too_large_is_cancelled_and_keeps_its_stream() {
        let mut calls = Calls::default();
        let asked = incoming();
        let stream = calls.begin(asked.clone(), 1).unwrap();
        let received = calls.receive(stream, Ends::NOTHING, vec![0; 101].into());
        assert_eq!(received, Ok(Received::Cancel));
        assert!(matches!(asked.next(None), Next::End(Err(CallError::Failed(_)))));
        assert_eq!(
            calls.receive(stream, Ends::NOTHING, Bytes::new()),
            Ok(Received::Nothing)
        );
        calls.fail(stream, Code::Cancelled, String::new()).unwrap();
        assert_eq!(calls.busy_since(), None);
    }

    #[test]
    fn all_calls_fail_with_their_connection() {
        let mut calls = Calls::default();
        let asked = incoming();
        calls.begin(asked.clone(), 1).unwrap();
        let broken = CallError::Unreachable("the connection broke".to_owned());
        calls.end(&broken);
        assert_eq!(asked.next(None), Next::End(Err(broken.clone())));
        assert_eq!(calls.begin(incoming(), 1), Err(broken));
    }
}
