//! Requests that do not hold a thread while they wait for the disk, or for an event.
//!
//! ```text
//! attempt(given: none) --reads a chunk that is not in memory--> Attempt::Waits(Waiting) --DiskReads--> Given
//! attempt(given: none) --calls `wait_for`--> Attempt::WaitsFor(Event) --its outcome--> Given
//! attempt(given)       --the same read takes its bytes from `given`, `outcome` takes that of the event--> Attempt::Done(result)
//! ```
//! A request that needs bytes from the disk, or an event, fails with an error that only [`attempt`] sees. It is executed again, from its
//! beginning, when the bytes were read, or the event has happened. So only a request that changes nothing before its last read may be
//! parked: a reader declares this by [`may_park`]. A request waits for at most one event, and before its first read. If the event is the
//! change that the request makes, the next attempt must answer with its outcome, and not make the change again.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::io;
use std::sync::{Arc, mpsc};
use std::time::Instant;

use crate::account;
use crate::door::ReadFile;
use crate::request_io::RequestIo;
use crate::thread_flag::ThreadFlag;
use crate::{Error, Result};

/// A request that was parked this often waits on its thread. It reads many chunks, or memory is too short to keep them.
const ATTEMPTS_MAX: usize = 8;

/// The outcome of an attempt to execute a request.
#[derive(Debug)]
pub enum Attempt<T> {
    /// The request was executed.
    Done(T),
    /// The request waits for bytes from the disk. The result of this execution is dropped.
    Waits(Waiting),
    /// The request waits for an event. The result of this execution is dropped.
    WaitsFor(Event),
}

/// What an attempt may wait for without its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parks {
    /// Events only: reads from the disk wait on the thread.
    Events,
    /// Events and reads from the disk.
    All,
}

/// What happened, for [`outcome`].
pub type Outcome = Box<dyn Any + Send>;

/// Begins what a request waits for. It calls back once, on any thread.
type Begin = Box<dyn FnOnce(Box<dyn FnOnce(Outcome) + Send>) + Send>;

/// An event that a request waits for; nothing has begun yet.
pub struct Event(Begin);

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an event")
    }
}

impl Event {
    /// Begins it, and calls back with what the next attempt is given.
    pub fn begin(self, done: impl FnOnce(Given) + Send + 'static) {
        let given = |outcome| Given {
            outcome: Some(outcome),
            ..Given::default()
        };
        (self.0)(Box::new(move |outcome| done(given(outcome))));
    }

    /// Waits for it on this thread. `Given` is empty if it never calls back: then the next attempt waits for it again.
    pub fn wait(self) -> Given {
        let (sender, receiver) = mpsc::channel();
        self.begin(move |given| drop(sender.send(given)));
        receiver.recv().unwrap_or_default()
    }
}

/// The bytes that a request waits for.
pub struct Waiting {
    pub(crate) file: Arc<dyn ReadFile>,
    pub(crate) offset: u64,
    pub(crate) len: usize,
    /// The bytes that the request was given in this attempt.
    given: Given,
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} bytes at {} of {}",
            self.len,
            self.offset,
            self.file.path().display()
        )
    }
}

/// What a request has waited for.
#[derive(Default)]
pub struct Given {
    reads: Vec<DoneRead>,
    outcome: Option<Outcome>,
}

/// Receives requests with the bytes that they waited for, several at once.
pub type OnRead<T> = Box<dyn Fn(Vec<(T, Given)>) + Send + Sync>;

impl std::fmt::Debug for Given {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} reads", self.reads.len())
    }
}

struct DoneRead {
    file: Arc<dyn ReadFile>,
    offset: u64,
    bytes: Result<Vec<u8>>,
    nanos: u64,
    is_charged: bool,
}

impl Waiting {
    /// Reads the bytes on this thread.
    pub fn read(self) -> Given {
        let began = Instant::now();
        let mut bytes = vec![0; self.len];
        let read = self.file.read_exact_at(self.offset, &mut bytes).map(|()| bytes);
        self.done(read, began)
    }

    pub(crate) fn done(self, bytes: Result<Vec<u8>>, began: Instant) -> Given {
        let mut given = self.given;
        given.reads.push(DoneRead {
            file: self.file,
            offset: self.offset,
            bytes,
            nanos: u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
            is_charged: false,
        });
        given
    }
}

thread_local! {
    /// What the current attempt may wait for without this thread.
    static PARKS: Cell<Option<Parks>> = const { Cell::new(None) };
    /// True if a reader has declared that its work may be executed again.
    static MAY_PARK: Cell<bool> = const { Cell::new(false) };
    static GIVEN: RefCell<Vec<DoneRead>> = const { RefCell::new(Vec::new()) };
    static OUTCOME: Cell<Option<Outcome>> = const { Cell::new(None) };
    static WAITING: RefCell<Option<Waiting>> = const { RefCell::new(None) };
    static EVENT: Cell<Option<Event>> = const { Cell::new(None) };
}

