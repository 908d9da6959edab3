//! The limits of a call: instructions, time, memory. And the law that makes them hold.
//!
//! Lua counts its instructions and calls [`Fuel`] every few of them; a function in Rust pays for its steps. Between two checks
//! of the clock the machine can do only a little work, because of two rules:
//! - One instruction of Lua, or one call of a function in C, goes through the memory of the machine at most once
//!   (`sandbox` leaves out or replaces functions that do more).
//! - The more memory a machine may have, the fewer instructions it runs between two checks: their product is at most
//!   [`WORK_UNWATCHED_BYTES`] ([`rungs`]).

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Largest product of the memory that a machine may have, in bytes, and the instructions that it runs between two checks of the clock.
pub(crate) const WORK_UNWATCHED_BYTES: usize = 32 << 20;
/// Steps of a function in Rust between two checks of the clock.
const STEPS_UNWATCHED: u32 = 256;
/// Largest number of Lua instructions between two checks of the clock.
const INSTRUCTIONS_UNWATCHED_MAX: usize = 128;
/// Memory of a call on the caller's thread.
const INLINE_MEMORY_BYTES: usize = 64 << 10;
const INLINE_INSTRUCTIONS: u32 = 10_000;
/// Memory of the first rung on a thread of its own; each further rung has four times as much.
const SECOND_MEMORY_BYTES: usize = 256 << 10;

/// The limits of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Lua instructions, and steps of the functions that they call.
    pub instructions: u32,
    /// Bytes of all values together.
    pub memory_bytes: usize,
    /// Running time.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            instructions: 50_000_000,
            memory_bytes: 16 << 20,
            time: Duration::from_millis(1500),
        }
    }
}

/// The limits of one attempt. A call that exceeds the limits of one rung is run again on the next rung.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rung {
    pub instructions: u32,
    pub memory_bytes: usize,
    /// Instructions of Lua between two checks of the clock.
    pub unwatched: u32,
    /// True if the attempt runs on a thread of its own, so that the caller need not wait beyond the deadline.
    pub is_apart: bool,
}

/// The rungs within `limits`, from the smallest to `limits` itself.
pub(crate) fn rungs(limits: &Limits) -> Vec<Rung> {
    let rung = |memory_bytes: usize, instructions, is_apart| Rung {
        instructions,
        memory_bytes,
        unwatched: unwatched(memory_bytes),
        is_apart,
    };
    let mut rungs = vec![rung(
        INLINE_MEMORY_BYTES.min(limits.memory_bytes),
        INLINE_INSTRUCTIONS.min(limits.instructions),
        false,
    )];
    let mut memory_bytes = SECOND_MEMORY_BYTES;
    while memory_bytes < limits.memory_bytes {
        rungs.push(rung(memory_bytes, limits.instructions, true));
        memory_bytes = memory_bytes.saturating_mul(4);
    }
    rungs.push(rung(limits.memory_bytes, limits.instructions, true));
    rungs
}

fn unwatched(memory_bytes: usize) -> u32 {
    let count = (WORK_UNWATCHED_BYTES / memory_bytes.max(1)).clamp(1, INSTRUCTIONS_UNWATCHED_MAX);
    u32::try_from(count).unwrap_or(1)
}

/// The limit that a call has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Spent {
    #[error("it took more than {0} instructions")]
    Instructions(u32),
    #[error("it ran longer than {0} ms")]
    Time(u64),
    #[error("it took more memory than it may")]
    Memory,
}

impl From<Spent> for mlua::Error {
    fn from(spent: Spent) -> Self {
        match spent {
            Spent::Memory => Self::MemoryError(Spent::Memory.to_string()),
            other => Self::external(other),
        }
    }
}

/// The limit that caused an error; `None` if the error has another cause.
pub(crate) fn spent_of(error: &mlua::Error) -> Option<Spent> {
    match error {
        mlua::Error::MemoryError(_) => Some(Spent::Memory),
        mlua::Error::CallbackError { cause, .. } => spent_of(cause),
        mlua::Error::ExternalError(external) => external.downcast_ref::<Spent>().copied(),
        _ => None,
    }
}

/// What is left of the limits of the running attempt. Only the thread that runs the machine changes it.
#[derive(Debug)]
pub(crate) struct Fuel {
    /// The instant from which all times of this value count.
    made: Instant,
    instructions_max: AtomicU32,
    instructions_left: AtomicI64,
    memory_bytes: AtomicUsize,
    /// Bytes of the attempt's result.
    returned_bytes: AtomicUsize,
    deadline_nanos: AtomicU64,
    /// The time limit in milliseconds, for the message.
    time_millis: AtomicU64,
    /// Steps since the last check of the clock.
    unwatched: AtomicU32,
    /// The largest number of steps that was ever paid for at once.
    #[cfg(test)]
    largest_payment: AtomicU32,
}

impl Fuel {
    /// Fuel for no work at all, until the first [`Self::refill`].
    pub(crate) fn new() -> Self {
        Self {
            made: Instant::now(),
            instructions_max: AtomicU32::default(),
            instructions_left: AtomicI64::default(),
            memory_bytes: AtomicUsize::default(),
            returned_bytes: AtomicUsize::default(),
            deadline_nanos: AtomicU64::default(),
            time_millis: AtomicU64::default(),
            unwatched: AtomicU32::default(),
            #[cfg(test)]
            largest_payment: AtomicU32::default(),
        }
    }

