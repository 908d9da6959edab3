//! Gives the operations of the mix to clients until the time is over, at a rate if there is one.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use ilion_env::Env;

use crate::bench::dataset::COLUMN_COUNT;
use crate::bench::soak::args::{Mix, SoakArgs};
use crate::bench::soak::choice::Choice;
use crate::bench::soak::mix::{Kind, kind};
use crate::bench::soak::rows::{Asked, Text};

/// YCSB's longest scan.
const SCAN_ROWS_MAX: u64 = 100;

/// See the module.
pub struct Turns {
    env: Arc<dyn Env>,
    mix: Mix,
    seed: u64,
    choice: Choice,
    /// Operations per second; `None` is as many as possible.
    rate: Option<u64>,
    secs: u64,
    /// When the first operation was taken. Clients connect before, and that is not measured.
    began_nanos: OnceLock<u64>,
    next: AtomicU64,
    /// Number of rows: those loaded first, and those whose INSERT was given to a client.
    rows: AtomicU64,
    written_bytes: AtomicU64,
}

/// A request of an operation.
#[derive(Clone, Copy)]
pub struct Turn {
    pub asked: Asked,
    /// The second request of the operation, if this one is a read that an update of the row follows.
    pub then_update: Option<Asked>,
    /// When the operation is due, in nanoseconds of the monotonic clock; `None` without a rate.
    pub due_nanos: Option<u64>,
}

impl Turn {
    /// The second request of an operation. It is due when the first one is answered.
    pub fn second(self) -> Option<Self> {
        self.then_update.map(|asked| Self {
            asked,
            then_update: None,
            due_nanos: None,
        })
    }
}

impl Turns {
    pub fn new(env: &Arc<dyn Env>, args: &SoakArgs) -> Self {
        let choice = Choice::new(args.spread(), args.seed, args.rows);
        Self {
            env: env.clone(),
            mix: args.mix,
            seed: args.seed,
            choice,
            rate: args.rate,
            secs: args.secs,
            began_nanos: OnceLock::new(),
            next: AtomicU64::new(0),
            rows: AtomicU64::new(args.rows),
            written_bytes: AtomicU64::new(0),
        }
    }

    /// Waits until the next operation is due and returns it; `None` at the end. The first call starts the clock.
    pub fn take(&self) -> Option<Turn> {
        let now = self.env.monotonic_nanos();
        let began_nanos = *self.began_nanos.get_or_init(|| now);
        let ends_nanos = began_nanos + self.secs * 1_000_000_000;
        if now >= ends_nanos {
            return None;
        }
        let number = self.next.fetch_add(1, Relaxed);
        let due_nanos = self.rate.map(|rate| due_nanos(began_nanos, number, rate));
        if let Some(due) = due_nanos {
            if due >= ends_nanos {
                return None;
            }
            thread::sleep(Duration::from_nanos(due.saturating_sub(now)));
        }
        let kind = kind(self.mix, self.seed, number);
        let row = match kind {
            Kind::Insert => self.rows.fetch_add(1, Relaxed),
            _ => self.choice.row(number, self.rows.load(Relaxed)),
        };
        let column = usize::try_from(number).unwrap_or_default() % COLUMN_COUNT;
        let limit = u32::try_from(1 + number % SCAN_ROWS_MAX).unwrap_or(1);
        let asked = |text| Asked {
            text,
            row,
            // An inserted row has version 0.
            version: number + 1,
            limit,
        };
        let update = asked(Text::Update(column));
        let (first, then_update) = match kind {
            Kind::Read => (asked(Text::Read), None),
            Kind::Update => (update, None),
            Kind::Insert => (asked(Text::Insert), None),
            Kind::Scan => (asked(Text::Scan), None),
            Kind::ReadThenUpdate => (asked(Text::Read), Some(update)),
        };
        Some(Turn {
            asked: first,
            then_update,
            due_nanos,
        })
    }

    /// Adds to the bytes that clients wrote.
    pub fn note_written(&self, bytes: u64) {
        self.written_bytes.fetch_add(bytes, Relaxed);
    }

    /// Bytes of keys and values that clients wrote.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Relaxed)
    }

    /// Rows in the table.
    pub fn rows(&self) -> u64 {
        self.rows.load(Relaxed)
    }
}

/// When an operation is due.
fn due_nanos(began_nanos: u64, number: u64, rate: u64) -> u64 {
    let since = u128::from(number) * 1_000_000_000 / u128::from(rate);
    began_nanos.saturating_add(u64::try_from(since).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_due_evenly() {
        assert_eq!(due_nanos(5, 0, 1000), 5);
        assert_eq!(due_nanos(5, 1500, 1000), 1_500_000_005);
        assert_eq!(due_nanos(5, u64::MAX, 1), u64::MAX);
    }
}