/// Executes a request. It may be parked where [`may_park`] allows that.
pub fn attempt<T>(given: Given, parks: Parks, execute: impl FnOnce() -> T) -> Attempt<T> {
    let is_last = given.reads.len() >= ATTEMPTS_MAX;
    GIVEN.set(given.reads);
    OUTCOME.set(given.outcome);
    PARKS.set(Some(parks).filter(|_| !is_last));
    let result = execute();
    PARKS.set(None);
    let given = Given {
        reads: GIVEN.take(),
        outcome: OUTCOME.take(),
    };
    if let Some(event) = EVENT.take() {
        return Attempt::WaitsFor(event);
    }
    match WAITING.take() {
        Some(waiting) => Attempt::Waits(Waiting { given, ..waiting }),
        None => Attempt::Done(result),
    }
}

/// Ends the parking of this attempt: the request has begun something, such as a read of another node, that it would do again.
pub fn stay() {
    PARKS.set(None);
}

/// True if the request may be parked for an event: then the caller calls [`wait_for`], and fails.
pub fn may_wait() -> bool {
    let has_waited = with_outcome(|outcome| outcome.is_some()) || is_again();
    MAY_PARK.get() && PARKS.get().is_some() && !has_waited && !crate::trace::is_on()
}

/// Ends this attempt: the next one is executed when the event has happened. Requires [`may_wait`].
pub fn wait_for(begin: impl FnOnce(Box<dyn FnOnce(Outcome) + Send>) + Send + 'static) {
    EVENT.set(Some(Event(Box::new(begin))));
}

/// What came of the event that this request has waited for, if it did and this is its type. Every attempt after that gets it.
pub fn outcome<T: Clone + 'static>() -> Option<T> {
    with_outcome(|outcome| outcome.and_then(|outcome| outcome.downcast_ref().cloned()))
}

fn with_outcome<T>(look: impl FnOnce(Option<&Outcome>) -> T) -> T {
    let outcome = OUTCOME.take();
    let seen = look(outcome.as_ref());
    OUTCOME.set(outcome);
    seen
}

/// Declares that this thread's work may be executed again from its beginning, until the scope is dropped.
pub fn may_park() -> ThreadFlag {
    ThreadFlag::set(&MAY_PARK)
}

/// True if this thread executes a request again that has read before.
pub fn is_again() -> bool {
    GIVEN.with_borrow(|given| !given.is_empty())
}

/// Fills the buffer as [`ReadFile::read_exact_at`] does. If that would wait for the disk, and the request can be parked, an error
/// ends this attempt.
pub fn read_exact_at(file: &Arc<dyn ReadFile>, offset: u64, into: &mut [u8]) -> Result<()> {
    if !MAY_PARK.get() || crate::trace::is_on() {
        return file.read_exact_at(offset, into);
    }
    if let Some(read) = take_given(file, offset, into) {
        return read;
    }
    if PARKS.get() != Some(Parks::All) {
        return file.read_exact_at(offset, into);
    }
    // A request that already waits for bytes is ending: it will repeat its current reads later.
    let is_waiting = WAITING.with_borrow(Option::is_some);
    if !is_waiting {
        if file.read_at_once(offset, into)? {
            return Ok(());
        }
        WAITING.set(Some(Waiting {
            file: file.clone(),
            offset,
            len: into.len(),
            given: Given::default(),
        }));
    }
    Err(Error::new(
        "read at once",
        file.path(),
        io::ErrorKind::WouldBlock.into(),
    ))
}