    /// Starts an attempt that must end at `deadline`. `time` is the limit that messages name.
    pub(crate) fn refill(&self, rung: &Rung, deadline: Instant, time: Duration) {
        self.instructions_max.store(rung.instructions, Relaxed);
        self.instructions_left
            .store(i64::from(rung.instructions), Relaxed);
        self.memory_bytes.store(rung.memory_bytes, Relaxed);
        self.returned_bytes.store(0, Relaxed);
        let nanos = deadline.saturating_duration_since(self.made).as_nanos();
        self.deadline_nanos
            .store(u64::try_from(nanos).unwrap_or(u64::MAX), Relaxed);
        self.time_millis
            .store(u64::try_from(time.as_millis()).unwrap_or(u64::MAX), Relaxed);
        self.unwatched.store(0, Relaxed);
    }

    /// Pays for `count` instructions, and checks the clock.
    pub(crate) fn watch(&self, count: u32) -> Result<(), Spent> {
        self.unwatched.store(STEPS_UNWATCHED, Relaxed);
        self.burn(count)
    }

    /// Pays for `count` steps; checks the clock every [`STEPS_UNWATCHED`] steps.
    pub(crate) fn burn(&self, count: u32) -> Result<(), Spent> {
        let left = self.instructions_left.load(Relaxed) - i64::from(count);
        self.instructions_left.store(left, Relaxed);
        if left < 0 {
            return Err(Spent::Instructions(self.instructions_max.load(Relaxed)));
        }
        #[cfg(test)]
        self.largest_payment.fetch_max(count, Relaxed);
        let unwatched = self.unwatched.load(Relaxed).saturating_add(count);
        if unwatched < STEPS_UNWATCHED {
            self.unwatched.store(unwatched, Relaxed);
            return Ok(());
        }
        self.unwatched.store(0, Relaxed);
        let now = u64::try_from(self.made.elapsed().as_nanos()).unwrap_or(u64::MAX);
        if now >= self.deadline_nanos.load(Relaxed) {
            return Err(Spent::Time(self.time_millis.load(Relaxed)));
        }
        Ok(())
    }

    /// Pays for work on `bytes` that takes about one instruction per 64 bytes.
    pub(crate) fn burn_bytes(&self, bytes: usize) -> Result<(), Spent> {
        self.burn(u32::try_from(bytes / 64).unwrap_or(u32::MAX).saturating_add(1))
    }

    /// Pays for reading or printing a large number, which takes time in proportion to the square of its digits.
    pub(crate) fn burn_digits(&self, digits: usize) -> Result<(), Spent> {
        let steps = (digits / 16).saturating_mul(digits / 16).saturating_add(1);
        self.burn(u32::try_from(steps).unwrap_or(u32::MAX))
    }

    /// The largest text that a function in Rust may create or read at once.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_bytes.load(Relaxed)
    }

    /// Refuses texts that are larger than the machine's memory.
    pub(crate) fn check_bytes(&self, bytes: usize) -> Result<(), Spent> {
        if bytes > self.memory_bytes() {
            return Err(Spent::Memory);
        }
        Ok(())
    }

    /// Pays for a value of `bytes` in the result; the whole result counts against the memory.
    pub(crate) fn give_back(&self, bytes: usize) -> Result<(), Spent> {
        let all = self.returned_bytes.load(Relaxed).saturating_add(bytes);
        self.returned_bytes.store(all, Relaxed);
        self.check_bytes(all)?;
        self.burn_bytes(bytes)
    }

    /// The largest number of steps that was ever paid for at once.
    #[cfg(test)]
    pub fn largest_payment(&self) -> u32 {
        self.largest_payment.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Fuel, Limits, Spent, WORK_UNWATCHED_BYTES, rungs};

    #[test]
    fn the_more_memory_a_rung_has_the_more_often_it_looks_at_the_clock() {
        for memory_bytes in [0, 1, 1000, 300 << 10, 1 << 20, 16 << 20, 100 << 20] {
            let limits = Limits {
                memory_bytes,
                ..Limits::default()
            };
            let rungs = rungs(&limits);
            for rung in &rungs {
                let is_watched_always = rung.unwatched == 1;
                let work = rung.memory_bytes * usize::try_from(rung.unwatched).unwrap();
                assert!(is_watched_always || work <= WORK_UNWATCHED_BYTES, "{rung:?}");
            }
            assert!(rungs.is_sorted_by_key(|rung| rung.memory_bytes), "{rungs:?}");
            let last = rungs.last().unwrap();
            assert_eq!((last.memory_bytes, last.is_apart), (memory_bytes, true));
            assert_eq!(last.instructions, limits.instructions);
        }
    }

    #[test]
    fn what_was_not_granted_before_the_deadline_is_not_granted_after() {
        let rung = rungs(&Limits::default())[0];
        let fuel = Fuel::new();
        fuel.refill(&rung, Instant::now(), Duration::from_millis(7));
        assert_eq!(fuel.burn(255), Ok(()), "the clock is not looked at for so little");
        assert_eq!(fuel.burn(1), Err(Spent::Time(7)));
        assert_eq!(fuel.watch(1), Err(Spent::Time(7)));
    }
}
