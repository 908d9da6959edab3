//! What a call may use up: instructions, time, memory.
//!
//! Lua counts instructions by itself; a function in Rust that works for long pays by its steps ([`Fuel::burn`]). Time is
//! looked at as well, since one instruction may copy a text of many megabytes.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How much a call may use up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Instructions of Lua, and steps of pattern matching.
    pub instructions: u32,
    /// Bytes of all its values together.
    pub memory_bytes: usize,
    /// How long it may run.
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

/// What is left of the limits of the running call.
#[derive(Debug)]
pub(crate) struct Fuel {
    limits: Limits,
    left: AtomicI64,
    started: Mutex<Instant>,
}

impl Fuel {
    pub fn new(limits: Limits) -> Self {
        Self {
            left: AtomicI64::new(i64::from(limits.instructions)),
            started: Mutex::new(Instant::now()),
            limits,
        }
    }

    /// A call begins.
    pub fn refill(&self) {
        self.left
            .store(i64::from(self.limits.instructions), Ordering::Relaxed);
        *self.started.lock() = Instant::now();
    }

    /// Pays for `count` instructions.
    pub fn burn(&self, count: u32) -> Result<(), String> {
        let before = self.left.fetch_sub(i64::from(count), Ordering::Relaxed);
        if before < i64::from(count) {
            return Err(format!(
                "it took more than {} instructions",
                self.limits.instructions
            ));
        }
        if self.started.lock().elapsed() > self.limits.time {
            return Err(format!("it ran longer than {} ms", self.limits.time.as_millis()));
        }
        Ok(())
    }

    /// The largest text that a function in Rust may make.
    pub fn memory_bytes(&self) -> usize {
        self.limits.memory_bytes
    }
}
