//! [`Incoming`]: the answer of one call as it arrives, and the thread that waits for it.
//!
//! Memory: of a streamed answer at most the window, one part and one piece are here. The node that answers sends only as much as it has
//! credit for. A part gives credit for its bytes when it is taken; while no complete part is here, bytes give credit on arrival. An
//! answer that is wanted whole gives credit for everything when it arrives; it is bounded by `part_bytes_max`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use ilion_env::handover;
use parking_lot::{Condvar, Mutex};

use crate::error::CallError;
use crate::message::Ends;
use crate::options::WINDOW_BYTES;
use crate::receiver::own;

/// Minimum credit that is worth a message, in bytes.
const CREDIT_MIN: u32 = WINDOW_BYTES / 4;

/// The bounds of what has arrived.
#[derive(Debug)]
pub(crate) struct Bounds {
    pub part_bytes_max: usize,
    pub all_bytes_max: usize,
    /// Bytes of all answers that have arrived and that nobody has taken yet.
    pub all_bytes: AtomicUsize,
}

/// How an answer is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Whole,
    Parts,
}

/// See the module.
pub(crate) struct Incoming {
    wanted: Wanted,
    bounds: Arc<Bounds>,
    progress: Mutex<Progress>,
    changed: Condvar,
}

#[derive(Default)]
struct Progress {
    /// Complete parts, with the bytes that no credit was given for.
    parts: VecDeque<(Bytes, u32)>,
    /// The part that is arriving.
    pieces: Vec<Bytes>,
    pieces_bytes: usize,
    /// Bytes of it that no credit was given for.
    pieces_owed: u32,
    /// Credit that is not sent yet.
    credit: u32,
    end: Option<Result<(), CallError>>,
    held_bytes: usize,
    /// See [`OnChange`].
    on_change: Option<OnChange>,
}

/// Called when a part is complete, and when the answer ends, under the lock of the answer: it must not call the answer.
pub(crate) type OnChange = Box<dyn Fn() + Send>;

/// What [`Incoming::next`] found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A part, and the credit to send; 0: none.
    Part(Bytes, u32),
    /// The answer ended.
    End(Result<(), CallError>),
    /// The deadline has passed.
    TimedOut,
}

impl Incoming {
    pub fn new(wanted: Wanted, bounds: Arc<Bounds>) -> Self {
        Self {
            wanted,
            bounds,
            progress: Mutex::new(Progress::default()),
            changed: Condvar::new(),
        }
    }

    /// Adds a piece. Returns the credit to send; 0: none.
    ///
    /// # Errors
    /// The answer is too large: the call has failed, and the rest of the answer is not wanted.
    pub fn add(&self, ends: Ends, payload: Bytes) -> Result<u32, ()> {
        let mut progress = self.progress.lock();
        if progress.end.is_some() {
            return Ok(0);
        }
        let size = payload.len();
        let all = self.bounds.all_bytes.fetch_add(size, Relaxed) + size;
        progress.held_bytes += size;
        let is_large = progress.pieces_bytes + size > self.bounds.part_bytes_max;
        if is_large || all > self.bounds.all_bytes_max {
            let reason = match is_large {
                true => format!("its answer has more than {} bytes", self.bounds.part_bytes_max),
                false => "the answers of other nodes that have arrived take too much memory".to_owned(),
            };
            self.finish(&mut progress, Err(CallError::Failed(reason)));
            return Err(());
        }
        progress.pieces_bytes += size;
        progress.pieces_owed += u32::try_from(size).unwrap_or(u32::MAX);
        if size > 0 {
            progress.pieces.push(own(payload));
        }
        if self.wanted == Wanted::Whole || progress.parts.is_empty() {
            progress.credit += std::mem::take(&mut progress.pieces_owed);
        }
        let is_complete = match self.wanted {
            Wanted::Whole => ends.all,
            Wanted::Parts => ends.part,
        };
        if is_complete {
            let owed = std::mem::take(&mut progress.pieces_owed);
            let part = progress.take_pieces();
            progress.parts.push_back((part, owed));
            self.tell(&progress);
        }
        if ends.all {
            progress.end = Some(Ok(()));
            self.tell(&progress);
            return Ok(0);
        }
        Ok(progress.take_credit())
    }

    /// Ends the call with an error, unless it has ended.
    pub fn fail(&self, error: CallError) {
        let mut progress = self.progress.lock();
        if progress.end.is_none() {
            self.finish(&mut progress, Err(error));
        }
    }

    fn finish(&self, progress: &mut Progress, end: Result<(), CallError>) {
        progress.pieces = Vec::new();
        progress.pieces_bytes = 0;
        progress.end = Some(end);
        self.tell(progress);
    }

    fn tell(&self, progress: &Progress) {
        self.changed.notify_all();
        if let Some(on_change) = &progress.on_change {
            on_change();
        }
    }

    /// Sets a function that is called when a part is complete, and when the answer ends.
    pub fn on_change(&self, on_change: OnChange) {
        self.progress.lock().on_change = Some(on_change);
    }

    /// True if [`Self::next`] returns at once.
    pub fn is_ready(&self) -> bool {
        let progress = self.progress.lock();
        !progress.parts.is_empty() || progress.end.is_some()
    }