fn take_given(file: &Arc<dyn ReadFile>, offset: u64, into: &mut [u8]) -> Option<Result<()>> {
    GIVEN.with_borrow_mut(|given| {
        let read = given.iter_mut().find(|read| {
            let len = read.bytes.as_ref().map_or(into.len(), Vec::len);
            Arc::ptr_eq(&read.file, file) && read.offset == offset && len == into.len()
        })?;
        if !std::mem::replace(&mut read.is_charged, true) {
            account::charge(RequestIo {
                reads: 1,
                bytes_read: into.len() as u64,
                read_nanos: read.nanos,
                ..RequestIo::NONE
            });
        }
        Some(match &read.bytes {
            Ok(bytes) => {
                into.copy_from_slice(bytes);
                Ok(())
            }
            Err(error) => Err(error.clone()),
        })
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Env, FaultEnv, MemEnv};

    /// A file of 100 bytes that are never in memory.
    fn cold_file() -> (Arc<FaultEnv>, Arc<dyn ReadFile>) {
        let env = FaultEnv::new(Arc::new(MemEnv::new(1)));
        let path = Path::new("/cold");
        let bytes: Vec<u8> = (0..100).collect();
        env.create(path).unwrap().append(&bytes).unwrap();
        env.add(r#"wait read "cold""#).unwrap();
        let file = env.open_read(path).unwrap();
        (env, file)
    }

    fn sum_of(file: &Arc<dyn ReadFile>, offsets: &[u64]) -> Result<u64> {
        let _may_park = may_park();
        offsets.iter().try_fold(0, |sum, offset| {
            let mut byte = [0];
            read_exact_at(file, *offset, &mut byte).map(|()| sum + u64::from(byte[0]))
        })
    }

    /// Executes until it is done; returns the number of attempts, too.
    fn until_done<T>(mut execute: impl FnMut() -> T) -> (T, usize) {
        let (mut given, mut attempts) = (Given::default(), 0);
        loop {
            attempts += 1;
            match attempt(given, Parks::All, &mut execute) {
                Attempt::Done(result) => return (result, attempts),
                Attempt::Waits(waiting) => given = waiting.read(),
                Attempt::WaitsFor(event) => given = event.wait(),
            }
        }
    }

    #[test]
    fn a_request_is_executed_again_with_the_bytes_it_waited_for() {
        let (_env, file) = cold_file();
        let (sum, attempts) = until_done(|| sum_of(&file, &[10, 20, 30]));
        assert_eq!((sum.unwrap(), attempts), (60, 4));
        let scope = account::begin();
        assert_eq!(until_done(|| sum_of(&file, &[5, 5, 5])).0.unwrap(), 15);
        let io = scope.finish();
        // `waiting.read()` counts one on this thread, as it would on that of `DiskReads`; the other is charged to the request.
        assert_eq!((io.reads, io.bytes_read), (2, 2));
    }

    #[test]
    fn a_request_that_reads_much_waits_with_its_thread() {
        let (_env, file) = cold_file();
        let offsets: Vec<u64> = (0..50).collect();
        let (sum, attempts) = until_done(|| sum_of(&file, &offsets));
        assert_eq!((sum.unwrap(), attempts), ((0..50).sum(), ATTEMPTS_MAX + 1));
    }

    #[test]
    fn what_may_not_be_executed_again_is_not_parked() {
        let (_env, file) = cold_file();
        let read = || {
            let mut byte = [0];
            read_exact_at(&file, 7, &mut byte).map(|()| byte[0])
        };
        assert_eq!(until_done(read).1, 1);
        assert_eq!(sum_of(&file, &[7]).unwrap(), 7, "outside of an attempt");
        crate::trace::begin();
        let (_, attempts) = until_done(|| sum_of(&file, &[7]));
        crate::trace::finish();
        assert_eq!(attempts, 1, "a trace shows each read");
    }

    #[test]
    fn a_request_that_has_begun_something_is_not_parked() {
        let (_env, file) = cold_file();
        let (_, attempts) = until_done(|| {
            stay();
            sum_of(&file, &[7, 8])
        });
        assert_eq!(attempts, 1);
    }

    #[test]
    fn the_error_of_a_read_is_that_of_the_request() {
        let (env, file) = cold_file();
        let (read, _) = until_done(|| sum_of(&file, &[1, 100]));
        assert!(read.unwrap_err().is_unexpected_end());
        env.add(r#"fail read "cold""#).unwrap();
        let (read, attempts) = until_done(|| sum_of(&file, &[1, 2]));
        assert_eq!(
            read.unwrap_err().source.kind(),
            io::Error::from_raw_os_error(5).kind()
        );
        assert_eq!(attempts, 2);
    }
    /// Waits for an event whose outcome is 7, and then reads.
    fn sum_after_event(file: &Arc<dyn ReadFile>, offsets: &[u64]) -> Result<u64> {
        let _may_park = may_park();
        let seven = match outcome::<u64>() {
            Some(seven) => seven,
            None if may_wait() => {
                wait_for(|done| done(Box::new(7_u64)));
                return Err(Error::new(
                    "wait",
                    Path::new("/"),
                    io::ErrorKind::WouldBlock.into(),
                ));
            }
            None => 0,
        };
        sum_of(file, offsets).map(|sum| sum + seven)
    }

    #[test]
    fn a_request_waits_for_one_event_and_then_for_the_disk() {
        let (_env, file) = cold_file();
        let (sum, attempts) = until_done(|| sum_after_event(&file, &[10, 20]));
        assert_eq!((sum.unwrap(), attempts), (37, 4));
        assert_eq!(
            sum_after_event(&file, &[10]).unwrap(),
            10,
            "outside of an attempt"
        );
        let only_events = attempt(Given::default(), Parks::Events, || sum_of(&file, &[10]));
        assert!(matches!(only_events, Attempt::Done(Ok(10))), "{only_events:?}");
        crate::trace::begin();
        let (_, attempts) = until_done(|| sum_after_event(&file, &[10]));
        crate::trace::finish();
        assert_eq!(attempts, 1, "a trace shows each wait");
    }
}