    /// Waits for the next part, or for the end.
    pub fn next(&self, until: Option<Instant>) -> Next {
        if !self.is_ready() {
            handover::before_wait();
        }
        let mut progress = self.progress.lock();
        loop {
            if let Some((part, owed)) = progress.parts.pop_front() {
                self.bounds.all_bytes.fetch_sub(part.len(), Relaxed);
                progress.held_bytes -= part.len();
                progress.credit += owed;
                if progress.parts.is_empty() {
                    progress.credit += std::mem::take(&mut progress.pieces_owed);
                }
                let credit = match progress.end {
                    None => progress.take_credit(),
                    Some(_) => 0,
                };
                return Next::Part(part, credit);
            }
            if let Some(end) = &progress.end {
                return Next::End(end.clone());
            }
            match until {
                None => self.changed.wait(&mut progress),
                Some(until) => {
                    if self.changed.wait_until(&mut progress, until).timed_out()
                        && progress.parts.is_empty()
                        && progress.end.is_none()
                    {
                        return Next::TimedOut;
                    }
                }
            }
        }
    }

    /// True if nothing more will arrive.
    pub fn has_ended(&self) -> bool {
        self.progress.lock().end.is_some()
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        let held = self.progress.get_mut().held_bytes;
        self.bounds.all_bytes.fetch_sub(held, Relaxed);
    }
}

impl Progress {
    fn take_credit(&mut self) -> u32 {
        match self.credit >= CREDIT_MIN {
            true => std::mem::take(&mut self.credit),
            false => 0,
        }
    }

    fn take_pieces(&mut self) -> Bytes {
        let pieces = std::mem::take(&mut self.pieces);
        let size = std::mem::take(&mut self.pieces_bytes);
        match <[Bytes; 1]>::try_from(pieces) {
            Ok([only]) => only,
            Err(pieces) => {
                let mut part = BytesMut::with_capacity(size);
                pieces.iter().for_each(|piece| part.extend_from_slice(piece));
                part.freeze()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECE: usize = 64 << 10;
    const ENDS_PART: Ends = Ends {
        part: true,
        all: false,
    };

    fn bounds() -> Arc<Bounds> {
        Arc::new(Bounds {
            part_bytes_max: 3 * PIECE,
            all_bytes_max: 40 * PIECE,
            all_bytes: AtomicUsize::new(0),
        })
    }

    fn piece() -> Bytes {
        vec![7; PIECE].into()
    }

    #[test]
    fn parts_come_out_as_they_went_in() {
        let bounds = bounds();
        let incoming = Incoming::new(Wanted::Parts, bounds.clone());
        incoming.add(Ends::NOTHING, piece()).unwrap();
        incoming.add(ENDS_PART, Bytes::from_static(b"end")).unwrap();
        incoming.add(ENDS_PART, Bytes::new()).unwrap();
        incoming.add(Ends::ALL, Bytes::from_static(b"last")).unwrap();
        let mut sizes = Vec::new();
        while let Next::Part(part, _) = incoming.next(None) {
            sizes.push(part.len());
        }
        assert_eq!(sizes, [PIECE + 3, 0, 4]);
        assert_eq!(incoming.next(None), Next::End(Ok(())));
        assert_eq!(bounds.all_bytes.load(Relaxed), 0);
    }

    /// Credit in all, as long as the reader takes nothing, and after it has taken everything.
    #[test]
    fn a_reader_that_takes_nothing_gives_no_credit_beyond_one_part() {
        let incoming = Incoming::new(Wanted::Parts, bounds());
        let count = 2 * WINDOW_BYTES as usize / PIECE;
        let mut credit = 0;
        for _ in 0..count {
            credit += incoming.add(ENDS_PART, piece()).unwrap();
        }
        assert_eq!(credit, 0, "one part is below the least credit");
        for _ in 0..count {
            let Next::Part(_, given) = incoming.next(None) else {
                panic!("a part is there");
            };
            credit += given;
        }
        assert!(credit > 2 * WINDOW_BYTES - CREDIT_MIN, "{credit}");
    }

    #[test]
    fn pieces_of_a_part_that_is_larger_than_the_window_give_credit() {
        let bounds = Arc::new(Bounds {
            part_bytes_max: usize::MAX,
            all_bytes_max: usize::MAX,
            all_bytes: AtomicUsize::new(0),
        });
        let incoming = Incoming::new(Wanted::Parts, bounds);
        let mut credit = 0;
        for _ in 0..2 * WINDOW_BYTES as usize / PIECE {
            credit += incoming.add(Ends::NOTHING, piece()).unwrap();
        }
        assert_eq!(credit, 2 * WINDOW_BYTES);
    }

    #[test]
    fn an_answer_that_is_too_large_fails_and_leaves_no_memory() {
        let bounds = bounds();
        let incoming = Incoming::new(Wanted::Whole, bounds.clone());
        for _ in 0..3 {
            incoming.add(Ends::NOTHING, piece()).unwrap();
        }
        assert!(incoming.add(Ends::NOTHING, piece()).is_err());
        assert!(matches!(
            incoming.next(None),
            Next::End(Err(CallError::Failed(_)))
        ));
        drop(incoming);
        assert_eq!(bounds.all_bytes.load(Relaxed), 0);
        let many: Vec<_> = (0..20)
            .map(|_| Incoming::new(Wanted::Whole, bounds.clone()))
            .collect();
        let failed = many
            .iter()
            .filter(|one| (0..3).any(|_| one.add(Ends::NOTHING, piece()).is_err()));
        assert!(failed.count() > 5, "there is room for 13 of 20");
        drop(many);
        assert_eq!(bounds.all_bytes.load(Relaxed), 0);
    }

    #[test]
    fn a_wait_ends_when_its_time_is_over() {
        let incoming = Incoming::new(Wanted::Whole, bounds());
        assert_eq!(incoming.next(Some(Instant::now())), Next::TimedOut);
        incoming.fail(CallError::TimedOut);
        assert!(incoming.has_ended());
        assert_eq!(incoming.next(None), Next::End(Err(CallError::TimedOut)));
    }
}
